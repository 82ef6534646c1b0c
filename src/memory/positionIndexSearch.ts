import { distanceM } from '../geometry/distance.ts';
import { maxChordM } from '../geometry/maxChord.ts';
import { maxGeodesicM } from '../geometry/maxGeodesic.ts';
import { writeSurfacePoint } from '../geometry/surfacePoint.ts';
import { PositionIndexAnchor } from './positionIndexAnchor.ts';
import { arcM, chordOfArc } from './positionIndexArc.ts';
import { type Cell, WHOLE } from './positionIndexCell.ts';
import type { Spot } from './positionIndexCrowd.ts';
import { type NearHit, PositionIndexHeap, type Precedes } from './positionIndexHeap.ts';
import { HALF_DIAGONALS, HALVES, LATTICE_CENTRE, MAX_DEPTH, STEPS_PER_M } from './positionIndexLattice.ts';
import type { PositionIndexTrie } from './positionIndexTrie.ts';
import { BLOCK_SHIFT, CROWDED, EMPTY, ENTRY_INTS, SLOT } from './positionIndexTrie.ts';

/** What a search is confined to. */
export interface SearchPart {
  readonly cell: Cell;
  /** Slots to pass over; null: none. */
  readonly passed: ReadonlySet<number> | null;
}

export const EVERYTHING: SearchPart = { cell: WHOLE, passed: null };

/**
 * Finds the devices nearest to a position, exactly by `distanceM`, which takes longer than the rest of a search and is
 * called for hardly more than the devices that are found. Nearby, chords bound geodesics from below and from above
 * within millimetres (`maxChordM`, `maxGeodesicM`): candidates are gathered by chord alone and weighed at the end. Far
 * away, where that is a matter of kilometres, devices are weighed as they are met, and cells are ruled out by a
 * geodesic to each group of them (PositionIndexAnchor). Where many thousands are equally far, all of them have to be
 * weighed, so a search stops after so much work (`isCut`) and can be repeated on smaller parts. Lengths without a unit
 * in their name are lattice steps. One instance serves all tries, one call at a time.
 */
export class PositionIndexSearch {
  private readonly heap = new PositionIndexHeap();
  /** Squared chords of the best candidates: the worst of them bounds the search as long as nothing is weighed. */
  private readonly chords = new PositionIndexHeap();
  private readonly candidates = new Int32Array(MAX_CANDIDATES);
  private readonly candidateChordsSq = new Float64Array(MAX_CANDIDATES);
  private candidateCount = 0;
  /** Candidates are no longer gathered: whatever is met is weighed. */
  private isWeighing = false;
  private readonly stack = new Float64Array(STACK_FIELDS * MAX_DEPTH);
  private readonly query = new Float64Array(3);
  private readonly anchor = new PositionIndexAnchor();
  private lat = 0;
  private lng = 0;
  private trie: PositionIndexTrie | null = null;
  private children = new Int32Array(0);
  private pool = new Int32Array(0);
  private positions = new Float64Array(0);
  /** Squared chord beyond which nothing can be a hit. */
  private reachSq = 0;
  private weighedLat = 0;
  private weighedLng = 0;
  private weighedM = 0;
  private limit = 0;
  private passed: ReadonlySet<number> | null = null;
  private afterSpot: string | null = null;
  /** In units of one distance on the ellipsoid, 0.2 to 0.5 µs. */
  private work = 0;
  /** The last run stopped before its end: what it found is there, and others that are nearer may be, too. */
  isCut = false;
  /** Of a cell that is a single lattice point: the last spot that needs no second look. */
  lastSpot: string | null = null;

