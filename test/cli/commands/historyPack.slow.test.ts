import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { takePackingLease } from '../../../src/history/packing.sql.ts';
import { DAY_MS, weekStartMs } from '../../../src/lib/time.ts';
import { ensureWeeks, POSITIONS } from '../../../src/postgres/partitions.ts';
import { fleetDatabase } from '../runFleet.ts';

const FIRST_MS = Math.floor(Date.now() / DAY_MS) * DAY_MS - 9 * DAY_MS;
const POD = '00000000-0000-4000-8000-000000000001';

const database = fleetDatabase();
before(async () => {
  const { sql } = database;
  await sql`insert into world default values`;
  await sql`insert into device (imei, world_id) values ('350000000000001', 1)`;
  await sql`insert into device_state (device_id) values (1) on conflict do nothing`;
  await ensureWeeks(sql, POSITIONS, [weekStartMs(FIRST_MS), weekStartMs(FIRST_MS) + 7 * DAY_MS]);
});

const insertPoints = (startMs: number, count: number) => database.sql`
  insert into position (device_id, recorded_at, latitude, longitude, altitude_m, speed_kmh, heading, satellites, received_at)
  select 1, to_timestamp(${startMs}::float8 / 1000 + n * 60), 1, 2, 0, 0, 0, 0, now()
  from generate_series(0, ${count}::int - 1) n`;

test('history:pack packs every closed day at once, late points too, while a pod has the lease', async () => {
  await insertPoints(FIRST_MS, 3_000);
  assert.equal(await takePackingLease(database.sql, POD, false), true);
  const pack = async () => (await database.fleet('history:pack')).json;
  assert.deepEqual(await pack(), { points: 3_000, damaged: 0 });
  await insertPoints(FIRST_MS + 1, 3);
  assert.deepEqual(await pack(), { points: 3, damaged: 0 });
  assert.deepEqual(await pack(), { points: 0, damaged: 0 });
  const [row] =
    await database.sql`select (select count(*)::int from position) as rows, sum(count)::int as packed from packed_points`;
  assert.deepEqual(row, { rows: 0, packed: 3_003 });
});

test('history:pack that is interrupted says what it has packed', async () => {
  await insertPoints(FIRST_MS + 2, 10);
  const message = /interrupted: 0 points are packed\. Repeat the command/;
  await database.refuses('history:pack', 1, message, { interrupted: AbortSignal.abort() });
});
