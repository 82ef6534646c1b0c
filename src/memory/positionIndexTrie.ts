import { PositionIndexCrowd, type RankOf } from './positionIndexCrowd.ts';
import { LATTICE_BITS, MAX_DEPTH } from './positionIndexLattice.ts';

/** A reference between cells is positive for an inner node, negative for a leaf (`~ref` is its first block), or this. */
export const EMPTY = 0;
/** Where `children` keeps the reference to the root: node 0 is nobody's child. */
export const ROOT = 0;

// A block is 128 integers, 512 bytes: a header (count, link, depth) and 31 entries (x, y, z, slot).
export const BLOCK_SHIFT = 7;
export const ENTRY_INTS = 4;
/** Of a crowded block its crowd, of a free one the next free one. */
export const LINK = 1;
export const SLOT = 3;
const DEPTH = 2;
const BLOCK_CAPACITY = (1 << BLOCK_SHIFT) / ENTRY_INTS - 1;
/** The count of a block whose devices are in a crowd; its first entry tells where. */
export const CROWDED = BLOCK_CAPACITY + 1;
/** Two leaves holding no more than this together become one; half a block, so that it does not split at once. */
const MERGE_COUNT = BLOCK_CAPACITY >> 1;

/** Where each slot is, in degrees. */
export interface Places {
  latOf(slot: number): number;
  lngOf(slot: number): number;
}

/**
 * A bucket trie over lattice points, each known by its slot. Cells halve along x, y and z in turn, so the shape follows
 * from the points alone, whatever their order: depth is bounded and nothing is ever rebalanced. A leaf is one block of
 * contiguous entries; at MAX_DEPTH, where all points are equal and a block cannot be split, the devices of a full one
 * go to a crowd. Freed nodes and blocks are used again; arrays double when they are full and never shrink.
 */
export class PositionIndexTrie {
  /** Two references per inner node: lower half, upper half. */
  children = new Int32Array(2);
  /** All blocks. */
  pool = NOTHING;
  nodesInUse = 0;
  blocksInUse = 0;
  /** Where in `pool` a slot's entry is; 0, which is a header, for none. */
  private entryOf = NOTHING;
  /** By the link of their block; 0 is none. */
  private readonly crowds: (PositionIndexCrowd | undefined)[] = [undefined];
  private readonly freeCrowds: number[] = [];
  private nodesMade = 0;
  private blocksMade = 0;
  private freeNode = 0;
  private freeBlock = EMPTY;
  private readonly places: Places;
  private readonly rankOf: RankOf;

  constructor(places: Places, rankOf: RankOf) {
    this.places = places;
    this.rankOf = rankOf;
  }

  get bytes(): number {
    return this.children.byteLength + this.pool.byteLength + this.entryOf.byteLength;
  }

  has(slot: number): boolean {
    return slot < this.entryOf.length && this.entryOf[slot] !== 0;
  }

  crowdOf(block: number): PositionIndexCrowd {
    return this.crowds[this.pool[(block << BLOCK_SHIFT) + LINK]!]!;
  }

  /** What stands at a cell, given by its depth and lower corner: its node, or the leaf that it is part of, or EMPTY. */
  refAt(depth: number, x: number, y: number, z: number): number {
    let ref = this.children[ROOT]!;
    for (let at = 0; at < depth && ref > 0; at++) ref = this.children[2 * ref + half(at, x, y, z)]!;
    return ref;
  }

