import type { Stay } from '../../devices/stays/stays.ts';

export interface StayStep {
  /** The very `stay` that was given when the point changes nothing; null: not inside. */
  readonly stay: Stay | null;
  readonly transition: 'entry' | 'exit' | null;
}

/**
 * One point of a device against one area: the state before it → the state after it, and what it produces. Points
 * come in the order of their GPS times. `inside` is by the shape that the area has now, and `dwellSeconds` is its
 * present threshold; `atMs` is the GPS time of the point. Elapsed: from the first inside point to this one.
 *
 *   before      the point   and                              after       produces   rule of the API document
 *   none        outside                                      none        -          4: passing through is nothing
 *   none        inside      dwellSeconds is 0                confirmed   entry      1: at once
 *   none        inside      dwellSeconds is more than 0      pending     -          2: not before the minimum stay
 *   pending     outside                                      none        -          3: the count resets; 5: no exit
 *   pending     inside      elapsed <  dwellSeconds          pending     -          2: by GPS time
 *   pending     inside      elapsed >= dwellSeconds          confirmed   entry      2: equality is enough
 *   confirmed   inside      whatever dwellSeconds is now     confirmed   -          an entry is reported once
 *   confirmed   outside                                      none        exit       5: after an entry only
 *
 * No timer ever confirms a stay. A threshold that was changed while a stay is pending holds from the next point on,
 * counted from the beginning that was kept.
 */
export function stepStay(
  stay: Stay | null,
  area: { readonly id: number; readonly definition: { readonly dwellSeconds: number } },
  inside: boolean,
  atMs: number,
): StayStep {
  if (!inside) return stay === null || stay.confirmedAtMs === null ? NOT_INSIDE : LEFT;
  if (stay !== null && stay.confirmedAtMs !== null) return { stay, transition: null };
  const insideSinceMs = stay === null ? atMs : stay.insideSinceMs;
  if (atMs - insideSinceMs >= area.definition.dwellSeconds * 1_000) {
    return { stay: { areaId: area.id, insideSinceMs, confirmedAtMs: atMs }, transition: 'entry' };
  }
  return { stay: stay ?? { areaId: area.id, insideSinceMs, confirmedAtMs: null }, transition: null };
}

const NOT_INSIDE: StayStep = { stay: null, transition: null };
const LEFT: StayStep = { stay: null, transition: 'exit' };
