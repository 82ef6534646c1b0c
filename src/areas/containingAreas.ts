import { CONTAINING_MAX } from '../http/bulkLimits.ts';
import { invariant } from '../lib/invariant.ts';
import type { Pace } from '../lib/pace.ts';
import type { Steps } from '../lib/workTurns.ts';
import type { AreaType } from './area.ts';
import type { Area } from './knownArea.ts';

/** Areas between two sorts. One sort of all that an account may have around a point would take ten milliseconds. */
const KEPT = 2 * CONTAINING_MAX;

/**
 * The areas that contain a point, deepest inside first, then by id: the first of them, and how many there are. A batch
 * finds those of its points with one of these, point by point, in memory that is allocated once.
 */
export class ContainingAreas {
  readonly #areas: Area[] = [];
  /** Metres to the boundaries of these areas: 0 or less. */
  readonly #distancesM = new Float64Array(KEPT);
  /** Places in both lists, in order. */
  #order: number[] = [];
  #total = 0;

  /** How many there are. */
  get total(): number {
    return this.#total;
  }

  /** How many of them are known: at most CONTAINING_MAX. */
  get count(): number {
    return this.#order.length;
  }

  /** The area in a place of the order, less than `count`: 0 is the first. */
  area(place: number): Area {
    return this.#areas[this.#at(place)] as Area;
  }

  distanceM(place: number): number {
    return this.#distancesM[this.#at(place)] as number;
  }

  /** Finds those among the candidates that have this type, if any is given. Forgets what was found before. */
  *find(
    candidates: readonly Area[],
    lat: number,
    lng: number,
    type: AreaType | null,
    pace: Pace,
  ): Steps<void> {
    const order: number[] = [];
    /** Places of areas that are not among the first any more. */
    const free: number[] = [];
    this.#total = 0;
    for (const area of candidates) {
      if (type !== null && area.definition.geometry.type !== type) continue;
      const distanceM = area.shape.insideDistanceM(lat, lng);
      if (pace.isDue()) yield* pace.pause();
      if (distanceM > 0) continue;
      this.#total++;
      const at = free.pop() ?? order.length;
      this.#areas[at] = area;
      this.#distancesM[at] = distanceM;
      order.push(at);
      if (order.length < KEPT) continue;
      this.#sort(order);
      free.push(...order.splice(CONTAINING_MAX));
    }
    this.#sort(order);
    order.splice(CONTAINING_MAX);
    this.#order = order;
  }

  #sort(order: number[]): void {
    order.sort((a, b) => this.#compare(a, b));
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
}
