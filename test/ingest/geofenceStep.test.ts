import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Stay } from '../../src/devices/stays/stays.ts';
import { stepStay } from '../../src/ingest/geofences.ts';

const PENDING: Stay = { areaId: 7, insideSinceMs: 1_000, confirmedAtMs: null };
const CONFIRMED: Stay = { areaId: 7, insideSinceMs: 1_000, confirmedAtMs: 5_000 };

const since = (insideSinceMs: number, confirmedAtMs: number | null): Stay => ({
  areaId: 7,
  insideSinceMs,
  confirmedAtMs,
});

// Row by row the table above stepStay.
const TABLE: readonly (readonly [
  title: string,
  before: Stay | null,
  inside: boolean,
  dwellSeconds: number,
  atMs: number,
  after: Stay | null,
  transition: 'entry' | 'exit' | null,
])[] = [
  ['none, outside', null, false, 0, 9_000, null, null],
  ['none, inside, no threshold', null, true, 0, 9_000, since(9_000, 9_000), 'entry'],
  ['none, inside, a threshold', null, true, 1, 9_000, since(9_000, null), null],
  ['pending, outside, too early', PENDING, false, 60, 9_000, null, null],
  ['pending, outside, late enough', PENDING, false, 60, 61_000, null, null],
  ['pending, inside, too early', PENDING, true, 60, 60_999, PENDING, null],
  ['pending, inside, at the threshold', PENDING, true, 60, 61_000, since(1_000, 61_000), 'entry'],
  ['pending, inside, after it', PENDING, true, 60, 99_000, since(1_000, 99_000), 'entry'],
  ['pending, inside, threshold gone', PENDING, true, 0, 1_001, since(1_000, 1_001), 'entry'],
  ['confirmed, inside', CONFIRMED, true, 0, 9_000, CONFIRMED, null],
  ['confirmed, inside, threshold raised', CONFIRMED, true, 86_400, 9_000, CONFIRMED, null],
  ['confirmed, outside', CONFIRMED, false, 0, 9_000, null, 'exit'],
  ['confirmed, outside, threshold raised', CONFIRMED, false, 86_400, 9_000, null, 'exit'],
];

describe('a stay', () => {
  for (const [title, before, inside, dwellSeconds, atMs, after, transition] of TABLE) {
    test(title, () => {
      const step = stepStay(before, { id: 7, definition: { dwellSeconds } }, inside, atMs);
      assert.deepEqual(step, { stay: after, transition });
      if (before !== null && after === before) assert.equal(step.stay, before, 'the same object');
    });
  }
});
