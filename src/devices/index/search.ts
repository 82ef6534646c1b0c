import { writeSurfacePoint } from '../../geo/wgs84.ts';
import { FarSearch } from './farSearch.ts';
import { gapSq, NearestHits, type NearHit, type Precedes } from './nearestHits.ts';
import type { ColocatedDevices } from './overflowBucket.ts';
import {
  BLOCK_SHIFT,
  EMPTY,
  ENTRY_INTS,
  HALF_DIAGONALS,
  HALVES,
  half,
  LATTICE_CENTRE,
  MAX_DEPTH,
  OVERFLOWED,
  ROOT,
  SLOT,
  type SlotPositions,
  STEPS_PER_M,
  type Trie,
} from './trie.ts';

/** A cell of the lattice. It does not depend on the trie, so it stays valid when the trie changes. */
export interface Cell {
  readonly depth: number;
  /** Its lower corner. */
  readonly x: number;
  readonly y: number;
  readonly z: number;
  /** In a cell of one lattice point: only the positions of its overflow bucket after this key; null: all. */
  readonly afterPosition: string | null;
}

/** Which slots a search takes. */
export interface SlotFilter {
  passes(slot: number): boolean;
  /** What it takes to turn a slot down, in units of one distance on the ellipsoid. */
  readonly work: number;
}

export const WHOLE_EARTH: Cell = { depth: 0, x: 0, y: 0, z: 0, afterPosition: null };

/**
 * Finds the devices nearest to a position, exactly by `distanceM`. Nearby, cells are visited by their chords (`visit`);
 * far away, where chords are poor bounds, by geodesics to groups of devices (FarSearch). What is found goes to
 * NearestHits, which also limits the work: a search that `isCut` can be repeated on smaller cells. Lengths without a
 * unit in their name are lattice steps. One instance serves all tries, one call at a time.
 */
export class Search {
  /** Where the query of the last run was, in lattice steps. */
  readonly query = new Float64Array(3);
  /** How many slots within reach the last run has turned down. */
  rejected = 0;
  /** In a run on a single lattice point: the key of the last position whose devices were all offered. */
  lastPosition: string | null = null;
  private readonly hits = new NearestHits();
  private readonly far = new FarSearch(this.hits, this.query, (leaf) => this.scan(leaf));
  private readonly stack = new Float64Array(STACK_FIELDS * MAX_DEPTH);
  private trie: Trie | null = null;
  private pool = new Int32Array(0);
  private limit = 0;
  private filter: SlotFilter | null = null;
  private afterPosition: string | null = null;

  /** `slots` knows where they are. Those that do not pass the filter are left out. */
  run(
    trie: Trie,
    slots: SlotPositions,
    lat: number,
    lng: number,
    limit: number,
    maxM: number,
    precedes: Precedes,
    cell: Cell,
    filter: SlotFilter | null,
  ): NearHit[] {
    // In a single lattice point devices are measured at once, so that each position is finished before the next.
    const isPoint = cell.depth === MAX_DEPTH;
    this.hits.reset(slots, lat, lng, limit, maxM, precedes, isPoint);
    this.trie = trie;
    this.pool = trie.pool;
    this.limit = limit;
    this.filter = filter;
    this.rejected = 0;
    this.afterPosition = cell.afterPosition;
    writeSurfacePoint(lat, lng, this.query, 0);
    for (let axis = 0; axis < 3; axis++) this.query[axis] = this.query[axis]! * STEPS_PER_M + LATTICE_CENTRE;
    this.visit(trie, cell);
    return this.hits.drain();
  }

  /** True when the last run ended before it was complete. */
  get isCut(): boolean {
    return this.hits.isCut;
  }

  /** Depth first, the nearer half first; the other halves wait on the stack with their squared chord to the query. */
  private visit(trie: Trie, cell: Cell): void {
    const { stack, hits } = this;
    const { children } = trie;
    let depth = cell.depth;
    let ref = refAt(trie, cell);
    // The cell's centre seen from the query: the axis that is halved next, then the other two in turn.
    const turn = depth % 3;
    const half0 = HALVES[depth]!;
    const half1 = HALVES[depth + 1]!;
    const half2 = HALVES[depth + 2]!;
    const x = cell.x - this.query[0]!;
    const y = cell.y - this.query[1]!;
    const z = cell.z - this.query[2]!;
    let c0 = (turn === 0 ? x : turn === 1 ? y : z) + half0;
    let c1 = (turn === 0 ? y : turn === 1 ? z : x) + half1;
    let c2 = (turn === 0 ? z : turn === 1 ? x : y) + half2;
    let chordSq = gapSq(c0, half0) + gapSq(c1, half1) + gapSq(c2, half2);
    if (chordSq > hits.reachSq) return;
    let top = 0;
    for (;;) {
      if (isFar(chordSq, depth)) {
        this.far.visit(children, ref, depth, c0, c1, c2);
      } else if (ref < 0) {
        this.scan(ref);
      } else if (ref > 0) {
        const toNear = c0 < 0 ? HALVES[depth]! / 2 : -HALVES[depth]! / 2;
        const near = c0 < 0 ? 2 * ref + 1 : 2 * ref;
        const farRef = children[near ^ 1]!;
        const outside = Math.max(0, Math.abs(c0) - HALVES[depth]!);
        const farSq = chordSq - outside * outside + c0 * c0;
        depth++;
        if (farRef !== EMPTY && farSq <= hits.reachSq) {
          stack[top] = farRef;
          stack[top + 1] = depth;
          stack[top + 2] = c1;
          stack[top + 3] = c2;
          stack[top + 4] = c0 - toNear;
          stack[top + 5] = farSq;
          top += STACK_FIELDS;
        }
        ref = children[near]!;
        const turned = c0 + toNear;
        c0 = c1;
        c1 = c2;
        c2 = turned;
        continue;
      }
      do {
        if (top === 0) return;
        top -= STACK_FIELDS;
        chordSq = stack[top + 5]!;
      } while (chordSq > hits.reachSq);
      ref = stack[top]!;
      depth = stack[top + 1]!;
      c0 = stack[top + 2]!;
      c1 = stack[top + 3]!;
      c2 = stack[top + 4]!;
    }
  }

