import { EQUATORIAL_RADIUS_M } from '../../geo/wgs84.ts';
import type { Order } from '../sortedList.ts';
import { OverflowBucket } from './overflowBucket.ts';

// The position index keeps earth-centred coordinates as integers. They need half the memory of doubles, and the bits of
// a coordinate are its path through the trie. A step is 6 mm: positions that differ less can share a lattice point.

/** Coordinates run from 0 to 2^31 - 1 on each axis; the equator just fits. */
export const LATTICE_BITS = 31;
/** The earth's centre on each axis. */
export const LATTICE_CENTRE = 2 ** (LATTICE_BITS - 1);
export const STEPS_PER_M = (LATTICE_CENTRE - 1) / EQUATORIAL_RADIUS_M;
/** Depth of the cells that are a single lattice point, when cells halve along x, y and z in turn. */
export const MAX_DEPTH = 3 * LATTICE_BITS;

/** Half the side of a cell along the axis that is halved at this depth; the sides halved before are shorter. */
export const HALVES = Float64Array.from(
  { length: MAX_DEPTH + 3 },
  (_, depth) => LATTICE_CENTRE / 2 ** Math.floor(depth / 3),
);
/** The distance from the centre of a cell at this depth to a corner. */
export const HALF_DIAGONALS = HALVES.map((side, depth) => side * Math.sqrt([3, 2.25, 1.5][depth % 3]!));

/**
 * A reference between cells is positive for an inner node, negative for a leaf (`~ref` is its first block), or this.
 */
export const EMPTY = 0;
/** Where `children` holds the reference to the root: node 0 is never a child of another node. */
export const ROOT = 0;

// A block is 128 integers, 512 bytes: a header (count, link, depth) and 31 entries (x, y, z, slot).
export const BLOCK_SHIFT = 7;
export const ENTRY_INTS = 4;
/** The overflow bucket of an overflowed block, or the next free block of a free one. */
const LINK = 1;
export const SLOT = 3;
export const DEPTH = 2;
const BLOCK_CAPACITY = (1 << BLOCK_SHIFT) / ENTRY_INTS - 1;
/** The count of a block whose devices are in an overflow bucket; its first entry has their lattice point. */
export const OVERFLOWED = BLOCK_CAPACITY + 1;
/** Most blocks have some twenty slots. Two leaves beside each other have more than MERGE_COUNT, whatever has moved. */
const SLOTS_PER_BLOCK_LEAST = 8;
/** Two leaves with no more devices than this together become one: half a block, so that it does not split at once. */
const MERGE_COUNT = BLOCK_CAPACITY >> 1;

/** The position of each slot, in degrees. */
export interface SlotPositions {
  lat(slot: number): number;
  lng(slot: number): number;
}

/** What the index of positions keeps of each slot, and asks of it. */
export interface IndexedSlots extends SlotPositions {
  setLatLng(slot: number, lat: number, lng: number): void;
  /** The offset of its entry in the pool of the trie; 0 for none, since a header is there. */
  entry(slot: number): number;
  setEntry(slot: number, entry: number): void;
  /** Of two slots that are equally far away: below 0 when the first one comes first. Does not change while they are indexed. */
  compare(slot: number, other: number): number;
}

/**
 * A bucket trie over lattice points, each identified by its slot. Cells are halved along x, y and z in turn, so the
 * shape depends on the points alone and not on their order: depth is bounded and nothing is ever rebalanced. A leaf is
 * one block of contiguous entries. At MAX_DEPTH, where all points are equal and a block cannot be split, the devices of
 * a full block go to an overflow bucket. Freed nodes and blocks are reused; arrays double when they are full and never
 * shrink.
 */
export class Trie {
  /** Two references per inner node: lower half, upper half. */
  children = new Int32Array(2);
  /** All blocks. */
  pool = NOTHING;
  nodesInUse = 0;
  blocksInUse = 0;
  /** By the link of their block; 0 means none. */
  private readonly buckets: (OverflowBucket | undefined)[] = [undefined];
  private readonly freeBuckets: number[] = [];
  private nodesMade = 0;
  private blocksMade = 0;
  private freeNode = 0;
  private freeBlock = EMPTY;
  private readonly slots: IndexedSlots;
  private readonly order: Order<number>;

