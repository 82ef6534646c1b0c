import type { Steps } from '../../base/workTurns.ts';
import type { IndexBox } from '../../geometry/bounds.ts';

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
const POINTS_PER_STEP = 2_048;

/** Adds up the points of one device at a place. */
export class PresenceTally {
  readonly #place: Place;
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
  *take({ count, recordedAtMs, lats, lngs }: PresencePoints): Steps<void> {
    for (let n = 0; n < count; n++) {
      if (n % POINTS_PER_STEP === POINTS_PER_STEP - 1) yield;
      this.#add(recordedAtMs[n] as number, lats[n] as number, lngs[n] as number);
    }
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

  #add(atMs: number, lat: number, lng: number): void {
    const place = this.#place;
    if (!isInBoxes(place.boxes, lat, lng) || !place.contains(lat, lng)) {
      this.#insideAtMs = null;
      return;
    }
    if (this.#points === 0) this.#firstMs = atMs;
    this.#points++;
    this.#lastMs = atMs;
    const beforeMs = this.#insideAtMs;
    if (beforeMs !== null && atMs - beforeMs <= PRESENCE_GAP_MS) this.#insideMs += atMs - beforeMs;
    this.#insideAtMs = atMs;
    const closenessM = place.closenessM(lat, lng);
    if (closenessM < this.#closestM) {
      this.#closestM = closenessM;
      this.#closestMs = atMs;
    }
  }
}

function isInBoxes(boxes: readonly IndexBox[], lat: number, lng: number): boolean {
  for (const { minX, minY, maxX, maxY } of boxes) {
    if (lat >= minY && lat <= maxY && lng >= minX && lng <= maxX) return true;
  }
  return false;
}
