import { derivedSpeedKmh } from '../engine/derivedSpeed.ts';
import type { BatchEntry } from '../engine/evaluateBatch.ts';
import { insertPositions, type StoredFix, selectPredecessors } from '../store/positions.ts';
import type { Tx } from '../store/sql.ts';

/**
 * Stores points that are not newer than their device's newest one, given in time order per device; tells for each
 * whether it was new. A missing speed is derived from the point before it, stored or in this very batch.
 */
export async function storeBehind(tx: Tx, behind: readonly BatchEntry[]): Promise<boolean[]> {
  const speedless = behind.flatMap((entry, i) =>
    entry.fix.speedKmh === null ? [{ entry, before: behind[i - 1] }] : [],
  );
  const predecessors = await selectPredecessors(
    tx,
    speedless.map(({ entry }) => ({ deviceId: entry.deviceId, recordedAtMs: entry.fix.recordedAtMs })),
  );
  const speeds = new Map(
    speedless.map(({ entry, before }, i) => {
      const inBatch = before?.deviceId === entry.deviceId ? before.fix : null;
      const inStore = predecessors[i] ?? null;
      const nearer =
        inBatch !== null && (inStore === null || inBatch.recordedAtMs > inStore.recordedAtMs)
          ? inBatch
          : inStore;
      return [entry, nearer === null ? 0 : derivedSpeedKmh(nearer, entry.fix)];
    }),
  );
  return insertPositions(
    tx,
    behind.map((entry) => storedFix(entry, entry.fix.speedKmh ?? speeds.get(entry) ?? 0)),
  );
}

/** A point with its device and its speed, as it is stored. */
export const storedFix = ({ deviceId, fix }: BatchEntry, speedKmh: number): StoredFix => ({
  deviceId,
  recordedAtMs: fix.recordedAtMs,
  lat: fix.lat,
  lng: fix.lng,
  altitudeM: fix.altitudeM,
  speedKmh,
  heading: fix.heading,
  satellites: fix.satellites,
  odometerKm: fix.odometerKm,
});