  constructor(slots: IndexedSlots) {
    this.slots = slots;
    this.order = (slot, other) => slots.compare(slot, other);
  }

  get bytes(): number {
    return this.children.byteLength + this.pool.byteLength;
  }

  /**
   * So many slots will be added: arrays of that size do not double while the index is used, which would stop the process
   * for a tenth of a second. What is not used takes no memory, because the system gives a page when it is first written.
   */
  expect(slots: number): void {
    const blocks = this.blocksMade + Math.ceil(slots / SLOTS_PER_BLOCK_LEAST);
    this.pool = grown(this.pool, blocks << BLOCK_SHIFT);
    this.children = grown(this.children, 2 * blocks);
  }

  has(slot: number): boolean {
    return this.slots.entry(slot) !== 0;
  }

  bucketOf(block: number): OverflowBucket {
    return this.buckets[this.pool[(block << BLOCK_SHIFT) + LINK]!]!;
  }

  /** Adds a slot that is not in the trie. Its position must be set already. */
  insert(slot: number, x: number, y: number, z: number): void {
    let at = ROOT;
    let depth = 0;
    for (;;) {
      const ref = this.children[at]!;
      if (ref > 0) {
        at = 2 * ref + half(depth++, x, y, z);
      } else if (ref === EMPTY) {
        this.children[at] = ~this.newBlock(depth);
      } else if (this.count(ref) < BLOCK_CAPACITY) {
        this.append(~ref, slot, x, y, z);
        return;
      } else if (depth === MAX_DEPTH) {
        this.overflow(~ref, slot);
        return;
      } else {
        this.split(at, depth);
      }
    }
  }

  /**
   * Moves a slot within the cell of its leaf. False, with nothing changed, when it leaves the cell or is in a bucket.
   */
  shift(slot: number, x: number, y: number, z: number): boolean {
    const pool = this.pool;
    const entry = this.slots.entry(slot);
    const base = (entry >> BLOCK_SHIFT) << BLOCK_SHIFT;
    if (pool[base] === OVERFLOWED) return false;
    const depth = pool[base + DEPTH]!;
    // The leading bits of each axis that lead to this leaf.
    const differentX = (x ^ pool[entry]!) >>> (LATTICE_BITS - (((depth + 2) / 3) | 0));
    const differentY = (y ^ pool[entry + 1]!) >>> (LATTICE_BITS - (((depth + 1) / 3) | 0));
    const differentZ = (z ^ pool[entry + 2]!) >>> (LATTICE_BITS - ((depth / 3) | 0));
    if ((differentX | differentY | differentZ) !== 0) return false;
    pool[entry] = x;
    pool[entry + 1] = y;
    pool[entry + 2] = z;
    return true;
  }

  /** Removes a slot that is in the trie, while it still has the position with which it was inserted. */
  erase(slot: number): void {
    const pool = this.pool;
    const entry = this.slots.entry(slot);
    const depth = this.descend(pool[entry]!, pool[entry + 1]!, pool[entry + 2]!);
    const at = path[depth]!;
    const leaf = this.children[at]!;
    const base = ~leaf << BLOCK_SHIFT;
    this.slots.setEntry(slot, 0);
    if (pool[base] === OVERFLOWED) {
      this.removeFromBucket(~leaf, slot);
    } else {
      const last = base + ENTRY_INTS * pool[base]!--;
      if (entry !== last) this.copyEntry(last, entry);
      if (pool[base] === 0) {
        this.children[at] = EMPTY;
        this.release(~leaf);
      }
    }
    this.merge(depth);
  }

