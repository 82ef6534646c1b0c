import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { NO_STATE } from '../../src/ingest/deviceEvents.ts';
import { copyLockedStates, copyNewPositions, INSERTED_MAX } from '../../src/ingest/manyPoints.sql.ts';
import type { StoredFix } from '../../src/ingest/points.sql.ts';
import { insertNewPositions, lockDeviceStates, updateDeviceStates } from '../../src/ingest/points.sql.ts';
import { DAY_MS, HOUR_MS, WEEK_MS, weekStartMs } from '../../src/lib/time.ts';
import { ensureWeeks, POSITIONS } from '../../src/postgres/partitions.ts';
import { openSql, type Sql, type Tx } from '../../src/postgres/sql.ts';
import { sqlState } from '../../src/postgres/sqlErrors.ts';
import { createDatabase } from '../support/postgres/postgres.ts';

const NOW_MS = Date.now();
const DEVICES = 2 * INSERTED_MAX;
const deviceIds = Array.from({ length: DEVICES }, (_, n) => n + 1);

let sql: Sql;
before(async () => {
  sql = openSql((await createDatabase()).url, { maxConnections: 2, name: 'test' });
  const weekMs = weekStartMs(NOW_MS);
  await ensureWeeks(sql, POSITIONS, [weekMs - WEEK_MS, weekMs]);
  await sql`insert into world (id) overriding system value values (1)`;
  await sql`
    insert into device (id, imei, world_id) overriding system value
    select n, (350000000000000 + n)::text, 1 from generate_series(1, ${DEVICES}::int) n`;
  await sql`insert into device_state (device_id) select n from generate_series(1, ${DEVICES}::int) n`;
});
after(() => sql.end());

/** Some from now and some from a week ago, with and without an odometer, on both sides of the equator. */
const fixes = deviceIds.map(
  (deviceId, n): StoredFix => ({
    deviceId,
    recordedAtMs: NOW_MS - n - [0, HOUR_MS, DAY_MS, WEEK_MS][n % 4]!,
    lat: (n - 50) / 7,
    lng: (50 - n) / 3,
    altitudeM: n / 9,
    speedKmh: n / 11,
    heading: n,
    satellites: n % 13,
    odometerKm: n % 3 === 0 ? null : 1e5 + n / 13,
  }),
);

async function stored(store: (tx: Tx, fixes: readonly StoredFix[]) => Promise<void>) {
  await sql`truncate position, row_box`;
  const [row] = await sql.begin(async (tx) => {
    await store(tx, fixes);
    return tx<{ now: Date }[]>`select date_trunc('milliseconds', now()) as now`;
  });
  const rows = await sql<{ received_at: Date }[]>`
    select *, tableoid::regclass::text as partition from position order by device_id`;
  for (const { received_at } of rows) assert.deepEqual(received_at, row?.now);
  const boxes = await sql`select * from row_box order by device_id, begins_at`;
  return { rows: rows.map(({ received_at, ...others }) => others), boxes: [...boxes] };
}

describe('many points', () => {
  test('are stored like few: in their weeks, bit by bit, and with boxes of those that are old', async () => {
    const copied = await stored(copyNewPositions);
    assert.equal(copied.rows.length, DEVICES);
    // Those of an hour and of a day ago.
    assert.equal(copied.boxes.length, DEVICES / 2);
    assert.deepEqual(copied, await stored(insertNewPositions));
  });

  test('make a box of an old point wider, by little more than needed and never smaller', async () => {
    const [place] = fixes.filter(({ recordedAtMs }) => recordedAtMs < NOW_MS - DAY_MS / 2);
    assert.ok(place);
    const at = (n: number, lat: number): StoredFix => ({
      ...place,
      recordedAtMs: place.recordedAtMs + n,
      lat,
    });
    const assertBox = async (south: number, north: number) => {
      const [row] = await sql<{ south: number; north: number }[]>`
        select min(south) as south, max(north) as north from row_box where device_id = ${place.deviceId}`;
      assert.ok(row && row.south <= south && row.south > south - 0.05, `${row?.south} for ${south}`);
      assert.ok(row.north >= north && row.north < north + 0.05, `${row.north} for ${north}`);
    };
    await sql`truncate position, row_box`;
    const store = (...own: readonly StoredFix[]) => sql.begin((tx) => copyNewPositions(tx, own));
    await store(at(0, 40.06), at(1, 50.06));
    await assertBox(40.06, 50.06);
    await store(at(2, 45));
    await assertBox(40.06, 50.06);
    await store(at(3, 30.001), at(4, 60.001));
    await assertBox(30.001, 60.001);
  });

  test('of which one is stored already store nothing, and the connection stays usable', async () => {
    await sql`truncate position, row_box`;
    await sql.begin((tx) => insertNewPositions(tx, fixes.slice(0, 1)));
    const again = sql.begin((tx) => copyNewPositions(tx, fixes));
    await assert.rejects(again, (error) => sqlState(error) === '23505');
    const [row] = await sql<{ count: number }[]>`select count(*) from position`;
    assert.equal(row?.count, 1);
  });
});

describe('many states', () => {
  test('are read like few, before and after the first point', async () => {
    const states = new Map(
      fixes.slice(DEVICES / 2).map(({ deviceId, recordedAtMs, lat, lng, odometerKm, satellites }) => [
        deviceId,
        {
          ...NO_STATE,
          ...{ recordedAtMs, lat, lng, odometerKm, satellites },
          ignition: [null, true, false][deviceId % 3] ?? null,
          alarms: deviceId % 5 === 0 ? ['sos', 'tow'] : [],
          rfid: deviceId % 7 === 0 ? 'a "tag"' : null,
          slowSinceMs: deviceId % 2 === 0 ? recordedAtMs - 1 : null,
          parkedAtMs: deviceId % 4 === 0 ? recordedAtMs - 1 : null,
        },
      ]),
    );
    const stays = new Map([[DEVICES, [{ areaId: 3, insideSinceMs: NOW_MS, confirmedAtMs: null }]]]);
    await sql.begin((tx) => updateDeviceStates(tx, states, stays, new Map(), NOW_MS));
    const lockBy = (lock?: typeof copyLockedStates) =>
      sql.begin((tx) => lockDeviceStates(tx, [...deviceIds, DEVICES + 1], lock));
    const [few, many] = [await lockBy(), await lockBy(copyLockedStates)];
    assert.deepEqual(new Map([...many.locked].sort(([a], [b]) => a - b)), few.locked);
    assert.deepEqual(many.locked.get(1)?.state, NO_STATE);
    for (const [deviceId, state] of states) assert.deepEqual(many.locked.get(deviceId)?.state, state);
    assert.deepEqual(many.locked.get(DEVICES)?.stays, stays.get(DEVICES));
  });

  test('that another transaction has locked are left out', async () => {
    const lock = (ids: readonly number[], work: () => Promise<void>) =>
      sql.begin(async (tx) => {
        const { locked, lockedElsewhere } = await lockDeviceStates(tx, ids, copyLockedStates);
        await work();
        return { locked: [...locked.keys()].sort((a, b) => a - b), lockedElsewhere: [...lockedElsewhere] };
      });
    await lock([2], async () => {
      const others = await lock([1, 2, 3], async () => undefined);
      assert.deepEqual(others, { locked: [1, 3], lockedElsewhere: [2] });
    });
  });
});
