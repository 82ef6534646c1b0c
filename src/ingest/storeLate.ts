import type { OnDamaged } from '../history/packedPoints.sql.ts';
import type { Tx } from '../postgres/sql.ts';
import { derivedSpeedKmh } from './deviceEvents.ts';
import type { BatchPoint } from './fix.ts';
import { insertLatePositions, type StoredFix, selectPredecessors } from './positions.sql.ts';

/**
 * Stores late points, sorted by device and time, and returns for each whether it is new. A missing speed is derived
 * from the point before it, which is stored or in the same batch.
 */
export async function storeLate(
  tx: Tx,
  late: readonly BatchPoint[],
  nowMs: number,
  onDamaged: OnDamaged,
): Promise<boolean[]> {
  const withoutSpeed = late.flatMap((point, n) =>
    point.fix.speedKmh === null ? [{ point, previous: late[n - 1] }] : [],
  );
  const predecessors = await selectPredecessors(
    tx,
    withoutSpeed.map(({ point }) => ({
      deviceId: point.deviceId,
      recordedAtMs: point.fix.recordedAtMs,
    })),
    nowMs,
    onDamaged,
  );
  const speeds = new Map(
    withoutSpeed.map(({ point, previous }, n) => {
      const inBatch = previous?.deviceId === point.deviceId ? previous.fix : null;
      const inStore = predecessors[n] ?? null;
      const nearer =
        inBatch !== null && (inStore === null || inBatch.recordedAtMs > inStore.recordedAtMs)
          ? inBatch
          : inStore;
      return [point, nearer === null ? 0 : derivedSpeedKmh(nearer, point.fix)];
    }),
  );
  return insertLatePositions(
    tx,
    late.map((point) => storedFix(point, point.fix.speedKmh ?? speeds.get(point) ?? 0)),
    nowMs,
    onDamaged,
  );
}

/** A point with its device and its speed, as it is stored. */
export const storedFix = ({ deviceId, fix }: BatchPoint, speedKmh: number): StoredFix => ({
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