  /** Adds a slot to a block that cannot be split and is full or has overflowed already. */
  private overflow(block: number, slot: number): void {
    const pool = this.pool;
    const base = block << BLOCK_SHIFT;
    if (pool[base] !== OVERFLOWED) {
      const link = this.freeBuckets.pop() ?? this.buckets.length;
      const bucket = new OverflowBucket(this.order);
      this.buckets[link] = bucket;
      pool[base + LINK] = link;
      pool[base] = OVERFLOWED;
      for (let n = 1; n <= BLOCK_CAPACITY; n++)
        this.addToBucket(block, bucket, pool[base + ENTRY_INTS * n + SLOT]!);
    }
    this.addToBucket(block, this.bucketOf(block), slot);
  }

  private addToBucket(block: number, bucket: OverflowBucket, slot: number): void {
    bucket.add(slot, this.slots.lat(slot), this.slots.lng(slot));
    this.slots.setEntry(slot, (block << BLOCK_SHIFT) + ENTRY_INTS);
  }

  /** Removes a slot from a bucket. A bucket that has become small is turned into a block again. */
  private removeFromBucket(block: number, slot: number): void {
    const bucket = this.bucketOf(block);
    bucket.remove(slot, this.slots.lat(slot), this.slots.lng(slot));
    if (bucket.size > MERGE_COUNT) return;
    const pool = this.pool;
    const base = block << BLOCK_SHIFT;
    const [x, y, z] = [pool[base + ENTRY_INTS]!, pool[base + ENTRY_INTS + 1]!, pool[base + ENTRY_INTS + 2]!];
    const link = pool[base + LINK]!;
    this.buckets[link] = undefined;
    this.freeBuckets.push(link);
    pool[base] = 0;
    for (const position of bucket.positionsAfter(null, MERGE_COUNT)) {
      for (const other of position.slots.slice(0, MERGE_COUNT)) this.append(block, other, x, y, z);
    }
  }

  /** Fills `path` with the indexes of the references that lead to a point's leaf; returns the depth of the leaf. */
  private descend(x: number, y: number, z: number): number {
    let depth = 0;
    path[0] = ROOT;
    for (let ref = this.children[ROOT]!; ref > 0; ref = this.children[path[depth]!]!) {
      const at = 2 * ref + half(depth++, x, y, z);
      path[depth] = at;
    }
    return depth;
  }

  /** Replaces a full leaf by an inner node, and distributes its points to two halves. */
  private split(at: number, depth: number): void {
    const lower = ~this.children[at]!;
    const upper = this.newBlock(depth + 1);
    const node = this.newNode();
    const pool = this.pool;
    const base = lower << BLOCK_SHIFT;
    for (let entry = base + ENTRY_INTS * pool[base]!; entry > base; entry -= ENTRY_INTS) {
      if (half(depth, pool[entry]!, pool[entry + 1]!, pool[entry + 2]!) === 0) continue;
      this.append(upper, pool[entry + SLOT]!, pool[entry]!, pool[entry + 1]!, pool[entry + 2]!);
      const last = base + ENTRY_INTS * pool[base]!--;
      if (entry !== last) this.copyEntry(last, entry);
    }
    pool[base + DEPTH] = depth + 1;
    this.children[at] = node;
    this.children[2 * node] = this.leafUnlessEmpty(lower);
    this.children[2 * node + 1] = this.leafUnlessEmpty(upper);
  }

  private leafUnlessEmpty(block: number): number {
    if (this.count(~block) > 0) return ~block;
    this.release(block);
    return EMPTY;
  }

  /** Merges pairs of small leaves into their parents, upwards from the cell at the end of `path`. */
  private merge(from: number): void {
    for (let depth = from; depth > 0; depth--) {
      const node = path[depth]! >> 1;
      const lower = this.children[2 * node]!;
      const upper = this.children[2 * node + 1]!;
      if (this.mergeCount(lower) + this.mergeCount(upper) > MERGE_COUNT) return;
      if (lower !== EMPTY && upper !== EMPTY) this.moveEntries(~upper, ~lower);
      const merged = lower === EMPTY ? upper : lower;
      if (merged !== EMPTY) this.pool[(~merged << BLOCK_SHIFT) + DEPTH] = depth - 1;
      this.children[path[depth - 1]!] = merged;
      this.children[2 * node] = this.freeNode;
      this.freeNode = node;
      this.nodesInUse--;
    }
  }

