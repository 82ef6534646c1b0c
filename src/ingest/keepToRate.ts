import type { OnDamaged } from '../history/packedLookup.sql.ts';
import type { Tx } from '../postgres/sql.ts';
import type { LockedState } from './deviceStates.sql.ts';
import type { BatchPoint } from './evaluateBatch.ts';
import { type RateExceeded, roomAtMs, roomOf } from './pointRate.ts';
import { findStored } from './positions.sql.ts';

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
  const roomOfDevice = (deviceId: number): number => roomOf(locked.get(deviceId)?.owedMs ?? 0);
  if ([...locked.keys()].every((deviceId) => roomOfDevice(deviceId) >= points.length)) return beyond;
  const crowded = [...Map.groupBy(points, ({ deviceId }) => deviceId)].filter(
    ([deviceId, sent]) => sent.length > roomOfDevice(deviceId),
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
    let place = 0;
    for (const point of sent) {
      if (stored.has(point)) continue;
      const { recordedAtMs } = point.fix;
      // What repeats a point is stored no more than the point itself.
      let exceeded = decided.get(recordedAtMs);
      if (exceeded === undefined) {
        place++;
        exceeded = place > roomOf(owedMs) ? { retryAtMs: roomAtMs(owedMs, place, nowMs) } : null;
        decided.set(recordedAtMs, exceeded);
      }
      if (exceeded !== null) beyond.set(point, exceeded);
    }
  }
  return beyond;
}
