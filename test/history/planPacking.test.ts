import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { PackedSpan } from '../../src/history/packedPoints.sql.ts';
import { type PackingPlan, planPacking } from '../../src/history/packHistory.ts';
import { DAY_MS } from '../../src/lib/time.ts';

const MONDAY_MS = Date.UTC(2026, 2, 2);
const HOUR_MS = 3_600_000;
const at = (day: number, hour: number): number => MONDAY_MS + day * DAY_MS + hour * HOUR_MS;
const span = (firstMs: number, lastMs: number, count: number): PackedSpan => ({
  deviceId: 1,
  firstMs,
  lastMs,
  count,
});
const many = (day: number, hour: number, count: number): number[] =>
  Array.from({ length: count }, (_, n) => at(day, hour) + n * 1_000);

const MONDAY = span(at(0, 8), at(0, 20), 4_000);
const FEW = span(at(0, 8), at(0, 20), 40);
const FULL = span(at(0, 8), at(0, 20), 10_000);
const WEDNESDAY = span(at(2, 8), at(2, 20), 4_000);

const CASES: readonly [what: string, times: number[], spans: PackedSpan[], plan: PackingPlan][] = [
  ['the first of a week', many(0, 1, 100), [], { count: 100, into: null }],
  ['a day of its own', many(1, 1, 100), [MONDAY], { count: 100, into: null }],
  ['late ones join what they lie in', many(0, 9, 5), [MONDAY, WEDNESDAY], { count: 5, into: MONDAY }],
  [
    'late ones after the last of their day join it',
    many(0, 21, 5),
    [MONDAY, WEDNESDAY],
    { count: 5, into: MONDAY },
  ],
  [
    'late ones before the first of their day join it',
    many(2, 1, 5),
    [MONDAY, WEDNESDAY],
    { count: 5, into: WEDNESDAY },
  ],
  ['a day goes on behind a full row', many(0, 21, 500), [FULL], { count: 500, into: null }],
  ['late ones in a full row join it, and it is divided', many(0, 9, 5), [FULL], { count: 5, into: FULL }],
  ['few of a day join the few before', many(1, 1, 49), [FEW, WEDNESDAY], { count: 49, into: FEW }],
  ['few of a day do not join many', many(1, 1, 49), [MONDAY], { count: 49, into: null }],
  ['many of a day do not join few', many(1, 1, 50), [FEW], { count: 50, into: null }],
  [
    'late ones between two days are their own day',
    many(1, 1, 3),
    [MONDAY, WEDNESDAY],
    { count: 3, into: null },
  ],
  [
    'what reaches beyond the next packed points is divided there',
    [...many(2, 7, 3), ...many(2, 9, 4)],
    [MONDAY, WEDNESDAY],
    { count: 3, into: WEDNESDAY },
  ],
];

describe('what is packed together', () => {
  for (const [what, times, spans, plan] of CASES)
    test(what, () => assert.deepEqual(planPacking(Float64Array.from(times), spans), plan));
});
