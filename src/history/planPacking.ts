import { DAY_MS } from '../lib/durations.ts';
import { PACKED_POINTS_MAX } from './codec/packedBlob.ts';
import type { PackedSpan } from './packedPoints.sql.ts';

/** A day with fewer points is packed together with the days before it. */
const SPARSE_DAY_POINTS = 50;
/** A week of such days. */
const SPARSE_WEEK_POINTS = 7 * SPARSE_DAY_POINTS;

/** How many of the rows, from the first on, are packed together, and with which points that are packed already. */
export interface PackingPlan {
  readonly count: number;
  readonly into: PackedSpan | null;
}

/**
 * What to pack next of the rows of one device and day, oldest first. `spans` are the packed points of the device in that
 * week, in order. Packed points never overlap, so late points join those that they lie between, and are packed beside
 * those of their day otherwise.
 */
export function planPacking(timesMs: Float64Array, spans: readonly PackedSpan[]): PackingPlan {
  const firstMs = timesMs[0] as number;
  const later = spans.find((span) => span.firstMs > firstMs) ?? null;
  const earlier = spans.findLast((span) => span.firstMs <= firstMs) ?? null;
  const before = later === null ? -1 : timesMs.findIndex((ms) => ms >= later.firstMs);
  const count = before === -1 ? timesMs.length : before;
  if (earlier !== null) {
    const isInside = earlier.lastMs >= firstMs;
    const isOfDay = dayOf(earlier.lastMs) === dayOf(firstMs) && earlier.count < PACKED_POINTS_MAX;
    if (isInside || isOfDay) return { count, into: earlier };
  }
  if (later !== null && dayOf(later.firstMs) === dayOf(firstMs)) return { count, into: later };
  const isSparse =
    earlier !== null && count < SPARSE_DAY_POINTS && earlier.count + count <= SPARSE_WEEK_POINTS;
  return { count, into: isSparse ? earlier : null };
}

/** So many late points are packed in at once, and so large a part of what was packed. */
const LATE_POINTS = 100;
const LATE_SHARE = 0.1;

/**
 * Whether late points are packed in now. To pack in one point costs as much as to pack all that it joins, so few of them
 * wait, as rows that every reader finds, until there are more or the first has waited for `waitMs`. `receivedAtMs`: NaN
 * where it is not known. What is joined with a day before because both are sparse waits in the same way.
 */
export function isWorthPacking(
  receivedAtMs: Float64Array,
  { count, into }: PackingPlan,
  nowMs: number,
  waitMs: number,
): boolean {
  if (into === null || count >= LATE_POINTS || count >= LATE_SHARE * into.count) return true;
  const oldestMs = nowMs - waitMs;
  return receivedAtMs.subarray(0, count).some((ms) => !(ms > oldestMs));
}

/** The number of the day, in UTC. */
const dayOf = (ms: number): number => Math.floor(ms / DAY_MS);
