import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { PACKED_POINTS_MAX } from '../../src/history/codec/packedBlob.ts';
import type { PackedSpan } from '../../src/history/packedPoints.sql.ts';
import { planPacking } from '../../src/history/packHistory.ts';
import { DAY_MS, HOUR_MS } from '../../src/lib/time.ts';

const MONDAY_MS = Date.UTC(2026, 2, 2);
const at = (day: number, hour: number): number => MONDAY_MS + day * DAY_MS + hour * HOUR_MS;
/** Packed points from eight to twenty o'clock. */
const packed = (day: number, count: number): PackedSpan => ({
  ...{ deviceId: 1, count, firstMs: at(day, 8), lastMs: at(day, 20) },
});
const rows = (day: number, hour: number, count: number): number[] =>
  Array.from({ length: count }, (_, n) => at(day, hour) + n * 1_000);

const [MONDAY, FEW, WEDNESDAY] = [packed(0, 1_000), packed(0, 40), packed(2, 1_000)];
const FULL = packed(0, PACKED_POINTS_MAX);
const TWO = [MONDAY, WEDNESDAY];

const CASES: readonly [what: string, times: number[], spans: PackedSpan[], count: number, into: unknown][] = [
  ['the first of a week', rows(0, 1, 100), [], 100, null],
  ['a day of its own', rows(1, 1, 100), [MONDAY], 100, null],
  ['late ones join what they lie in', rows(0, 9, 5), TWO, 5, MONDAY],
  ['late ones after the last of their day join it', rows(0, 21, 5), TWO, 5, MONDAY],
  ['late ones before the first of their day join it', rows(2, 1, 5), TWO, 5, WEDNESDAY],
  ['a day goes on behind a full row', rows(0, 21, 500), [FULL], 500, null],
  ['late ones in a full row join it, and it is divided', rows(0, 9, 5), [FULL], 5, FULL],
  ['few of a day join the few before', rows(1, 1, 49), [FEW, WEDNESDAY], 49, FEW],
  ['few of a day do not join many', rows(1, 1, 49), [MONDAY], 49, null],
  ['many of a day do not join few', rows(1, 1, 50), [FEW], 50, null],
  ['late ones between two days are their own day', rows(1, 1, 3), TWO, 3, null],
  ['what reaches beyond the next is divided there', [...rows(2, 7, 3), ...rows(2, 9, 4)], TWO, 3, WEDNESDAY],
];

describe('what is packed together', () => {
  for (const [what, times, spans, count, into] of CASES)
    test(what, () => assert.deepEqual(planPacking(Float64Array.from(times), spans), { count, into }));
});
