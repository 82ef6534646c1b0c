import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { takePackingLease } from '../../../src/history/packing.sql.ts';
import { DAY_MS } from '../../../src/lib/time.ts';
import { ensureWeeks, POSITIONS, weekStartMs } from '../../../src/postgres/partitions.ts';
import { openSql, type Sql } from '../../../src/postgres/sql.ts';
import { createDatabase } from '../../support/postgres/postgres.ts';
import { runFleet } from '../runFleet.ts';

const FIRST_MS = Math.floor(Date.now() / DAY_MS) * DAY_MS - 9 * DAY_MS;
const POD = '00000000-0000-4000-8000-000000000001';

let url: string;
let sql: Sql;
before(async () => {
  ({ url } = await createDatabase());
  sql = openSql(url, { maxConnections: 2, name: 'test' });
  await sql`insert into world default values`;
  await sql`insert into device (imei, world_id) values ('350000000000001', 1)`;
  await sql`insert into device_state (device_id) values (1) on conflict do nothing`;
  await ensureWeeks(sql, POSITIONS, [weekStartMs(FIRST_MS), weekStartMs(FIRST_MS) + 7 * DAY_MS]);
});
after(() => sql.end());

const insertPoints = (startMs: number, count: number) => sql`
  insert into position (device_id, recorded_at, latitude, longitude, altitude_m, speed_kmh, heading, satellites, received_at)
  select 1, to_timestamp(${startMs}::float8 / 1000 + n * 60), 1, 2, 0, 0, 0, 0, now()
  from generate_series(0, ${count}::int - 1) n`;

test('history:pack packs every closed day at once, late points too, while a pod has the lease', async () => {
  await insertPoints(FIRST_MS, 3_000);
  assert.equal(await takePackingLease(sql, POD, false), true);
  assert.deepEqual((await runFleet(url, ['history:pack'])).json, { points: 3_000, damaged: 0 });
  await insertPoints(FIRST_MS + 1, 3);
  assert.deepEqual((await runFleet(url, ['history:pack'])).json, { points: 3, damaged: 0 });
  assert.deepEqual((await runFleet(url, ['history:pack'])).json, { points: 0, damaged: 0 });
  const [row] =
    await sql`select (select count(*)::int from position) as rows, sum(count)::int as packed from packed_points`;
  assert.deepEqual(row, { rows: 0, packed: 3_003 });
});

test('history:pack that is interrupted says what it has packed', async () => {
  await insertPoints(FIRST_MS + 2, 10);
  const { code, stdout, stderr } = await runFleet(url, ['history:pack'], {
    interrupted: AbortSignal.abort(),
  });
  assert.deepEqual([code === 0, stdout], [false, '']);
  assert.match(stderr, /interrupted: 0 points are packed\. Repeat the command/);
});
