import type { IndexBox } from '../geo/measure.ts';
import { Pace, type Steps } from '../lib/workTurns.ts';
import type { PointColumns } from './codec/pointColumns.ts';

/** The place that is asked about. */
export interface Place {
  contains(lat: number, lng: number): boolean;
  /** Metres by which the closest point is chosen; may be negative. */
  closenessM(lat: number, lng: number): number;
  /** One or two, which hold every position inside. */
  readonly boxes: readonly IndexBox[];
}

/** When a device was at a place, by its points there. */
export interface Presence {
  readonly firstMs: number;
  readonly lastMs: number;
  readonly points: number;
  /** From one point inside to the next, where no other point and no gap lies between. */
  readonly insideMs: number;
  readonly closestM: number;
  /** The first point that was as close. */
  readonly closestMs: number;
}

/** Nobody knows where a vehicle is in a longer time without a point. */
export const PRESENCE_GAP_MS = 600_000;
/** Points outside the boxes of the place between two pauses. */
const POINTS_PER_STEP = 2_048;
const NOWHERE: IndexBox = { minX: 1, maxX: 0, minY: 1, maxY: 0 };

type Points = Pick<PointColumns, 'count' | 'recordedAtMs' | 'lats' | 'lngs'>;

/** Adds up the points of one device at a place. */
export class PresenceTally {
  readonly #place: Place;
  readonly #pace = new Pace();
  #found: { -readonly [Field in keyof Presence]: Presence[Field] } | null = null;
  /** The newest point; null when it was outside, or is not known. */
  #insideAtMs: number | null = null;

  constructor(place: Place) {
    this.#place = place;
  }

  /** Null: no point was at the place. */
  get presence(): Presence | null {
    return this.#found;
  }

  /** Takes points that are newer than all before. */
  *take(points: Points): Steps<void> {
    this.#pace.begin();
    for (let from = 0; from < points.count; ) {
      if (from > 0) yield* this.#pace.pause();
      from = this.#takeSome(points, from, Math.min(from + POINTS_PER_STEP, points.count));
    }
  }

  /** Whether any of these positions may be at the place; if not, taking their points is the same as `interrupt`. */
  wants(lats: Float64Array, lngs: Float64Array): boolean {
    const [first = NOWHERE, second = NOWHERE] = this.#place.boxes;
    for (let n = 0; n < lats.length; n++) {
      const lat = lats[n] as number;
      const lng = lngs[n] as number;
      if (isIn(first, lat, lng) || isIn(second, lat, lng)) return true;
    }
    return false;
  }

  /** Points that follow are left out: the device was elsewhere, or its points are not read. */
  interrupt(): void {
    this.#insideAtMs = null;
  }

  /**
   * Nearly all points are outside: what is done for each of them is a comparison or two. Returns the place of the first
   * point that is not taken: `to`, or one before it when the step has lasted long enough.
   */
  #takeSome({ recordedAtMs, lats, lngs }: Points, from: number, to: number): number {
    const place = this.#place;
    const [first = NOWHERE, second = NOWHERE] = place.boxes;
    for (let n = from; n < to; n++) {
      const lat = lats[n] as number;
      const lng = lngs[n] as number;
      if (!isIn(first, lat, lng) && !isIn(second, lat, lng)) {
        this.#insideAtMs = null;
        continue;
      }
      if (place.contains(lat, lng)) this.#add(recordedAtMs[n] as number, lat, lng);
      else this.#insideAtMs = null;
      if (this.#pace.isDue()) return n + 1;
    }
    return to;
  }

  #add(atMs: number, lat: number, lng: number): void {
    const closestM = this.#place.closenessM(lat, lng);
    const beforeMs = this.#insideAtMs;
    this.#insideAtMs = atMs;
    if (this.#found === null) {
      this.#found = { firstMs: atMs, lastMs: atMs, points: 1, insideMs: 0, closestM, closestMs: atMs };
      return;
    }
    const found = this.#found;
    found.points++;
    found.lastMs = atMs;
    if (beforeMs !== null && atMs - beforeMs <= PRESENCE_GAP_MS) found.insideMs += atMs - beforeMs;
    if (closestM < found.closestM) Object.assign(found, { closestM, closestMs: atMs });
  }
}

function isIn({ minX, minY, maxX, maxY }: IndexBox, lat: number, lng: number): boolean {
  return lat >= minY && lat <= maxY && lng >= minX && lng <= maxX;
}
