import type { AreaType } from '../../../areas/area.ts';
import { invariant } from '../../../base/invariant.ts';
import type { Steps } from '../../../base/workTurns.ts';
import type { Area } from '../../../memory/area.ts';

/** Candidates between two looks at the clock: a fraction of a millisecond. */
export const CANDIDATES_PER_STEP = 20;

/**
 * The areas that contain a point: deepest inside first, then by id. A batch finds those of its points with one of these,
 * point by point, in memory that is allocated once.
 */
export class ContainingAreas {
  readonly #areas: Area[] = [];
  /** Metres to the boundaries of these areas: 0 or less. */
  #distancesM = new Float64Array(64);
  /** Places in both lists, in order. */
  #order: number[] = [];

  get total(): number {
    return this.#order.length;
  }

  /** The area in a place of the order: 0 is the first. */
  area(place: number): Area {
    return this.#areas[this.#at(place)] as Area;
  }

  distanceM(place: number): number {
    return this.#distancesM[this.#at(place)] as number;
  }

  /** Finds those among the candidates that have this type, if any is given. Forgets what was found before. */
  *find(candidates: readonly Area[], lat: number, lng: number, type: AreaType | null): Steps<void> {
    this.#reserve(candidates.length);
    const areas = this.#areas;
    const distancesM = this.#distancesM;
    const order: number[] = [];
    let seen = 0;
    for (const area of candidates) {
      if (++seen % CANDIDATES_PER_STEP === 0) yield;
      if (type !== null && area.definition.geometry.type !== type) continue;
      const distanceM = area.shape.insideDistanceM(lat, lng);
      if (distanceM > 0) continue;
      const at = order.length;
      areas[at] = area;
      distancesM[at] = distanceM;
      order.push(at);
    }
    order.sort((a, b) => this.#compare(a, b));
    this.#order = order;
  }

  /** Not the difference of two distances: V8 would put each into memory of its own. */
  #compare(a: number, b: number): number {
    const aM = this.#distancesM[a] as number;
    const bM = this.#distancesM[b] as number;
    if (aM !== bM) return aM < bM ? -1 : 1;
    return (this.#areas[a] as Area).id - (this.#areas[b] as Area).id;
  }

  #at(place: number): number {
    const at = this.#order[place];
    invariant(at !== undefined, 'an area is in this place');
    return at;
  }

  #reserve(count: number): void {
    if (count > this.#distancesM.length) this.#distancesM = new Float64Array(2 * count);
  }
}
