import { SortedList } from '../sortedList.ts';

/** What orders devices at equal distances; unique among the devices of an index. */
export type Rank = string | number;

/** Gives the rank of a slot, which does not change while the slot is in the index. */
export type RankOf = (slot: number) => Rank;

/** The devices that share one latitude and longitude. */
export interface ColocatedDevices {
  /** Identifies the position, and orders the positions of a bucket. */
  readonly key: string;
  readonly lat: number;
  readonly lng: number;
  /** Slots by rank, so that the first are found without looking at the others. */
  readonly slots: SortedList<number, Rank>;
}

/**
 * The devices at a lattice point that has more of them than a block of the trie can hold, such as a depot whose
 * vehicles all report one position. They are grouped by exact position: a search needs one distance for each position,
 * and no more devices of it than it was asked for.
 */
export class OverflowBucket {
  readonly #rankOf: RankOf;
  readonly #positions = new SortedList<ColocatedDevices, string>((position) => position.key);
  /** The position of the last change. Most buckets have no other. */
  #last: ColocatedDevices | null = null;
  #size = 0;

  constructor(rankOf: RankOf) {
    this.#rankOf = rankOf;
  }

  /** How many devices it holds. */
  get size(): number {
    return this.#size;
  }

  /** Adds a slot that is not in the bucket. */
  add(slot: number, lat: number, lng: number): void {
    let position = this.#find(lat, lng);
    if (position === undefined) {
      position = { key: keyOf(lat, lng), lat, lng, slots: new SortedList(this.#rankOf) };
      this.#positions.put(position);
    }
    this.#last = position;
    position.slots.put(slot);
    this.#size++;
  }

  /** Removes a slot that is in the bucket, at this position. */
  remove(slot: number, lat: number, lng: number): void {
    const position = this.#find(lat, lng);
    if (position?.slots.remove(this.#rankOf(slot)) !== true) return;
    this.#size--;
    if (position.slots.size > 0) {
      this.#last = position;
      return;
    }
    this.#positions.remove(position.key);
    this.#last = null;
  }

  /** Up to `limit` positions in the order of their keys, starting after `key`; null: with the first. */
  positionsAfter(key: string | null, limit: number): ColocatedDevices[] {
    // No key lies between `key` and `key` with the lowest character appended.
    return this.#positions.slice(key === null ? 0 : this.#positions.rank(`${key}\0`), limit);
  }

  #find(lat: number, lng: number): ColocatedDevices | undefined {
    if (this.#last?.lat === lat && this.#last.lng === lng) return this.#last;
    const key = keyOf(lat, lng);
    const position = this.#positions.at(this.#positions.rank(key));
    return position?.key === key ? position : undefined;
  }
}

function keyOf(lat: number, lng: number): string {
  return `${lat} ${lng}`;
}
