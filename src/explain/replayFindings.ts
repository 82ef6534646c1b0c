import { MINUTE_MS } from '../lib/durations.ts';
import type { Gap } from './explanation.ts';
import type { Situation } from './situations.ts';

/** A device that says nothing for longer has a gap. */
export const GAP_MS = 10 * MINUTE_MS;

/** How often something was found, and when first. */
export interface Found {
  readonly count: number;
  readonly firstMs: number;
}

/** What a replay finds in the points of its window, besides visits. */
export class ReplayFindings {
  readonly gaps: Gap[] = [];
  points = 0;
  /** Of them, those that were evaluated while the area existed, watched the device, or neither. */
  readonly evaluated = { watched: 0, not_watched: 0, no_area: 0 };
  /** Of them, those inside an area that did not watch the device. */
  insideUnwatched = 0;
  /** Of the points that were evaluated while the area watched the device. */
  closest: { readonly distanceM: number; readonly atMs: number } | null = null;
  /** Two points, one after the other, between which the way leads through the area. */
  crossing: { readonly fromMs: number; readonly toMs: number } | null = null;
  /** Points that came late, and those of them that lie inside. */
  late: Found & { readonly inside: number } = { count: 0, firstMs: 0, inside: 0 };
  /** Points whose lateness or time of receipt was not stored. */
  unmarked: Found = NONE;
  /** Points of a time for which the area is not known. */
  unknownArea: Found = NONE;
  /** Points at which a stay did not begin for want of room. */
  refused: Found = NONE;
  /** Where the record has more or less than the replay, also before the window. */
  unexplained: Found = NONE;
  /** The situations that were in force for points: from the first to the last. */
  situationsUsed: { readonly first: number; readonly last: number } | null = null;
  #lastMs = Number.NaN;

  /** Any point, in the order of their times. */
  arrive(atMs: number, isMarked: boolean): void {
    this.points++;
    if (atMs - this.#lastMs > GAP_MS) this.gaps.push({ fromMs: this.#lastMs, toMs: atMs });
    this.#lastMs = atMs;
    if (!isMarked) this.unmarked = oneMore(this.unmarked, atMs);
  }

  /** A late point: stored, and nothing else. */
  passOver(atMs: number, distanceM: number): void {
    const inside = this.late.inside + (distanceM <= 0 ? 1 : 0);
    this.late = { ...oneMore(this.late, atMs), inside };
  }

  /** An evaluated point. `index`: of the situation. */
  evaluate(atMs: number, distanceM: number, index: number, { state, isKnown }: Situation): void {
    this.evaluated[state]++;
    if (state !== 'watched' && distanceM <= 0) this.insideUnwatched++;
    if (!isKnown) this.unknownArea = oneMore(this.unknownArea, atMs);
    this.situationsUsed = { first: this.situationsUsed?.first ?? index, last: index };
    if (state !== 'watched') return;
    if (this.closest === null || distanceM < this.closest.distanceM) this.closest = { distanceM, atMs };
  }

  refuse(atMs: number): void {
    this.refused = oneMore(this.refused, atMs);
  }

  differ(atMs: number): void {
    this.unexplained = oneMore(this.unexplained, atMs);
  }
}

const NONE: Found = { count: 0, firstMs: 0 };

function oneMore({ count, firstMs }: Found, atMs: number): Found {
  return { count: count + 1, firstMs: count === 0 ? atMs : firstMs };
}
