import { invariant } from '../../lib/invariant.ts';

/** A device is inside an area, or was at its newest point. Kept with the device's state, from point to point. */
export interface Stay {
  readonly areaId: number;
  /** GPS time of the first point inside. */
  readonly insideSinceMs: number;
  /** GPS time of the point that completed the minimum stay and produced the entry; null: still pending. */
  readonly confirmedAtMs: number | null;
}

/** A device that is in no area. Stays are ordered by area, at most one for each. */
export const NO_STAYS: readonly Stay[] = [];

/** Where the stay in this area, or in the next one by id, is in the list. */
export function indexOfArea(stays: readonly Stay[], areaId: number): number {
  let low = 0;
  let high = stays.length;
  while (low < high) {
    const mid = (low + high) >> 1;
    if ((stays[mid] as Stay).areaId < areaId) low = mid + 1;
    else high = mid;
  }
  return low;
}

/** The stays of a device as compact JSON: [[areaId, insideSinceMs, confirmedAtMs or null], …]. */
export function encodeStays(stays: readonly Stay[]): string {
  if (stays.length === 0) return NONE;
  return JSON.stringify(
    stays.map(({ areaId, insideSinceMs, confirmedAtMs }) => [areaId, insideSinceMs, confirmedAtMs]),
  );
}

/** What `encodeStays` made, as text or already parsed → the stays. Anything else is a bug and throws. */
export function decodeStays(stored: unknown): readonly Stay[] {
  if (stored === NONE) return NO_STAYS;
  const rows: unknown = typeof stored === 'string' ? JSON.parse(stored) : stored;
  invariant(Array.isArray(rows), 'stays are stored as a list');
  let previousId = 0;
  return rows.map((row: unknown): Stay => {
    invariant(Array.isArray(row) && row.length === 3, 'a stay is stored as three values');
    const [areaId, insideSinceMs, confirmedAtMs]: unknown[] = row;
    invariant(isInteger(areaId) && areaId > previousId, 'stays are stored in the order of their areas');
    invariant(isInteger(insideSinceMs), 'a stay has a beginning');
    invariant(confirmedAtMs === null || isInteger(confirmedAtMs), 'a stay is confirmed at a time or not yet');
    previousId = areaId;
    return { areaId, insideSinceMs, confirmedAtMs };
  });
}

const NONE = '[]';

function isInteger(value: unknown): value is number {
  return Number.isSafeInteger(value);
}
