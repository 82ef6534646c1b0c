import type { OnDamaged } from '../history/packedPoints.sql.ts';
import { HOUR_MS } from '../lib/time.ts';
import type { Tx } from '../postgres/sql.ts';
import type { BatchPoint, RateExceeded } from './fix.ts';
import { findStored, type LockedState } from './points.sql.ts';

/** Points that a device may store in a second, on average over an hour: those of an hour may come at once. */
export const POINTS_PER_SECOND = 10;

const POINT_MS = 1_000 / POINTS_PER_SECOND;

export const BURST_POINTS = HOUR_MS / POINT_MS;

/**
 * The points of locked devices that are too many for their rate, with when to send them again. Points are counted in the
 * order in which they were sent. One that is stored already, or that repeats another, stores nothing and does not count.
 */
export async function beyondRate<Point extends BatchPoint>(
  tx: Tx,
  points: readonly Point[],
  locked: ReadonlyMap<number, LockedState>,
  nowMs: number,
  onDamaged: OnDamaged,
): Promise<ReadonlyMap<Point, RateExceeded>> {
  const beyond = new Map<Point, RateExceeded>();
  let mostOwedMs = 0;
  for (const { owedMs } of locked.values()) if (owedMs > mostOwedMs) mostOwedMs = owedMs;
  if (roomOf(mostOwedMs) >= points.length) return beyond;
  const crowded = [...Map.groupBy(points, ({ deviceId }) => deviceId)].filter(
    ([deviceId, sent]) => sent.length > roomOf(locked.get(deviceId)?.owedMs ?? 0),
  );
  const late = crowded.flatMap(([deviceId, sent]) => {
    const newestMs = locked.get(deviceId)?.state.recordedAtMs ?? Number.NEGATIVE_INFINITY;
    return sent.filter(({ fix }) => fix.recordedAtMs <= newestMs);
  });
  const keys = late.map(({ deviceId, fix }) => ({ deviceId, recordedAtMs: fix.recordedAtMs }));
  const isStored = await findStored(tx, keys, nowMs, onDamaged);
  const stored = new Set(late.filter((_, n) => isStored[n]));
  for (const [deviceId, sent] of crowded) {
    const owedMs = locked.get(deviceId)?.owedMs ?? 0;
    const decided = new Map<number, RateExceeded | null>();
    let ordinal = 0;
    for (const point of sent) {
      if (stored.has(point)) continue;
      const { recordedAtMs } = point.fix;
      // What repeats a point is stored no more than the point itself.
      let exceeded = decided.get(recordedAtMs);
      if (exceeded === undefined) {
        ordinal++;
        exceeded = ordinal > roomOf(owedMs) ? { retryAtMs: roomAtMs(owedMs, ordinal, nowMs) } : null;
        decided.set(recordedAtMs, exceeded);
      }
      if (exceeded !== null) beyond.set(point, exceeded);
    }
  }
  return beyond;
}

/** What the devices of these points owe for them, and for those before. Points of one device that follow each other cost little. */
export function owedBy(
  stored: Iterable<BatchPoint>,
  locked: ReadonlyMap<number, LockedState>,
): Map<number, number> {
  const owedMs = new Map<number, number>();
  let device = Number.NaN;
  let owed = 0;
  for (const { deviceId } of stored) {
    if (deviceId !== device) {
      if (owed > 0) owedMs.set(device, owed);
      device = deviceId;
      owed = owedMs.get(deviceId) ?? (locked.get(deviceId) as LockedState).owedMs;
    }
    owed = owedAfter(owed, 1);
  }
  if (owed > 0) owedMs.set(device, owed);
  return owedMs;
}

/**
 * What a device owes after storing points: the time that they would have taken at the highest rate, less the time that
 * has passed. It may owe an hour.
 */
export function owedAfter(owedMs: number, stored: number): number {
  return owedMs + stored * POINT_MS;
}

/** How many points a device may store that owes so much. */
export function roomOf(owedMs: number): number {
  return Math.max(0, Math.floor((HOUR_MS - owedMs) / POINT_MS));
}

/** When there is room for the point with this ordinal, from 1, among those that a device has sent and not stored yet. */
export function roomAtMs(owedMs: number, ordinal: number, nowMs: number): number {
  return Math.ceil(nowMs + owedAfter(owedMs, ordinal) - HOUR_MS);
}
