import { type Order, SortedList } from '../sortedList.ts';

/** The devices that share one latitude and longitude. */
export interface ColocatedDevices {
  /** Identifies the position, and orders the positions of a bucket. */
  readonly key: string;
  readonly lat: number;
  readonly lng: number;
  /** Slots in their order, so that the first are found without looking at the others. */
  readonly slots: SortedList<number, number>;
}

/**
 * The devices at a lattice point that has more of them than a block of the trie can hold, such as a depot whose
 * vehicles all report one position. They are grouped by exact position: a search needs one distance for each position,
 * and no more devices of it than it was asked for.
 */
export class OverflowBucket {
  readonly #order: Order<number>;
  readonly #positions = new SortedList<ColocatedDevices, string>((position) => position.key);
  /** The position of the last change. Most buckets have no other. */
  #last: ColocatedDevices | null = null;
  #size = 0;

  /** `order` of slots at the same position. */
  constructor(order: Order<number>) {
    this.#order = order;
  }

  /** How many devices it holds. */
  get size(): number {
    return this.#size;
  }

  /** Adds a slot that is not in the bucket. */
  add(slot: number, lat: number, lng: number): void {
    let position = this.#find(lat, lng);
    if (position === undefined) {
      position = { key: keyOf(lat, lng), lat, lng, slots: new SortedList(itself, this.#order) };
      this.#positions.put(position);
    }
    this.#last = position;
    position.slots.put(slot);
    this.#size++;
  }

  /** Removes a slot that is in the bucket, at this position. */
  remove(slot: number, lat: number, lng: number): void {
    const position = this.#find(lat, lng);
    if (position?.slots.remove(slot) !== true) return;
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

function itself(slot: number): number {
  return slot;
}

function keyOf(lat: number, lng: number): string {
  return `${lat} ${lng}`;
}
