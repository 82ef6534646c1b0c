import { SortedList } from './sortedList.ts';

/** By what devices at one distance are ordered; unique among the devices of an index. */
export type Rank = string | number;

/** Gives the rank of a slot. */
export type RankOf = (slot: number) => Rank;

/** All devices of a crowd whose latitude and longitude are the very same. */
export interface Spot {
  /** Orders the spots of a crowd, in no particular way. */
  readonly key: string;
  readonly lat: number;
  readonly lng: number;
  /** Slots, by rank: those that go first are found without looking at the others. */
  readonly slots: SortedList<number, Rank>;
}

/**
 * More devices at one lattice point than a block of the trie holds, such as a depot whose vehicles all report one
 * position. A search needs one distance for each spot, and no more devices of it than it is asked for.
 */
export class PositionIndexCrowd {
  readonly #rankOf: RankOf;
  readonly #spots = new SortedList<Spot, string>((spot) => spot.key);
  /** The spot of the last change: most often there is no other. */
  #last: Spot | null = null;
  #size = 0;

  constructor(rankOf: RankOf) {
    this.#rankOf = rankOf;
  }

  get size(): number {
    return this.#size;
  }

  /** Adds a slot that is not in. */
  add(slot: number, lat: number, lng: number): void {
    let spot = this.#spotAt(lat, lng);
    if (spot === undefined) {
      spot = { key: keyOf(lat, lng), lat, lng, slots: new SortedList(this.#rankOf) };
      this.#spots.put(spot);
    }
    this.#last = spot;
    spot.slots.put(slot);
    this.#size++;
  }

  /** Takes out a slot that is in, at this position. */
  remove(slot: number, lat: number, lng: number): void {
    const spot = this.#spotAt(lat, lng);
    if (spot?.slots.remove(this.#rankOf(slot)) !== true) return;
    this.#size--;
    if (spot.slots.size > 0) {
      this.#last = spot;
      return;
    }
    this.#spots.remove(spot.key);
    this.#last = null;
  }

  /** Up to `limit` spots in the order of their keys, beginning behind `key`; null: with the first. */
  spotsAfter(key: string | null, limit: number): Spot[] {
    // No key lies between one and the same with the lowest character behind it.
    return this.#spots.slice(key === null ? 0 : this.#spots.rank(`${key}\0`), limit);
  }

  #spotAt(lat: number, lng: number): Spot | undefined {
    if (this.#last?.lat === lat && this.#last.lng === lng) return this.#last;
    const key = keyOf(lat, lng);
    const spot = this.#spots.at(this.#spots.rank(key));
    return spot?.key === key ? spot : undefined;
  }
}

function keyOf(lat: number, lng: number): string {
  return `${lat} ${lng}`;
}
