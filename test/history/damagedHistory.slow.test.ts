import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { pino } from 'pino';
import { DAY_MS } from '../../src/lib/time.ts';
import { packPoints } from '../support/history/packPoints.ts';
import { ownerPod } from '../support/ownerPod.ts';

const VAN = '350000000000001';
const TODAY_MS = Math.floor(Date.now() / DAY_MS) * DAY_MS;
/** The days with points, and the one among them whose bytes change. */
const DAYS = [9, 7, 5, 3];
const DAMAGED = 7;
const dayMs = (day: number): number => TODAY_MS - day * DAY_MS;
const iso = (ms: number): string => new Date(ms).toISOString();
const ofDay = (day: number): string => `from=${iso(dayMs(day))}&to=${iso(dayMs(day - 1) - 1)}`;

describe('a damaged day', () => {
  const logged: { level: number; msg: string }[] = [];
  const log = pino({ level: 'info' }, { write: (line: string) => void logged.push(JSON.parse(line)) });
  const owner = ownerPod({ devices: [{ imei: VAN }], log }, async ({ pod, sql }) => {
    const place = { imei: VAN, latitude: 41.9, longitude: 12.5, speed_kmh: 50 };
    for (const day of DAYS)
      await pod.points(
        Array.from({ length: 200 }, (_, n) => ({ ...place, recorded_at: dayMs(day) + n * 60_000 })),
      );
    await pod.points([{ ...place, recorded_at: Date.now() - 60_000 }]);
    assert.equal((await packPoints(sql)).points, 800);
    const { count } = await sql`
      update packed_points set points = set_byte(points, 40, get_byte(points, 40) # 1)
      where first_at = ${new Date(dayMs(DAMAGED))}`;
    assert.equal(count, 1);
  });
  const read = (path: string) => owner.pod.get(`/api/v3/devices/${VAN}/history${path}`, owner.key);
  const said = (): number => logged.filter(({ msg }) => msg.startsWith('packed points are damaged')).length;

  test('is an error that names it, in the log and in the metrics', async () => {
    const before = said();
    for (const path of [
      `?${ofDay(DAMAGED)}`,
      '?limit=1000',
      `/summary?${ofDay(DAMAGED)}`,
      `/export?${ofDay(DAMAGED)}`,
    ]) {
      const { status, body } = await read(path);
      assert.deepEqual([status, body.error.code], [500, 'INTERNAL_ERROR'], path);
      const [first, last] = [iso(dayMs(DAMAGED)), iso(dayMs(DAMAGED) + 199 * 60_000)];
      assert.equal(
        body.error.message,
        `the points from ${first} to ${last} are damaged; leave them out with from and to`,
      );
    }
    assert.equal(said() - before, 4);
    assert.ok(logged.every(({ level, msg }) => level < 50 || msg.startsWith('packed points are damaged')));
    const text = await (await fetch(`${owner.pod.ingest}/metrics`)).text();
    assert.match(text, /fleet_history_damaged_total [1-9]/);
    assert.match(text, /fleet_history_packed_points_total 0/);
  });

  test('costs no other day anything', async () => {
    for (const day of DAYS.filter((each) => each !== DAMAGED)) {
      assert.equal((await read(`?${ofDay(day)}&limit=1000`)).body.data.length, 200);
      assert.equal((await read(`/summary?${ofDay(day)}`)).body.data[0].points, 200);
    }
    // The newest page ends before it.
    assert.equal((await read('?limit=401')).body.data.length, 401);
    assert.equal(
      (await read(`/export?to=${iso(dayMs(DAMAGED) - 1)}`)).text.trimEnd().split('\n').length,
      200,
    );
    assert.equal((await owner.pod.get(`/api/v3/devices/${VAN}`, owner.key)).status, 200);
  });

  test('cuts an export that has begun before it, so it is not taken for whole', async () => {
    const place = { imei: VAN, latitude: 41.9, longitude: 12.5, speed_kmh: 50 };
    const many = Array.from({ length: 9_000 }, (_, n) => ({ ...place, recorded_at: dayMs(20) + n * 60_000 }));
    await owner.pod.points(many);
    await assert.rejects(read('/export'));
  });

  test('takes late points, which are shown once it is whole again', async () => {
    const late = { imei: VAN, latitude: 42, longitude: 12.5, recorded_at: dayMs(DAMAGED) + 30_000 };
    assert.equal((await owner.pod.points([late])).late, 1);
    const { damaged } = await packPoints(owner.sql);
    assert.equal(damaged.length, 1, 'it is left as it is');
    await owner.sql`
      update packed_points set points = set_byte(points, 40, get_byte(points, 40) # 1)
      where first_at = ${new Date(dayMs(DAMAGED))}`;
    assert.equal((await packPoints(owner.sql)).points, 1);
    assert.equal((await read(`?${ofDay(DAMAGED)}&limit=1000`)).body.data.length, 201);
  });
});
