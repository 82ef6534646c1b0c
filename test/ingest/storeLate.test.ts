import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { storeLate } from '../../src/ingest/commitFixes.ts';
import type { BatchPoint, Fix } from '../../src/ingest/fix.ts';
import { weekStartMs } from '../../src/lib/time.ts';
import { ensureWeeks, POSITIONS } from '../../src/postgres/partitions.ts';
import { openSql, type Sql } from '../../src/postgres/sql.ts';
import { fixOf } from '../support/ingest/fixOf.ts';
import { createDatabase } from '../support/postgres/postgres.ts';

const START_MS = Date.UTC(2026, 2, 14, 12);
const MINUTE = 60;
/** Metres of a hundredth of a degree of latitude at the equator, and the same in a minute as km/h. */
const HUNDREDTH_M = 1_105.74;
const HUNDREDTH_A_MINUTE_KMH = (HUNDREDTH_M / MINUTE) * 3.6;

let sql: Sql;
before(async () => {
  sql = openSql((await createDatabase()).url, { maxConnections: 1, name: 'test' });
  await ensureWeeks(sql, POSITIONS, [weekStartMs(START_MS)]);
});
after(() => sql.end());

let devices = 0;
const newDevice = (): number => ++devices;
const pointOf = (deviceId: number, second: number, values: Partial<Fix> = {}): BatchPoint => ({
  deviceId,
  fix: fixOf(String(350_000_000_000_000 + deviceId), START_MS + second * 1_000, {
    lat: second / MINUTE / 100,
    lng: 0,
    speedKmh: null,
    ...values,
  }),
});
const store = (...late: readonly BatchPoint[]): Promise<boolean[]> =>
  sql.begin((tx) => storeLate(tx, late, START_MS, () => assert.fail()));
const speedsOf = async (deviceId: number): Promise<number[]> => {
  const rows = await sql<{ speed_kmh: number }[]>`
    select speed_kmh from position where device_id = ${deviceId} order by recorded_at`;
  return rows.map((row) => row.speed_kmh);
};
const assertNear = (speeds: readonly number[], hundredthsAMinute: readonly number[]): void => {
  assert.equal(speeds.length, hundredthsAMinute.length);
  speeds.forEach((speed, n) => {
    const expected = (hundredthsAMinute[n] as number) * HUNDREDTH_A_MINUTE_KMH;
    assert.ok(Math.abs(speed - expected) <= expected * 1e-5, `${speed} is not ${expected}`);
  });
};

describe('late points', () => {
  test('are reported as new or not, each for itself; what is stored already stays', async () => {
    const [a, b] = [newDevice(), newDevice()];
    assert.deepEqual(await store(pointOf(a, 0, { speedKmh: 5 }), pointOf(a, 60, { speedKmh: 6 })), [
      true,
      true,
    ]);
    const again = [
      pointOf(a, 0, { speedKmh: 7 }),
      pointOf(a, 30, { speedKmh: 8 }),
      pointOf(b, 0, { speedKmh: 9 }),
    ];
    assert.deepEqual(await store(...again), [false, true, true]);
    assert.deepEqual([await speedsOf(a), await speedsOf(b)], [[5, 8, 6], [9]]);
  });

  test('keep the speed that they report, zero too', async () => {
    const id = newDevice();
    await store(pointOf(id, 0), pointOf(id, 60, { speedKmh: 0 }), pointOf(id, 120, { speedKmh: 33 }));
    assert.deepEqual(await speedsOf(id), [0, 0, 33]);
  });

  test('without a speed derive it from the stored point before them, not from one after them', async () => {
    const id = newDevice();
    await store(pointOf(id, 0), pointOf(id, 10 * MINUTE, { lat: 5 }));
    await store(pointOf(id, 2 * MINUTE, { lat: 0.04 }));
    assertNear((await speedsOf(id)).slice(0, 2), [0, 2]);
  });

  test('without a speed derive it from the previous point of the batch, when that is nearer in time', async () => {
    const id = newDevice();
    await store(pointOf(id, 0));
    await store(pointOf(id, MINUTE, { lat: 0.03 }), pointOf(id, 2 * MINUTE, { lat: 0.04 }));
    assertNear(await speedsOf(id), [0, 3, 1]);
  });

  test('without a speed derive it from a stored point between them and the previous one of the batch', async () => {
    const id = newDevice();
    await store(pointOf(id, MINUTE, { lat: 0.03 }));
    await store(pointOf(id, 0, { lat: 0.01 }), pointOf(id, 2 * MINUTE, { lat: 0.04 }));
    assertNear(await speedsOf(id), [0, 0, 1]);
  });

  test('never derive a speed from another device', async () => {
    const [a, b] = [newDevice(), newDevice()];
    await store(pointOf(a, 0), pointOf(b, MINUTE, { lat: 1 }));
    assert.deepEqual(await speedsOf(b), [0]);
  });

  test('have no speed when the point before them is more than ten minutes older', async () => {
    const id = newDevice();
    await store(pointOf(id, 0), pointOf(id, 10 * MINUTE), pointOf(id, 20 * MINUTE + 1, { lat: 1 }));
    assertNear(await speedsOf(id), [0, 1, 0]);
  });
});