  /** Adds a slot that is not in, and has its place. */
  insert(slot: number, x: number, y: number, z: number): void {
    this.entryOf = grown(this.entryOf, slot + 1);
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
        this.crowd(~ref, slot);
        return;
      } else {
        this.split(at, depth);
      }
    }
  }

  /** Moves a slot that is in, if it stays in its leaf's cell and is in no crowd; else false, and nothing is changed. */
  shift(slot: number, x: number, y: number, z: number): boolean {
    const pool = this.pool;
    const entry = this.entryOf[slot]!;
    const base = (entry >> BLOCK_SHIFT) << BLOCK_SHIFT;
    if (pool[base] === CROWDED) return false;
    const depth = pool[base + DEPTH]!;
    // The leading bits that lead to this leaf, of each axis.
    const leftX = (x ^ pool[entry]!) >>> (LATTICE_BITS - (((depth + 2) / 3) | 0));
    const leftY = (y ^ pool[entry + 1]!) >>> (LATTICE_BITS - (((depth + 1) / 3) | 0));
    const leftZ = (z ^ pool[entry + 2]!) >>> (LATTICE_BITS - ((depth / 3) | 0));
    if ((leftX | leftY | leftZ) !== 0) return false;
    pool[entry] = x;
    pool[entry + 1] = y;
    pool[entry + 2] = z;
    return true;
  }

  /** Takes out a slot that is in, and still has the place that it was inserted with. */
  erase(slot: number): void {
    const pool = this.pool;
    const entry = this.entryOf[slot]!;
    const depth = this.descend(pool[entry]!, pool[entry + 1]!, pool[entry + 2]!);
    const at = path[depth]!;
    const leaf = this.children[at]!;
    const base = ~leaf << BLOCK_SHIFT;
    this.entryOf[slot] = 0;
    if (pool[base] === CROWDED) {
      this.leaveCrowd(~leaf, slot);
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

  /** Puts a slot to the others of a block that is full, or crowded already, and cannot be split. */
  private crowd(block: number, slot: number): void {
    const pool = this.pool;
    const base = block << BLOCK_SHIFT;
    if (pool[base] !== CROWDED) {
      const link = this.freeCrowds.pop() ?? this.crowds.length;
      const crowd = new PositionIndexCrowd(this.rankOf);
      this.crowds[link] = crowd;
      pool[base + LINK] = link;
      pool[base] = CROWDED;
      for (let n = 1; n <= BLOCK_CAPACITY; n++)
        this.enterCrowd(block, crowd, pool[base + ENTRY_INTS * n + SLOT]!);
    }
    this.enterCrowd(block, this.crowdOf(block), slot);
  }

  private enterCrowd(block: number, crowd: PositionIndexCrowd, slot: number): void {
    crowd.add(slot, this.places.latOf(slot), this.places.lngOf(slot));
    this.entryOf[slot] = (block << BLOCK_SHIFT) + ENTRY_INTS;
  }

  /** What becomes of a crowd that has thinned out is a block again. */
  private leaveCrowd(block: number, slot: number): void {
    const crowd = this.crowdOf(block);
    crowd.remove(slot, this.places.latOf(slot), this.places.lngOf(slot));
    if (crowd.size > MERGE_COUNT) return;
    const pool = this.pool;
    const base = block << BLOCK_SHIFT;
    const [x, y, z] = [pool[base + ENTRY_INTS]!, pool[base + ENTRY_INTS + 1]!, pool[base + ENTRY_INTS + 2]!];
    const link = pool[base + LINK]!;
    this.crowds[link] = undefined;
    this.freeCrowds.push(link);
    pool[base] = 0;
    for (const spot of crowd.spotsAfter(null, MERGE_COUNT)) {
      for (const other of spot.slots.slice(0, MERGE_COUNT)) this.append(block, other, x, y, z);
    }
  }

  /** Fills `path` with the places of the references that lead to a point's leaf; answers the leaf's depth. */
  private descend(x: number, y: number, z: number): number {
    let depth = 0;
    path[0] = ROOT;
    for (let ref = this.children[ROOT]!; ref > 0; ref = this.children[path[depth]!]!) {
      const at = 2 * ref + half(depth++, x, y, z);
      path[depth] = at;
    }
    return depth;
  }

  /** Puts an inner node in the place of the full leaf there and deals its points to two halves. */
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

  /** Folds pairs of small leaves into their parents, upwards from the cell at the end of `path`. */
  private merge(from: number): void {
    for (let depth = from; depth > 0; depth--) {
      const node = path[depth]! >> 1;
      const lower = this.children[2 * node]!;
      const upper = this.children[2 * node + 1]!;
      if (this.mergeCount(lower) + this.mergeCount(upper) > MERGE_COUNT) return;
      if (lower !== EMPTY && upper !== EMPTY) this.pour(~upper, ~lower);
      const merged = lower === EMPTY ? upper : lower;
      if (merged !== EMPTY) this.pool[(~merged << BLOCK_SHIFT) + DEPTH] = depth - 1;
      this.children[path[depth - 1]!] = merged;
      this.children[2 * node] = this.freeNode;
      this.freeNode = node;
      this.nodesInUse--;
    }
  }

  /** How many points a merge has to take over; too many if this is an inner node or a crowd. */
  private mergeCount(ref: number): number {
    if (ref === EMPTY) return 0;
    return ref > 0 ? BLOCK_CAPACITY : this.count(ref);
  }

  private pour(from: number, to: number): void {
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
    this.entryOf[slot] = entry;
  }

  private copyEntry(from: number, to: number): void {
    const pool = this.pool;
    pool[to] = pool[from]!;
    pool[to + 1] = pool[from + 1]!;
    pool[to + 2] = pool[from + 2]!;
    pool[to + SLOT] = pool[from + SLOT]!;
    this.entryOf[pool[to + SLOT]!] = to;
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
function half(depth: number, x: number, y: number, z: number): number {
  const round = (depth / 3) | 0;
  const axis = depth - 3 * round;
  return ((axis === 0 ? x : axis === 1 ? y : z) >>> (LATTICE_BITS - 1 - round)) & 1;
}

function grown(array: Int32Array<ArrayBuffer>, length: number): Int32Array<ArrayBuffer> {
  if (length <= array.length) return array;
  const larger = new Int32Array(Math.max(length, 2 * array.length));
  larger.set(array);
  return larger;
}

const NOTHING = new Int32Array(0);
/** The way of the last descent; one for all tries, since nothing here ever waits. */
const path = new Int32Array(MAX_DEPTH + 1);
