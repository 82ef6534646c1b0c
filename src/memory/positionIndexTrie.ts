import { LATTICE_BITS, MAX_DEPTH } from './positionIndexLattice.ts';

/** A reference between cells is positive for an inner node, negative for a leaf (`~ref` is its first block), or this. */
export const EMPTY = 0;
/** Where `children` keeps the reference to the root: node 0 is nobody's child. */
export const ROOT = 0;

// A block is 128 integers, 512 bytes: a header (count, next block of the same leaf, depth) and 31 entries (x, y, z, slot).
export const BLOCK_SHIFT = 7;
export const ENTRY_INTS = 4;
export const NEXT = 1;
export const SLOT = 3;
const DEPTH = 2;
const BLOCK_CAPACITY = (1 << BLOCK_SHIFT) / ENTRY_INTS - 1;
/** Two leaves holding no more than this together become one; half a block, so that it does not split at once. */
const MERGE_COUNT = BLOCK_CAPACITY >> 1;

/**
 * A bucket trie over lattice points, each known by its slot. Cells halve along x, y and z in turn, so the shape follows
 * from the points alone, whatever their order: depth is bounded and nothing is ever rebalanced. A leaf is one block of
 * contiguous entries; only at MAX_DEPTH, where all points are equal, it chains several, and just the first has room.
 * Freed nodes and blocks are used again; arrays double when they are full and never shrink.
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
  private nodesMade = 0;
  private blocksMade = 0;
  private freeNode = 0;
  private freeBlock = EMPTY;

  get bytes(): number {
    return this.children.byteLength + this.pool.byteLength + this.entryOf.byteLength;
  }

  has(slot: number): boolean {
    return slot < this.entryOf.length && this.entryOf[slot] !== 0;
  }

  /** Adds a slot that is not in. */
  insert(slot: number, x: number, y: number, z: number): void {
    this.entryOf = grown(this.entryOf, slot + 1);
    let at = ROOT;
    let depth = 0;
    for (;;) {
      const ref = this.children[at]!;
      if (ref > 0) {
        at = 2 * ref + half(depth++, x, y, z);
      } else if (ref === EMPTY) {
        this.children[at] = ~this.newBlock(depth, EMPTY);
      } else if (this.count(ref) < BLOCK_CAPACITY) {
        this.append(~ref, slot, x, y, z);
        return;
      } else if (depth === MAX_DEPTH) {
        this.children[at] = ~this.newBlock(depth, ref);
      } else {
        this.split(at, depth);
      }
    }
  }

  /** Moves a slot that is in: in place as long as it stays in its leaf's cell. */
  move(slot: number, x: number, y: number, z: number): void {
    const pool = this.pool;
    const entry = this.entryOf[slot]!;
    const depth = pool[((entry >> BLOCK_SHIFT) << BLOCK_SHIFT) + DEPTH]!;
    // The leading bits that lead to this leaf, of each axis.
    const leftX = (x ^ pool[entry]!) >>> (LATTICE_BITS - (((depth + 2) / 3) | 0));
    const leftY = (y ^ pool[entry + 1]!) >>> (LATTICE_BITS - (((depth + 1) / 3) | 0));
    const leftZ = (z ^ pool[entry + 2]!) >>> (LATTICE_BITS - ((depth / 3) | 0));
    if ((leftX | leftY | leftZ) === 0) {
      pool[entry] = x;
      pool[entry + 1] = y;
      pool[entry + 2] = z;
    } else {
      this.erase(slot);
      this.insert(slot, x, y, z);
    }
  }

  /** Takes out a slot that is in. */
  erase(slot: number): void {
    const pool = this.pool;
    const entry = this.entryOf[slot]!;
    const depth = this.descend(pool[entry]!, pool[entry + 1]!, pool[entry + 2]!);
    const at = path[depth]!;
    const leaf = this.children[at]!;
    const base = ~leaf << BLOCK_SHIFT;
    const last = base + ENTRY_INTS * pool[base]!--;
    if (entry !== last) this.copyEntry(last, entry);
    this.entryOf[slot] = 0;
    if (pool[base] === 0) {
      this.children[at] = pool[base + NEXT]!;
      this.release(~leaf);
    }
    this.merge(depth);
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
    const upper = this.newBlock(depth + 1, EMPTY);
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

  /** How many points a merge has to take over; too many if this is an inner node or a chain. */
  private mergeCount(ref: number): number {
    if (ref === EMPTY) return 0;
    if (ref > 0 || this.pool[(~ref << BLOCK_SHIFT) + NEXT] !== EMPTY) return BLOCK_CAPACITY;
    return this.count(ref);
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

  private newBlock(depth: number, next: number): number {
    this.blocksInUse++;
    let block = ~this.freeBlock;
    if (this.freeBlock === EMPTY) {
      block = this.blocksMade++;
      this.pool = grown(this.pool, this.blocksMade << BLOCK_SHIFT);
    } else {
      this.freeBlock = this.pool[(block << BLOCK_SHIFT) + NEXT]!;
    }
    const base = block << BLOCK_SHIFT;
    this.pool[base] = 0;
    this.pool[base + NEXT] = next;
    this.pool[base + DEPTH] = depth;
    return block;
  }

  private release(block: number): void {
    this.blocksInUse--;
    this.pool[(block << BLOCK_SHIFT) + NEXT] = this.freeBlock;
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
