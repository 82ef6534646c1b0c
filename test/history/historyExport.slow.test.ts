import assert from 'node:assert/strict';
import { once } from 'node:events';
import { get as httpGet, type IncomingMessage } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { describe, test } from 'node:test';
import { parquetMetadata } from 'hyparquet';
import { SCOPES } from '../../src/access/scopes.ts';
import { EXPORT_FORMATS } from '../../src/history/exportFormats.ts';
import { weekStartMs } from '../../src/lib/time.ts';
import { ensureWeeks, POSITIONS } from '../../src/postgres/partitions.ts';
import { manualClock } from '../support/manualClock.ts';
import { OWNER, ownerPod } from '../support/ownerPod.ts';
import { waitFor } from '../support/waitFor.ts';

const VAN = '350000000000001';
/** So many points that no buffers between two processes take all of them. */
const HEAVY = '350000000000002';
const FOREIGN = '350000000000003';
const SILENT = '350000000000004';
const DAY_MS = 86_400_000;
const NOW_MS = Math.floor(Date.now() / DAY_MS) * DAY_MS + DAY_MS / 2;
const HEAVY_POINTS = 60_000;
const POINTS = 9_000;
const iso = (ms: number) => new Date(ms).toISOString();

describe('GET /api/v3/devices/{imei}/history/export', () => {
  let otherKey = '';
  const devices = [{ imei: VAN }, { imei: HEAVY }, { imei: SILENT }];
  const owner = ownerPod({ clock: manualClock(NOW_MS), devices }, async ({ pod, admin, sql }) => {
    await admin.account('other@example.com', { plan: 'basic' });
    await admin.device('other@example.com', FOREIGN);
    otherKey = (await admin.key('other@example.com')).key;
    const old = { imei: FOREIGN, latitude: 1, longitude: 1 };
    await pod.points([30, 31].map((days) => ({ ...old, recorded_at: NOW_MS - days * DAY_MS })));
    const place = {
      imei: VAN,
      latitude: 41.5,
      longitude: -12.25,
      altitude_m: 7,
      heading: 359.9,
      satellites: 12,
    };
    const points = Array.from({ length: POINTS }, (_, n) => {
      const odometer_km = n < 4_500 ? 48_211.4 : null;
      return { ...place, recorded_at: NOW_MS - n * 10_000, speed_kmh: n % 90, odometer_km };
    });
    for (let at = 0; at < POINTS; at += 4_500) await pod.points(points.slice(at, at + 4_500));
    const firstMs = NOW_MS - HEAVY_POINTS * 1_000;
    await ensureWeeks(sql, POSITIONS, [weekStartMs(firstMs), weekStartMs(NOW_MS)]);
    await sql`
      insert into position (device_id, recorded_at, latitude, longitude, altitude_m, speed_kmh, heading, satellites)
      select (select id from device where imei = ${HEAVY}), ${new Date(firstMs)}::timestamptz + make_interval(secs => n),
        41 + n / 1e6, 12, 0, 50, 90, 9
      from generate_series(1, ${HEAVY_POINTS}) n`;
  });
  const path = (imei: string, query = '') => `/api/v3/devices/${imei}/history/export${query}`;
  const read = (query = '', imei = VAN, key = owner.key) => owner.pod.get(path(imei, query), key);

  /** Headers, and then nothing is read. */
  async function begin(imei: string, key: string): Promise<IncomingMessage> {
    const request = httpGet(`${owner.pod.api}${path(imei, '?format=gpx')}`, {
      agent: false,
      headers: { 'X-API-Key': key },
    });
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    return response;
  }

  test('brings every point that the history shows, with its fields, oldest first', async () => {
    const { text, headers } = await read();
    assert.equal(headers.get('content-type'), 'application/x-ndjson');
    assert.equal(headers.get('content-disposition'), `attachment; filename="${VAN}.ndjson"`);
    const lines = text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    assert.equal(lines.length, POINTS);
    const newest = (await owner.pod.get(`/api/v3/devices/${VAN}/history?limit=1000`, owner.key)).body.data;
    assert.deepEqual(
      lines.slice(-1_000).map(({ imei: _, altitude_m: __, odometer_km: ___, ...point }) => point),
      newest.toReversed(),
    );
    assert.deepEqual(
      [lines.at(-1).imei, lines.at(-1).altitude_m, lines.at(-1).odometer_km],
      [VAN, 7, 48_211.4],
    );
  });

  const COUNTS: Readonly<Record<(typeof EXPORT_FORMATS)[number], (file: Buffer) => number>> = {
    ndjson: (file) => file.toString().split('\n').length - 1,
    csv: (file) => file.toString().split('\r\n').length - 2,
    gpx: (file) => file.toString().split('<trkpt ').length - 1,
    geojson: (file) => JSON.parse(file.toString()).features.length,
    parquet: (file) => Number(parquetMetadata(Uint8Array.from(file).buffer).num_rows),
  };

  for (const format of EXPORT_FORMATS) {
    test(`as ${format} has all points of the window, both ends included, and none without one`, async () => {
      const count = async (query: string): Promise<number> => {
        const url = `${owner.pod.api}${path(VAN, `?format=${format}${query}`)}`;
        const response = await fetch(url, { headers: { 'X-API-Key': owner.key } });
        assert.equal(response.status, 200);
        assert.equal(response.headers.get('x-api-status'), 'beta');
        return COUNTS[format](Buffer.from(await response.arrayBuffer()));
      };
      assert.equal(await count(''), POINTS);
      assert.equal(await count(`&from=${iso(NOW_MS - 50_000)}&to=${iso(NOW_MS - 10_000)}`), 5);
      assert.equal(await count(`&from=${iso(NOW_MS)}&to=${iso(NOW_MS - 1)}`), 0);
      assert.equal(await count('&to=2001-01-01'), 0);
    });
  }

  test('leaves out what the plan of the reader does not retain', async () => {
    const { text } = await read('?from=2001-01-01', FOREIGN, otherKey);
    assert.equal(JSON.parse(text).recorded_at, iso(NOW_MS - 30 * DAY_MS));
  });

  test('refuses what it cannot read with 400, and a foreign device like one that there is not', async () => {
    for (const query of ['?format=xml', '?format=CSV', '?from=yesterday', '?format=csv&format=gpx'])
      for (const imei of [VAN, FOREIGN])
        assert.deepEqual(
          [(await read(query, imei)).status, (await read(query, imei)).body.error.code],
          [400, 'BAD_REQUEST'],
        );
    for (const imei of [FOREIGN, '350000000000009'])
      assert.equal((await read('', imei)).body.error.code, 'DEVICE_NOT_FOUND');
    assert.equal((await read('', 'x')).body.error.code, 'BAD_REQUEST');
    assert.equal((await owner.pod.get(path(VAN).replace('v3', 'v2'), owner.key)).status, 404);
  });

  test('costs a reader that does not read two of its own places, nobody else one, and no connection to Postgres', async () => {
    const idle = [await begin(HEAVY, owner.key), await begin(HEAVY, owner.key)];
    const third = await read();
    assert.deepEqual([third.status, third.body.error.code], [429, 'TOO_MANY_REQUESTS']);
    assert.match(third.body.error.message, /2 exports of this account/);
    const head = await fetch(`${owner.pod.api}${path(VAN)}`, {
      method: 'HEAD',
      headers: { 'X-API-Key': owner.key },
    });
    assert.equal(head.status, 200, 'HEAD reads nothing');
    assert.equal((await read('', FOREIGN, otherKey)).status, 200);
    assert.equal((await owner.pod.get(`/api/v3/devices/${VAN}/history`, owner.key)).body.data.length, 500);
    await waitFor(async () => {
      const [busy] = await owner.sql<{ count: number }[]>`
        select count(*)::int from pg_stat_activity
        where datname = current_database() and application_name like 'fleet reads%' and state <> 'idle'`;
      return busy?.count === 0;
    });
    // One is read to its end, the other is given up.
    const [first, second] = idle as [IncomingMessage, IncomingMessage];
    assert.equal(COUNTS.gpx(await buffer(first)), HEAVY_POINTS);
    second.destroy();
    await waitFor(async () => (await read()).status === 200);
    const both = [await begin(HEAVY, owner.key), await begin(HEAVY, owner.key)];
    for (const response of both) response.destroy();
  });

  test('opens with read_history and no other permission', async () => {
    const { key } = await owner.admin.key(OWNER, { scopes: 'read_history' });
    assert.equal((await read('', SILENT, key)).status, 200);
    const others = SCOPES.filter((scope) => scope !== 'read_history').join();
    const refused = await read('', SILENT, (await owner.admin.key(OWNER, { scopes: others })).key);
    assert.deepEqual([refused.status, refused.body.error.code], [403, 'INSUFFICIENT_SCOPE']);
  });

  test('is cut when the device leaves what its reader sees, so it is not taken for whole', async () => {
    const response = await begin(HEAVY, owner.key);
    await owner.sql`update device set world_id = (select world_id from device where imei = ${FOREIGN}) where imei = ${HEAVY}`;
    await assert.rejects(buffer(response), /aborted/);
    await owner.sql`update device set world_id = (select world_id from account where email = ${OWNER}) where imei = ${HEAVY}`;
  });
});
