import type { IndexBox } from '../geo/bounds.ts';
import { Pace, type Steps } from '../lib/workTurns.ts';

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

/** Points of one device, oldest first, column by column. */
export interface PresencePoints {
  readonly count: number;
  readonly recordedAtMs: Float64Array;
  readonly lats: Float64Array;
  readonly lngs: Float64Array;
}

/** Nobody knows where a vehicle is in a longer time without a point. */
export const PRESENCE_GAP_MS = 600_000;
/** Points outside the boxes of the place between two pauses. */
const POINTS_PER_STEP = 2_048;
const NOWHERE: IndexBox = { minX: 1, maxX: 0, minY: 1, maxY: 0 };

/** Adds up the points of one device at a place. */
export class PresenceTally {
  readonly #place: Place;
  readonly #pace = new Pace();
  #firstMs = 0;
  #lastMs = 0;
  #points = 0;
  #insideMs = 0;
  #closestM = Number.POSITIVE_INFINITY;
  #closestMs = 0;
  /** The newest point; null when it was outside, or is not known. */
  #insideAtMs: number | null = null;

  constructor(place: Place) {
    this.#place = place;
  }

  /** Takes points that are newer than all before. */
  *take(points: PresencePoints): Steps<void> {
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

  /** Null: no point was at the place. */
  get presence(): Presence | null {
    if (this.#points === 0) return null;
    return {
      firstMs: this.#firstMs,
      lastMs: this.#lastMs,
      points: this.#points,
      insideMs: this.#insideMs,
      closestM: this.#closestM,
      closestMs: this.#closestMs,
    };
  }

  /**
   * Nearly all points are outside: what is done for each of them is a comparison or two. Returns the place of the first
   * point that is not taken: `to`, or one before it when the step has lasted long enough.
   */
  #takeSome({ recordedAtMs, lats, lngs }: PresencePoints, from: number, to: number): number {
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
    if (this.#points === 0) this.#firstMs = atMs;
    this.#points++;
    this.#lastMs = atMs;
    const beforeMs = this.#insideAtMs;
    if (beforeMs !== null && atMs - beforeMs <= PRESENCE_GAP_MS) this.#insideMs += atMs - beforeMs;
    this.#insideAtMs = atMs;
    const closenessM = this.#place.closenessM(lat, lng);
    if (closenessM < this.#closestM) {
      this.#closestM = closenessM;
      this.#closestMs = atMs;
    }
  }
}

function isIn({ minX, minY, maxX, maxY }: IndexBox, lat: number, lng: number): boolean {
  return lat >= minY && lat <= maxY && lng >= minX && lng <= maxX;
}