  /** Offers the devices of a leaf that are within reach. */
  private scan(leaf: number): void {
    const { pool, hits, filter } = this;
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
      if (filter === null || filter.passes(slot)) hits.meet(slot, chordSq);
      else this.reject(filter);
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

  private reject({ work }: SlotFilter): void {
    this.rejected++;
    this.hits.spend(work);
  }

  private meetColocated({ slots }: ColocatedDevices, chordSq: number): void {
    this.hits.spend(POSITION_WORK);
    let wanted = this.limit;
    for (let from = 0; wanted > 0 && from < slots.size; from += this.limit) {
      for (const slot of slots.slice(from, this.limit)) {
        if (this.filter === null || this.filter.passes(slot)) {
          this.hits.meet(slot, chordSq);
          wanted--;
        } else {
          this.reject(this.filter);
        }
        if (wanted === 0 || this.hits.isCut) return;
      }
    }
  }
}

/** Reference, depth, centre, squared chord. */
const STACK_FIELDS = 6;
/** In units of one distance on the ellipsoid, as NearestHits counts work. */
const BLOCK_WORK = 0.5;
const POSITION_WORK = 1;
/** Positions that are read from an overflow bucket together. */
const POSITIONS_AT_ONCE = 64;

/** True when one geodesic for the whole cell pays off: it is far away, and small compared to its distance. */
function isFar(chordSq: number, depth: number): boolean {
  return chordSq >= FAR_SQ && HALF_DIAGONALS[depth]! * FAR_RATIO <= Math.sqrt(chordSq);
}

/** At less than this, arc and chord differ by less than 30 m. */
const FAR_SQ = (300_000 * STEPS_PER_M) ** 2;
/** A far cell is at least this many half diagonals away. */
const FAR_RATIO = 12;

/**
 * Smaller cells that together contain all devices of the cell, the farthest from the query first. A cell of one lattice
 * point is continued after the position with the key `lastPosition`.
 */
export function splitCell(trie: Trie, cell: Cell, query: Float64Array, lastPosition: string | null): Cell[] {
  if (cell.depth === MAX_DEPTH) return [{ ...cell, afterPosition: lastPosition }];
  let cells = [cell];
  for (let n = 0; n < HALVINGS; n++) cells = cells.flatMap((each) => halvesOf(trie, each, query));
  return cells;
}

/** How often a cell is halved at once: more would create needless cells, fewer would search large cells for nothing. */
const HALVINGS = 3;

/** The two halves, the farther first. One cell when it cannot be halved, none when it is empty. */
function halvesOf(trie: Trie, cell: Cell, query: Float64Array): Cell[] {
  for (let at = cell; ; ) {
    if (at.depth === MAX_DEPTH) return [at];
    const axis = at.depth % 3;
    const step = HALVES[at.depth]!;
    const lower = { ...at, depth: at.depth + 1 };
    const upper = {
      ...lower,
      x: at.x + (axis === 0 ? step : 0),
      y: at.y + (axis === 1 ? step : 0),
      z: at.z + (axis === 2 ? step : 0),
    };
    const isLowerEmpty = refAt(trie, lower) === EMPTY;
    const isUpperEmpty = refAt(trie, upper) === EMPTY;
    if (!isLowerEmpty && !isUpperEmpty) {
      const middle = axis === 0 ? upper.x : axis === 1 ? upper.y : upper.z;
      return query[axis]! < middle ? [upper, lower] : [lower, upper];
    }
    if (isLowerEmpty && isUpperEmpty) return [];
    at = isLowerEmpty ? upper : lower;
  }
}

/** The reference at a cell: its node, the leaf that contains it, or EMPTY. */
export function refAt({ children }: Trie, { depth, x, y, z }: Cell): number {
  let ref = children[ROOT]!;
  for (let at = 0; at < depth && ref > 0; at++) ref = children[2 * ref + half(at, x, y, z)]!;
  return ref;
}
