import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import type { Sql } from '../../src/postgres/sql.ts';
import { EventReader } from '../support/feeds/feedReader.ts';
import { insertEvent } from '../support/feeds/lateWriter.ts';
import { OWNER, ownerPod } from '../support/ownerPod.ts';
import { startPod } from '../support/pod.ts';
import { holdTransaction } from '../support/postgres/holdTransaction.ts';

const IMEI = '350000000000001';

let clockMs = Date.now() - 3_600_000;

const owner = ownerPod({ scopes: 'read_events', devices: [{ imei: IMEI }] }, async ({ admin }) => {
  await admin.run('account:update', '--email', OWNER, '--organization', 'Haulage');
  await admin.account('other@example.com');
  await admin.device(OWNER, '350000000000002', '--organization');
  await toggle();
});
const { pod, admin } = owner;
let key: string;
let sql: Sql;
before(() => {
  ({ key, sql } = owner);
});

let isOn = false;

/** A point that produces an ignition event, unless it is the first. */
async function toggle(imei = IMEI): Promise<void> {
  clockMs += 1_000;
  isOn = !isOn;
  await pod.points([{ imei, recorded_at: clockMs, latitude: 41, longitude: 12, ignition: isOn }]);
}

const storedIds = async (): Promise<number[]> => {
  const rows = await sql<{ id: number }[]>`select id from fleet_event order by id`;
  return rows.map(({ id }) => id);
};

/** A transaction that has produced an event and waits; returns what commits it. */
const openEvent = () => holdTransaction(sql, (tx) => insertEvent(tx, IMEI));

describe('GET /events/feed', () => {
  test('without a cursor begins now, with an empty page', async () => {
    await toggle();
    const reader = new EventReader(key);
    assert.deepEqual(await reader.follow(pod), []);
    await toggle();
    const [event, ...more] = await reader.follow(pod);
    assert.equal(more.length, 0);
    const { body } = await pod.get('/api/v3/events?limit=1', key);
    const { recorded_at: recordedAt, ...rest } = event as Record<string, unknown>;
    assert.deepEqual(rest, body.data[0]);
    assert.ok(Math.abs(Date.parse(String(recordedAt)) - Date.now()) < 60_000);
  });

  test('brings an event whose transaction commits late, once, and waits for none', async () => {
    const reader = new EventReader(key);
    await reader.follow(pod);
    const from = new Set(await storedIds());
    const commitLate = await openEvent();
    const commitOther = await openEvent();
    await toggle();
    assert.equal((await reader.follow(pod)).length, 1);
    await commitOther();
    await toggle();
    assert.equal((await reader.follow(pod)).length, 2);
    await commitLate();
    assert.equal((await reader.follow(pod)).length, 1);
    assert.deepEqual(await reader.follow(pod), []);
    const expected = (await storedIds()).filter((id) => !from.has(id));
    assert.deepEqual(
      [...reader.ids].sort((a, b) => a - b),
      expected,
    );
  });

  test('goes page by page, and transactions that commit meanwhile come in the next round', async () => {
    const reader = new EventReader(key);
    await reader.follow(pod);
    const before = reader.ids.length;
    const commitLate = await openEvent();
    for (let n = 0; n < 7; n++) await toggle();
    const first = await reader.page(pod, 'limit=3');
    assert.equal(first.body.meta.has_more, true);
    await commitLate();
    await toggle();
    await reader.follow(pod, 'limit=3');
    assert.equal(reader.ids.length - before, 9);
    assert.equal(new Set(reader.ids).size, reader.ids.length);
  });

  test('from a time on brings what was produced since, whenever it occurred', async () => {
    await toggle();
    const [row] = await sql<{ now: Date }[]>`select clock_timestamp() as now`;
    const from = row?.now.toISOString() ?? '';
    await toggle();
    await toggle();
    const reader = new EventReader(key);
    const events = await reader.follow(pod, `from=${from}&limit=1`);
    assert.equal(events.length, 2);
    const all = new EventReader(key);
    await all.follow(pod, 'from=2000-01-01');
    assert.deepEqual(
      [...all.ids].sort((a, b) => a - b),
      await storedIds(),
    );
  });

  test('gives pages of ten thousand, each event once, also where it is narrowed', async () => {
    const reader = new EventReader(key);
    await reader.follow(pod);
    const before = reader.ids.length;
    const commitLate = await openEvent();
    await sql`
      insert into fleet_event (world_id, device_id, device_imei, type, message, data, occurred_at)
      select world_id, id, imei, type, 'many',
        jsonb_build_object('position', jsonb_build_object('lat', 1, 'lng', 2), type, 'A1'), now()
      from device, generate_series(1, 12500) n, lateral (
        select case when n % 20 = 0 then 'rfid' else 'alarm' end as type) t
      where imei = ${IMEI}`;
    const narrowed = new EventReader(key);
    narrowed.cursor = reader.cursor;
    const first = await reader.page(pod, 'limit=10000');
    assert.deepEqual([first.body.data.length, first.body.meta.has_more], [10_000, true]);
    await commitLate();
    await toggle();
    const second = await reader.page(pod, 'limit=10000&gather=1');
    assert.deepEqual([second.body.data.length, second.body.meta.has_more], [2_502, false]);
    const ids = reader.ids.slice(before);
    assert.equal(new Set(ids).size, 12_502);
    const rfid = await narrowed.follow(pod, 'limit=10000&type=rfid');
    assert.equal(rfid.length, 625);
  });

  test('is narrowed by type and device', async () => {
    const on = new EventReader(key);
    const events = await on.follow(pod, 'from=2000-01-01&type=ignition_on&limit=2');
    assert.ok(events.length > 1);
    assert.ok(events.every(({ type }) => type === 'ignition_on'));
    const none = await new EventReader(key).follow(pod, 'from=2000-01-01&device=350000000000009');
    assert.deepEqual(none, []);
  });

  test('waits for an event of its worlds, on another pod too', async (t) => {
    const second = await startPod(owner.url);
    t.after(() => second.stop());
    const reader = new EventReader(key);
    await reader.follow(second);
    await toggle('350000000000002');
    await reader.follow(second);
    const waiting = reader.page(second, 'wait=20');
    await toggle('350000000000002');
    assert.equal((await waiting).body.data.length, 1);
  });

  test('tells each of those who wait together what it has asked for', async () => {
    const later = new EventReader(key);
    const hour = new Date(Date.now() + 3_600_000).toISOString();
    await later.follow(pod, `from=${hour}`);
    await toggle();
    const now = new EventReader(key);
    await now.follow(pod);
    // The one that has seen less wants nothing of this hour.
    const none = later.page(pod, 'wait=2');
    const one = now.page(pod, 'wait=20');
    await toggle();
    assert.equal((await one).body.data.length, 1);
    assert.deepEqual((await none).body.data, []);
  });

  test('shows nobody the events of others', async () => {
    const other = (await admin.key('other@example.com')).key;
    assert.deepEqual(await new EventReader(other).follow(pod, 'from=2000-01-01'), []);
  });

  test('refuses what cannot be read', async () => {
    const changes = (await admin.key(OWNER)).key;
    const { body } = await pod.get('/api/v3/devices/changes', changes);
    for (const query of [
      'cursor=x',
      `cursor=${body.meta.cursor}`,
      'from=yesterday',
      'type=nothing',
      'device=1',
    ]) {
      const { status } = await pod.get(`/api/v3/events/feed?${query}`, key);
      assert.equal(status, 400, query);
    }
    assert.equal((await pod.get('/api/v3/events/feed?device=', key)).status, 400);
  });
});
