import assert from 'node:assert/strict';
import { test } from 'node:test';
import { crosses } from '../../src/explain/areaCrossing.ts';
import { AreaReplay } from '../../src/explain/backtest/areaReplay.ts';
import { PointReplay } from '../../src/explain/pointReplay.ts';
import { PresenceTally } from '../../src/history/presence.ts';
import type { Steps } from '../../src/lib/workTurns.ts';
import { spin } from '../support/spin.ts';

// One evaluation may take milliseconds. None of these computations makes others wait for two of them.

const COUNT = 40;
const EVERYWHERE = { minX: -180, maxX: 180, minY: -90, maxY: 90 };
const times = Float64Array.from({ length: COUNT }, (_, n) => n * 1_000);
const columns = {
  count: COUNT,
  recordedAtMs: times,
  lats: Float64Array.from(times, (_, n) => n / 1e6),
  lngs: new Float64Array(COUNT),
};
const expensive = {
  contains: () => {
    spin(0.5);
    return true;
  },
  signedDistanceM: () => {
    spin(0.5);
    return 1;
  },
  boxes: () => [EVERYWHERE],
};

function stepsOf(steps: Steps<unknown>): number {
  let count = 1;
  while (steps.next().done !== true) count++;
  return count;
}

test('a replay of a backtest pauses after each', () => {
  const replay = new AreaReplay(expensive, [0], 0);
  replay.begin('350000000000001');
  assert.ok(stepsOf(replay.take({ ...columns, lates: new Float64Array(COUNT) }, new Set())) >= COUNT);
});

test('a presence pauses after each', () => {
  const place = { ...expensive, boxes: [EVERYWHERE], closenessM: () => 0 };
  assert.ok(stepsOf(new PresenceTally(place).take(columns)) >= COUNT);
});

test('an explanation pauses after each', () => {
  const periods = [
    {
      sinceMs: Number.NEGATIVE_INFINITY,
      state: 'watched' as const,
      shape: { compiled: () => expensive },
      dwellSeconds: 0,
      isKnown: true,
    },
  ];
  const replay = new PointReplay({
    areaId: 1,
    periods,
    fromMs: 0,
    stay: null,
    refused: null,
    withSteps: true,
  });
  const received = { receivedAtMs: times, lates: new Float64Array(COUNT) };
  assert.ok(stepsOf(replay.take({ ...columns, ...received })) >= COUNT);
});

test('a look along a way pauses after each', () => {
  const end = { lat: 0, lng: 0, distanceM: 1 };
  assert.ok(stepsOf(crosses(expensive, end, { ...end, lng: 0.001 }, COUNT)) >= COUNT / 2);
});
