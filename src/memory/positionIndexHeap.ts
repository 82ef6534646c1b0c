import { invariant } from '../base/invariant.ts';

/** A device found near a position. */
export interface NearHit {
  readonly slot: number;
  readonly distanceM: number;
}

/** Which of two slots goes first when they are equally far away. */
export type Precedes = (slot: number, other: number) => boolean;

/** The best hits so far, nearest first, of equals as told; the worst is on top. Used again for every search. */
export class PositionIndexHeap {
  /** No hit beyond this distance gets in any more. */
  reachM = 0;
  private limit = 0;
  private count = 0;
  private precedes: Precedes = (slot, other) => slot < other;
  private readonly distances = new Float64Array(MAX_LIMIT);
  private readonly slots = new Int32Array(MAX_LIMIT);

  /** Starts over, for the best `limit` (1 to 1000) of the hits at most `maxM` away. */
  reset(limit: number, maxM: number, precedes: Precedes): void {
    invariant(
      Number.isInteger(limit) && limit >= 1 && limit <= MAX_LIMIT,
      'position index: limit out of range',
    );
    invariant(maxM >= 0, 'position index: maxM is not a distance');
    this.limit = limit;
    this.count = 0;
    this.reachM = maxM;
    this.precedes = precedes;
  }

  offer(distanceM: number, slot: number): void {
    if (distanceM > this.reachM) return;
    if (this.count < this.limit) this.siftUp(this.count++, distanceM, slot);
    else if (this.isWorse(0, distanceM, slot)) this.siftDown(distanceM, slot);
    if (this.count === this.limit) this.reachM = this.distances[0]!;
  }

  /** Empties the heap into a list, best first. */
  drain(): NearHit[] {
    const hits = new Array<NearHit>(this.count);
    while (this.count > 0) {
      const last = --this.count;
      hits[last] = { slot: this.slots[0]!, distanceM: this.distances[0]! };
      this.siftDown(this.distances[last]!, this.slots[last]!);
    }
    return hits;
  }

  private siftUp(from: number, distanceM: number, slot: number): void {
    let hole = from;
    while (hole > 0) {
      const parent = (hole - 1) >> 1;
      if (this.isWorse(parent, distanceM, slot)) break;
      this.fill(hole, this.distances[parent]!, this.slots[parent]!);
      hole = parent;
    }
    this.fill(hole, distanceM, slot);
  }

  /** Replaces the top. */
  private siftDown(distanceM: number, slot: number): void {
    let hole = 0;
    for (let child = 1; child < this.count; child = 2 * hole + 1) {
      const right = child + 1;
      if (right < this.count && this.isWorse(right, this.distances[child]!, this.slots[child]!))
        child = right;
      if (!this.isWorse(child, distanceM, slot)) break;
      this.fill(hole, this.distances[child]!, this.slots[child]!);
      hole = child;
    }
    this.fill(hole, distanceM, slot);
  }

  private isWorse(at: number, distanceM: number, slot: number): boolean {
    const heldM = this.distances[at]!;
    return heldM > distanceM || (heldM === distanceM && this.precedes(slot, this.slots[at]!));
  }

  private fill(at: number, distanceM: number, slot: number): void {
    this.distances[at] = distanceM;
    this.slots[at] = slot;
  }
}

/** Bounds the scratch space; far above any page of results. */
const MAX_LIMIT = 1000;
