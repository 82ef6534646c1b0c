import assert from 'node:assert/strict';
import { once } from 'node:events';
import { get as httpGet, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { describe, test } from 'node:test';
import { DAY_MS, weekStartMs } from '../../../src/lib/time.ts';
import { ensureWeeks, POSITIONS } from '../../../src/postgres/partitions.ts';
import { callBeside } from '../../support/beside.ts';
import { manualClock } from '../../support/manualClock.ts';
import { OWNER, ownerPod } from '../../support/ownerPod.ts';
import { waitFor } from '../../support/waitFor.ts';

const NOW_MS = Math.floor(Date.now() / DAY_MS) * DAY_MS + DAY_MS / 2;
const FIRST_MS = NOW_MS - 30 * DAY_MS;
const OTHER = 'other@example.com';
const FOREIGN = '350000000009999';
/** So many that no buffers between two processes take their days: two points of each make a month of them. */
const DEVICES = 800;
const LAST = String(350_000_000_000_000 + DEVICES - 1);
const iso = (ms: number) => new Date(ms).toISOString();
const QUERY = `from=${iso(FIRST_MS)}&to=${iso(NOW_MS)}&by=day`;
const DAYS = 31;

describe('summaries of a fleet that are not read at once', () => {
  let otherKey = '';
  const devices = Array.from({ length: DEVICES }, (_, n) => ({ imei: String(350_000_000_000_000 + n) }));
  const owner = ownerPod({
    clock: manualClock(NOW_MS),
    devices,
    prepare: async ({ admin, sql }) => {
      await admin.account(OTHER);
      await admin.device(OTHER, FOREIGN);
      otherKey = (await admin.key(OTHER)).key;
      await ensureWeeks(sql, POSITIONS, [weekStartMs(FIRST_MS), weekStartMs(NOW_MS)]);
      await sql`
        insert into position (device_id, recorded_at, latitude, longitude, altitude_m, speed_kmh, heading, satellites)
        select id, at, 41, 12, 0, 50, 90, 9
        from device, unnest(array[${new Date(FIRST_MS)}, ${new Date(NOW_MS)}]::timestamptz[]) at`;
    },
  });
  const path = `/api/v3/history/summary?${QUERY}`;
  const read = (key: string, more = '') => owner.pod.get(`${path}${more}`, key);

  /** Headers, and then nothing is read. */
  async function begin(key = owner.key): Promise<IncomingMessage> {
    const request = httpGet(`${owner.pod.api}${path}&format=ndjson`, {
      agent: false,
      headers: { 'X-API-Key': key },
    });
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    return response;
  }

  const isIdle = async (): Promise<boolean> => {
    const [busy] = await owner.sql<{ count: number }[]>`
      select count(*)::int from pg_stat_activity
      where datname = current_database() and application_name like 'fleet reads%' and state <> 'idle'`;
    return busy?.count === 0;
  };

  test('wait for their readers, without a connection to Postgres, in two places of their account', async () => {
    const idle = [await begin(), await begin()] as const;
    const third = await read(owner.key);
    assert.deepEqual([third.status, third.body.error.code], [429, 'TOO_MANY_REQUESTS']);
    assert.match(third.body.error.message, /^2 summaries of this account/);
    await waitFor(isIdle);
    assert.equal((await read(owner.key)).status, 429, 'they are not made ahead of their readers');
    const head = await fetch(`${owner.pod.api}${path}`, {
      method: 'HEAD',
      headers: { 'X-API-Key': owner.key },
    });
    assert.equal(head.status, 200, 'HEAD reads nothing');
    // One is read to its end, the other is given up.
    const lines = (await text(idle[0])).trimEnd().split('\n');
    assert.equal(lines.length, DAYS * DEVICES);
    idle[1].destroy();
    // A place is free again when what was being read for a reader who has left has come.
    const again: IncomingMessage[] = [];
    await waitFor(async () => {
      const response = await begin();
      if (response.statusCode === 200) again.push(response);
      else response.resume();
      return again.length === 2;
    });
    for (const response of again) assert.equal((await text(response)).split('\n').length - 1, DAYS * DEVICES);
  });

  test('hold up nobody else: others read their own summaries, and where their vehicles are', async () => {
    await callBeside({
      attackers: 2,
      attack: async () => {
        const { status, text } = await read(owner.key, '&format=ndjson');
        assert.deepEqual([status, text.split('\n').length - 1], [200, DAYS * DEVICES]);
      },
      rounds: 4,
      victim: async () => {
        assert.equal((await read(otherKey)).body.data.length, DAYS);
        assert.equal((await owner.pod.get('/api/v3/devices/nearest?lat=41&lng=12', otherKey)).status, 200);
      },
    });
  });

  test('leave out a device that leaves what their reader sees meanwhile', async () => {
    const response = await begin();
    await owner.sql`
      update device set world_id = (select world_id from account where email = ${OTHER}) where imei = ${LAST}`;
    const lines = (await text(response)).trimEnd().split('\n');
    assert.equal(lines.length, DAYS * (DEVICES - 1));
    assert.ok(!lines.some((line) => line.includes(LAST)));
    // Memory still has it, and a total would be a line even without points.
    const { body } = await owner.pod.get(
      `/api/v3/history/summary?from=${iso(FIRST_MS)}&devices=${devices[0]?.imei},${LAST}`,
      owner.key,
    );
    assert.deepEqual(
      body.data.map(({ device }: { device: { imei: string } }) => device.imei),
      [devices[0]?.imei],
    );
    await owner.sql`
      update device set world_id = (select world_id from account where email = ${OWNER}) where imei = ${LAST}`;
  });

  test('are cut when points cannot be read any more, so they are not taken for whole', async () => {
    const response = await begin();
    await waitFor(isIdle);
    await owner.sql`alter table packed_points rename to lost_points`;
    await assert.rejects(text(response), /aborted/);
    await owner.sql`alter table lost_points rename to packed_points`;
    assert.equal((await read(owner.key, `&devices=${LAST}`)).status, 200);
  });
});