  /** `positions` holds lat and lng of slot s at 2s and 2s + 1. */
  run(
    trie: PositionIndexTrie,
    positions: Float64Array<ArrayBuffer>,
    lat: number,
    lng: number,
    limit: number,
    maxM: number,
    precedes: Precedes,
    { cell, passed }: SearchPart,
  ): NearHit[] {
    this.heap.reset(limit, maxM, precedes);
    this.chords.reset(limit, Infinity, anyOrder);
    this.candidateCount = 0;
    // So that a spot that was looked at is done with.
    this.isWeighing = cell.depth === MAX_DEPTH;
    this.work = 0;
    this.isCut = false;
    this.limit = limit;
    this.passed = passed;
    this.afterSpot = cell.afterSpot;
    this.trie = trie;
    this.lat = lat;
    this.lng = lng;
    this.children = trie.children;
    this.pool = trie.pool;
    this.positions = positions;
    this.weighedLat = Number.NaN;
    writeSurfacePoint(lat, lng, this.query, 0);
    for (let axis = 0; axis < 3; axis++) this.query[axis] = this.query[axis]! * STEPS_PER_M + LATTICE_CENTRE;
    this.reachSq = reachSqOf(maxM);
    this.visitNear(trie, cell);
    this.weighCandidates();
    return this.heap.drain();
  }

  /** In lattice steps; of the last run. */
  get place(): Float64Array {
    return this.query;
  }

