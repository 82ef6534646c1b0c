import { invariant } from '../../lib/invariant.ts';

/** A device found near a position. */
export interface NearHit {
  readonly slot: number;
  readonly distanceM: number;
}

/** Whether the first of two slots that are equally far away comes first. */
export type Precedes = (slot: number, other: number) => boolean;

/**
 * The nearest slots so far, by a distance of any kind and then by `precedes`. A binary heap with the worst on top,
 * reused for every search.
 */
export class HitHeap {
  /** Nothing beyond this distance is accepted any more. */
  reach = 0;
  private limit = 0;
  private count = 0;
  private precedes: Precedes = (slot, other) => slot < other;
  private readonly distances = new Float64Array(MAX_LIMIT);
  private readonly slots = new Int32Array(MAX_LIMIT);

  /** Starts over, for the best `limit` (1 to 1000) of the slots no farther than `reach`. */
  reset(limit: number, reach: number, precedes: Precedes): void {
    invariant(
      Number.isInteger(limit) && limit >= 1 && limit <= MAX_LIMIT,
      'position index: limit out of range',
    );
    invariant(reach >= 0, 'position index: maxM is not a distance');
    this.limit = limit;
    this.count = 0;
    this.reach = reach;
    this.precedes = precedes;
  }

  offer(distance: number, slot: number): void {
    if (distance > this.reach) return;
    if (this.count < this.limit) this.siftUp(this.count++, distance, slot);
    else if (this.isWorse(0, distance, slot)) this.siftDown(distance, slot);
    if (this.count === this.limit) this.reach = this.distances[0]!;
  }

  /** Empties the heap into a list, best first; distances are metres. */
  drain(): NearHit[] {
    const hits = new Array<NearHit>(this.count);
    while (this.count > 0) {
      const last = --this.count;
      hits[last] = { slot: this.slots[0]!, distanceM: this.distances[0]! };
      this.siftDown(this.distances[last]!, this.slots[last]!);
    }
    return hits;
  }

  private siftUp(from: number, distance: number, slot: number): void {
    let hole = from;
    while (hole > 0) {
      const parent = (hole - 1) >> 1;
      if (this.isWorse(parent, distance, slot)) break;
      this.fill(hole, this.distances[parent]!, this.slots[parent]!);
      hole = parent;
    }
    this.fill(hole, distance, slot);
  }

  /** Replaces the top. */
  private siftDown(distance: number, slot: number): void {
    let hole = 0;
    for (let child = 1; child < this.count; child = 2 * hole + 1) {
      const right = child + 1;
      if (right < this.count && this.isWorse(right, this.distances[child]!, this.slots[child]!))
        child = right;
      if (!this.isWorse(child, distance, slot)) break;
      this.fill(hole, this.distances[child]!, this.slots[child]!);
      hole = child;
    }
    this.fill(hole, distance, slot);
  }

  private isWorse(at: number, distance: number, slot: number): boolean {
    const present = this.distances[at]!;
    return present > distance || (present === distance && this.precedes(slot, this.slots[at]!));
  }

  private fill(at: number, distance: number, slot: number): void {
    this.distances[at] = distance;
    this.slots[at] = slot;
  }
}

/** Bounds the memory of a search; far more than any page of results. */
const MAX_LIMIT = 1000;