  /** How many points a merge would take over; too many for an inner node or a bucket. */
  private mergeCount(ref: number): number {
    if (ref === EMPTY) return 0;
    return ref > 0 ? BLOCK_CAPACITY : this.count(ref);
  }

  private moveEntries(from: number, to: number): void {
    const pool = this.pool;
    const base = from << BLOCK_SHIFT;
    for (let entry = base + ENTRY_INTS * pool[base]!; entry > base; entry -= ENTRY_INTS) {
      this.append(to, pool[entry + SLOT]!, pool[entry]!, pool[entry + 1]!, pool[entry + 2]!);
    }
    this.release(from);
  }

  private count(leaf: number): number {
    return this.pool[~leaf << BLOCK_SHIFT]!;
  }

  private append(block: number, slot: number, x: number, y: number, z: number): void {
    const pool = this.pool;
    const base = block << BLOCK_SHIFT;
    const entry = base + ENTRY_INTS * ++pool[base]!;
    pool[entry] = x;
    pool[entry + 1] = y;
    pool[entry + 2] = z;
    pool[entry + SLOT] = slot;
    this.slots.setEntry(slot, entry);
  }

  private copyEntry(from: number, to: number): void {
    const pool = this.pool;
    pool[to] = pool[from]!;
    pool[to + 1] = pool[from + 1]!;
    pool[to + 2] = pool[from + 2]!;
    pool[to + SLOT] = pool[from + SLOT]!;
    this.slots.setEntry(pool[to + SLOT]!, to);
  }

  private newNode(): number {
    this.nodesInUse++;
    const node = this.freeNode;
    if (node !== 0) {
      this.freeNode = this.children[2 * node]!;
      return node;
    }
    this.nodesMade++;
    this.children = grown(this.children, 2 * this.nodesMade + 2);
    return this.nodesMade;
  }

  private newBlock(depth: number): number {
    this.blocksInUse++;
    let block = ~this.freeBlock;
    if (this.freeBlock === EMPTY) {
      block = this.blocksMade++;
      this.pool = grown(this.pool, this.blocksMade << BLOCK_SHIFT);
    } else {
      this.freeBlock = this.pool[(block << BLOCK_SHIFT) + LINK]!;
    }
    const base = block << BLOCK_SHIFT;
    this.pool[base] = 0;
    this.pool[base + DEPTH] = depth;
    return block;
  }

  private release(block: number): void {
    this.blocksInUse--;
    this.pool[(block << BLOCK_SHIFT) + LINK] = this.freeBlock;
    this.freeBlock = ~block;
  }
}

/** Which half of its cell at this depth holds the point: 0 lower, 1 upper. */
export function half(depth: number, x: number, y: number, z: number): number {
  const round = (depth / 3) | 0;
  const axis = depth - 3 * round;
  return ((axis === 0 ? x : axis === 1 ? y : z) >>> (LATTICE_BITS - 1 - round)) & 1;
}

/** The first 51 bits of the way to a point, as a number: points whose numbers are close share most of their way. */
export function trieOrder(x: number, y: number, z: number): number {
  let high = 0;
  let low = 0;
  for (let bit = LATTICE_BITS - 1; bit > LATTICE_BITS - 9; bit--) {
    high = (high << 3) | (((x >>> bit) & 1) << 2) | (((y >>> bit) & 1) << 1) | ((z >>> bit) & 1);
  }
  for (let bit = LATTICE_BITS - 9; bit > LATTICE_BITS - 18; bit--) {
    low = (low << 3) | (((x >>> bit) & 1) << 2) | (((y >>> bit) & 1) << 1) | ((z >>> bit) & 1);
  }
  return high * 2 ** 27 + low;
}

function grown(array: Int32Array<ArrayBuffer>, length: number): Int32Array<ArrayBuffer> {
  if (length <= array.length) return array;
  const larger = new Int32Array(Math.max(length, 2 * array.length));
  larger.set(array);
  return larger;
}

const NOTHING = new Int32Array(0);
/** The path of the last descent. Shared by all tries, which is safe because no call waits. */
const path = new Int32Array(MAX_DEPTH + 1);
