import type { NearestHits } from './nearestHits.ts';
import type { ColocatedDevices } from './overflowBucket.ts';
import { BLOCK_SHIFT, ENTRY_INTS, OVERFLOWED, SLOT, type Trie } from './trie.ts';

/** Offers the devices of a leaf that are within reach to the hits of a search. */
export class LeafScan {
  /** The key of the last position of an overflow bucket whose devices were all offered. */
  lastPosition: string | null = null;
  private readonly hits: NearestHits;
  /** The query in lattice steps. */
  private readonly query: Float64Array;
  private trie: Trie | null = null;
  private pool = new Int32Array(0);
  private limit = 0;
  private skipped: ReadonlySet<number> | null = null;
  private afterPosition: string | null = null;

  constructor(hits: NearestHits, query: Float64Array) {
    this.hits = hits;
    this.query = query;
  }

  /** Starts over. Slots in `skipped` are left out, and positions of an overflow bucket up to `afterPosition`. */
  reset(trie: Trie, limit: number, skipped: ReadonlySet<number> | null, afterPosition: string | null): void {
    this.trie = trie;
    this.pool = trie.pool;
    this.limit = limit;
    this.skipped = skipped;
    this.afterPosition = afterPosition;
  }

  scan(leaf: number): void {
    const { pool, hits, skipped } = this;
    const x = this.query[0]!;
    const y = this.query[1]!;
    const z = this.query[2]!;
    hits.spend(BLOCK_WORK);
    const base = ~leaf << BLOCK_SHIFT;
    const count = pool[base]!;
    if (count === OVERFLOWED) {
      this.scanBucket(leaf);
      return;
    }
    const last = base + ENTRY_INTS * count;
    for (let entry = base + ENTRY_INTS; entry <= last; entry += ENTRY_INTS) {
      const dx = pool[entry]! - x;
      const dy = pool[entry + 1]! - y;
      const dz = pool[entry + 2]! - z;
      const chordSq = dx * dx + dy * dy + dz * dz;
      if (chordSq > hits.reachSq) continue;
      const slot = pool[entry + SLOT]!;
      if (skipped === null || !skipped.has(slot)) hits.meet(slot, chordSq);
    }
  }

  /** Offers the first few devices of each position: the others are equally far and rank lower. */
  private scanBucket(leaf: number): void {
    const { pool, hits, query } = this;
    const entry = (~leaf << BLOCK_SHIFT) + ENTRY_INTS;
    const dx = pool[entry]! - query[0]!;
    const dy = pool[entry + 1]! - query[1]!;
    const dz = pool[entry + 2]! - query[2]!;
    const chordSq = dx * dx + dy * dy + dz * dz;
    const bucket = this.trie!.bucketOf(~leaf);
    this.lastPosition = this.afterPosition;
    for (;;) {
      const positions = bucket.positionsAfter(this.lastPosition, POSITIONS_AT_ONCE);
      for (const position of positions) {
        if (chordSq > hits.reachSq) return;
        this.meetColocated(position, chordSq);
        if (!hits.isCut) this.lastPosition = position.key;
      }
      if (positions.length < POSITIONS_AT_ONCE) return;
    }
  }

  private meetColocated({ slots }: ColocatedDevices, chordSq: number): void {
    this.hits.spend(POSITION_WORK);
    let wanted = this.limit;
    for (let from = 0; wanted > 0 && from < slots.size; from += this.limit) {
      for (const slot of slots.slice(from, this.limit)) {
        if (this.skipped?.has(slot) === true) continue;
        this.hits.meet(slot, chordSq);
        if (--wanted === 0) return;
      }
    }
  }
}

/** In units of one distance on the ellipsoid, as NearestHits counts work. */
const BLOCK_WORK = 0.5;
const POSITION_WORK = 1;
/** Positions that are read from an overflow bucket together. */
const POSITIONS_AT_ONCE = 64;
