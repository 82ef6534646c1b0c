import assert from 'node:assert/strict';
import { test } from 'node:test';
import { highestSpeeds } from '../../src/console/page/views/dayCourse.ts';

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