  /** Depth first, the nearer half first; the other halves wait on the stack with their squared chord to the query. */
  private visitNear(trie: PositionIndexTrie, cell: Cell): void {
    const { children, stack } = this;
    let depth = cell.depth;
    let ref = trie.refAt(depth, cell.x, cell.y, cell.z);
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
    if (chordSq > this.reachSq) return;
    let top = 0;
    for (;;) {
      if (isFar(chordSq, depth)) {
        this.weighCandidates();
        this.visitFar(ref, depth, c0, c1, c2, -Infinity, -Infinity, -Infinity);
      } else if (ref < 0) {
        this.scan(ref);
      } else if (ref > 0) {
        const toNear = c0 < 0 ? HALVES[depth]! / 2 : -HALVES[depth]! / 2;
        const near = c0 < 0 ? 2 * ref + 1 : 2 * ref;
        const farRef = children[near ^ 1]!;
        const outside = Math.max(0, Math.abs(c0) - HALVES[depth]!);
        const farSq = chordSq - outside * outside + c0 * c0;
        depth++;
        if (farRef !== EMPTY && farSq <= this.reachSq) {
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
      } while (chordSq > this.reachSq);
      ref = stack[top]!;
      depth = stack[top + 1]!;
      c0 = stack[top + 2]!;
      c1 = stack[top + 3]!;
      c2 = stack[top + 4]!;
    }
  }

  /**
   * Far away the chord alone is a poor bound: a whole city may lie within what it lacks to its arc. There no device of
   * a cell is nearer than `leastM`, nor than what its own chord says and `overArcM`, both from an anchor near it.
   */
  private visitFar(
    ref: number,
    depth: number,
    c0: number,
    c1: number,
    c2: number,
    overArcM: number,
    leastM: number,
    anchorDepth: number,
  ): void {
    if (ref === EMPTY || leastM > this.heap.reach) return;
    const chordSq = gapSq(c0, HALVES[depth]!) + gapSq(c1, HALVES[depth + 1]!) + gapSq(c2, HALVES[depth + 2]!);
    if (arcM(Math.sqrt(chordSq)) + overArcM > this.heap.reach) return;
    if (depth >= anchorDepth + ANCHOR_DEPTHS) {
      this.measureAnchor(depth, c0, c1, c2);
      this.visitFar(ref, depth, c0, c1, c2, this.anchor.overArcM, this.anchor.leastM, depth);
      return;
    }
    if (ref < 0) {
      this.scanFar(ref, overArcM);
      return;
    }
    const step = HALVES[depth]! / 2;
    const lower = this.children[2 * ref]!;
    const upper = this.children[2 * ref + 1]!;
    if (overArcM > -Infinity) {
      const [nearRef, farRef, toNear] = c0 < 0 ? [upper, lower, step] : [lower, upper, -step];
      this.visitFar(nearRef, depth + 1, c1, c2, c0 + toNear, overArcM, leastM, anchorDepth);
      this.visitFar(farRef, depth + 1, c1, c2, c0 - toNear, overArcM, leastM, anchorDepth);
      return;
    }
    // Around the antipode chords do not even tell which half is nearer.
    this.anchorHalf(lower, depth + 1, c1, c2, c0 - step);
    const { overArcM: lowerOverArcM, leastM: lowerLeastM } = this.anchor;
    this.anchorHalf(upper, depth + 1, c1, c2, c0 + step);
    const { overArcM: upperOverArcM, leastM: upperLeastM } = this.anchor;
    if (lowerLeastM <= upperLeastM)
      this.visitFar(lower, depth + 1, c1, c2, c0 - step, lowerOverArcM, lowerLeastM, depth + 1);
    this.visitFar(upper, depth + 1, c1, c2, c0 + step, upperOverArcM, upperLeastM, depth + 1);
    if (lowerLeastM > upperLeastM)
      this.visitFar(lower, depth + 1, c1, c2, c0 - step, lowerOverArcM, lowerLeastM, depth + 1);
  }

  private anchorHalf(ref: number, depth: number, c0: number, c1: number, c2: number): void {
    if (ref === EMPTY) this.anchor.leastM = Infinity;
    else this.measureAnchor(depth, c0, c1, c2);
  }

  private measureAnchor(depth: number, c0: number, c1: number, c2: number): void {
    this.anchor.measure(this.lat, this.lng, this.query, depth, c0, c1, c2);
    this.spend(2 * workOf(this.anchor.leastM));
  }

  private scanFar(leaf: number, overArcM: number): void {
    const { reachSq } = this;
    const reach = chordOfArc(this.heap.reach - overArcM);
    this.reachSq = Math.min(reachSq, reach * reach);
    this.scan(leaf);
    this.reachSq = this.isCut ? NOTHING_SQ : Math.min(reachSq, reachSqOf(this.heap.reach));
  }

  private scan(leaf: number): void {
    const pool = this.pool;
    const x = this.query[0]!;
    const y = this.query[1]!;
    const z = this.query[2]!;
    this.spend(BLOCK_WORK);
    const base = ~leaf << BLOCK_SHIFT;
    const count = pool[base]!;
    if (count === CROWDED) {
      this.scanCrowd(leaf);
      return;
    }
    const last = base + ENTRY_INTS * count;
    for (let entry = base + ENTRY_INTS; entry <= last; entry += ENTRY_INTS) {
      const dx = pool[entry]! - x;
      const dy = pool[entry + 1]! - y;
      const dz = pool[entry + 2]! - z;
      const chordSq = dx * dx + dy * dy + dz * dz;
      if (chordSq > this.reachSq) continue;
      const slot = pool[entry + SLOT]!;
      if (this.passed === null || !this.passed.has(slot)) this.meet(slot, chordSq);
    }
  }

  /** Spot after spot; of each the first few, since the others are as far away and do not go first. */
  private scanCrowd(leaf: number): void {
    const base = ~leaf << BLOCK_SHIFT;
    const dx = this.pool[base + ENTRY_INTS]! - this.query[0]!;
    const dy = this.pool[base + ENTRY_INTS + 1]! - this.query[1]!;
    const dz = this.pool[base + ENTRY_INTS + 2]! - this.query[2]!;
    const chordSq = dx * dx + dy * dy + dz * dz;
    const crowd = this.trie!.crowdOf(~leaf);
    this.lastSpot = this.afterSpot;
    for (;;) {
      const spots = crowd.spotsAfter(this.lastSpot, SPOTS_AT_ONCE);
      for (const spot of spots) {
        if (chordSq > this.reachSq) return;
        this.meetSpot(spot, chordSq);
        if (!this.isCut) this.lastSpot = spot.key;
      }
      if (spots.length < SPOTS_AT_ONCE) return;
    }
  }

  private meetSpot({ slots }: Spot, chordSq: number): void {
    this.spend(SPOT_WORK);
    let wanted = this.limit;
    for (let from = 0; wanted > 0 && from < slots.size; from += this.limit) {
      for (const slot of slots.slice(from, this.limit)) {
        if (this.passed?.has(slot) === true) continue;
        this.meet(slot, chordSq);
        if (--wanted === 0) return;
      }
    }
  }

  private meet(slot: number, chordSq: number): void {
    if (this.candidateCount === MAX_CANDIDATES) this.weighCandidates();
    if (this.isWeighing) {
      this.weigh(slot);
      return;
    }
    this.candidates[this.candidateCount] = slot;
    this.candidateChordsSq[this.candidateCount++] = chordSq;
    const worstSq = this.chords.reach;
    this.chords.offer(chordSq, slot);
    if (this.chords.reach === worstSq) return;
    // So many are at most this far away that nobody farther can be a hit.
    const leastReachM = maxGeodesicM((Math.sqrt(this.chords.reach) + 1) / STEPS_PER_M);
    this.reachSq = Math.min(this.reachSq, reachSqOf(leastReachM));
  }

  /** From here on everything is weighed. */
  private weighCandidates(): void {
    if (this.isWeighing) return;
    this.isWeighing = true;
    for (let i = 0; i < this.candidateCount; i++) {
      if (this.candidateChordsSq[i]! <= this.reachSq) this.weigh(this.candidates[i]!);
    }
  }

  private weigh(slot: number): void {
    const lat = this.positions[2 * slot]!;
    const lng = this.positions[2 * slot + 1]!;
    // Thousands of devices may report the very same position.
    if (lat !== this.weighedLat || lng !== this.weighedLng) {
      this.weighedLat = lat;
      this.weighedLng = lng;
      this.weighedM = distanceM(this.lat, this.lng, lat, lng);
      this.spend(workOf(this.weighedM));
    }
    const reachM = this.heap.reach;
    this.heap.offer(this.weighedM, slot);
    if (this.heap.reach < reachM) this.reachSq = Math.min(this.reachSq, reachSqOf(this.heap.reach));
  }

  /** Once all is spent nothing is near enough any more, which ends whatever is going on. */
  private spend(work: number): void {
    this.work += work;
    if (this.work > WORK_MAX) this.cut();
  }

  private cut(): void {
    this.isCut = true;
    this.reachSq = NOTHING_SQ;
    this.heap.reach = NOTHING_M;
  }
}

/** How far a cell lies from the query along one axis, squared. */
function gapSq(centre: number, half: number): number {
  const gap = Math.max(0, Math.abs(centre) - half);
  return gap * gap;
}

/** What it took to find a distance, which is solved in another way around the antipode. */
function workOf(geodesicM: number): number {
  return geodesicM > NEARLY_ANTIPODAL_M ? 6 : 1;
}

const NEARLY_ANTIPODAL_M = 19_700_000;
/** Nothing is as near as this. */
const NOTHING_M = -1;
const NOTHING_SQ = -1;
/** About a millisecond. An ordinary search takes a hundredth of it. */
const WORK_MAX = 2_000;
const BLOCK_WORK = 0.5;
const SPOT_WORK = 1;
/** Spots of a crowd that are taken from it together. */
const SPOTS_AT_ONCE = 64;

/**
 * The squared chord beyond which nothing is as near as this. The step allows for the rounding to the lattice (0.9
 * steps), the factor for the error of distanceM (1e-9).
 */
function reachSqOf(geodesicM: number): number {
  const reach = maxChordM(geodesicM) * (1 + 1e-7) * STEPS_PER_M + 1;
  return reach * reach;
}

/** The order of candidates at the same chord says nothing about which is a hit. */
const anyOrder: Precedes = () => false;

/** True when one distance for the whole cell pays: it is far away, and small for that. */
function isFar(chordSq: number, depth: number): boolean {
  return chordSq >= FAR_SQ && HALF_DIAGONALS[depth]! * FAR_RATIO <= Math.sqrt(chordSq);
}

/** Below this, arc and chord differ by less than 30 m. */
const FAR_SQ = (300_000 * STEPS_PER_M) ** 2;
/** The half diagonal of a far cell is no more than so small a part of its distance. */
const FAR_RATIO = 12;
/** A cell a quarter as wide has an anchor of its own: measured best among an eighth, a quarter and a half. */
const ANCHOR_DEPTHS = 6;
/** A crowd in one place is weighed as it is met from here on. */
const MAX_CANDIDATES = 4096;
/** Reference, depth, centre, squared chord. */
const STACK_FIELDS = 6;
