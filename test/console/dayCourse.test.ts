import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { FleetEvent, HistoryPeriod } from '../../src/console/page/types.ts';
import { highestSpeeds, marksOf } from '../../src/console/page/views/dayCourse.ts';
import { legsOf } from '../../src/console/page/views/vehicleDay.ts';

const MINUTE_MS = 60_000;
/** A point at a minute of a window of 300 minutes, which the graph is 300 units wide for. */
const at = (minute: number, speedKmh: number) => ({
  atMs: minute * MINUTE_MS,
  lat: 41.9,
  lng: 12.5,
  speedKmh,
});

test('the graph holds a speed until the next point, and drops it where that is long in coming', () => {
  const speeds = highestSpeeds(
    [at(2, 30), at(5, 50), at(40, 20), at(40.1, 70), at(40.2, 10)],
    0,
    300 * MINUTE_MS,
  );
  assert.equal(speeds.length, 301);
  const runs: [speedKmh: number, from: number][] = [];
  for (const [x, speed] of speeds.entries()) if (speed !== runs.at(-1)?.[0]) runs.push([speed, x]);
  assert.deepEqual(runs, [
    [0, 0],
    [30, 2],
    [50, 5],
    [0, 15],
    [70, 40],
    [10, 41],
    [0, 50],
  ]);
});

const isoAt = (minute: number): string => new Date(minute * MINUTE_MS).toISOString();

test('a day is told as trips with the stops before, between and after them, and where a stop has no points', () => {
  const trip = (from: number, to: number, distance_km: number) =>
    ({ from: isoAt(from), to: isoAt(to), distance_km }) as HistoryPeriod;
  const minutes = [0, 5, 10, 20, 30, 35, 40, 50, 60, 75, 90, 91];
  const points = minutes.map((minute) => ({ atMs: minute * MINUTE_MS }));
  const told = (trips: HistoryPeriod[], of = points) =>
    legsOf(trips, of).map(({ fromMs, toMs, km, hasGap }) => [
      fromMs / MINUTE_MS,
      toMs / MINUTE_MS,
      km,
      ...(hasGap ? ['a gap'] : []),
    ]);
  assert.deepEqual(told([trip(10, 30, 12), trip(40, 60, 8), trip(90, 91, 1)]), [
    [0, 10, null],
    [10, 30, 12],
    [30, 40, null],
    [40, 60, 8],
    [60, 90, null, 'a gap'],
    [90, 91, 1],
  ]);
  assert.deepEqual(told([trip(0, 90, 40)]), [[0, 90, 40]], 'a minute is no stop');
  assert.deepEqual(told([]), [[0, 91, null, 'a gap']]);
  assert.deepEqual(told([], []), []);
  assert.deepEqual(told([trip(5, 9, 3)], []), [[5, 9, 3]], 'the points are not there yet');
});

test('events stand on the line where they happened, by what they are; those outside of it are left out', () => {
  const event = (minute: number, type: string, data: object = {}) =>
    ({ type, data, message: 'Van 12 …', occurred_at: isoAt(minute) }) as FleetEvent;
  const entry = { areaId: 1, event: 'entry' };
  const events = [
    event(-1, 'alarm'),
    event(0, 'alarm'),
    event(50, 'geofence', entry),
    event(75, 'geofence', { ...entry, event: 'exit' }),
    event(100, 'ignition_off'),
    event(101, 'alarm'),
  ];
  assert.deepEqual(
    marksOf(events, 0, 100 * MINUTE_MS).map(({ x, sign }) => [x, sign]),
    [
      [0, 'alarm'],
      [50, 'enter'],
      [75, 'leave'],
      [100, 'other'],
    ],
  );
});
