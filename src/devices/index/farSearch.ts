import { arcM, chordOfArc } from './arc.ts';
import { CellBound } from './cellBound.ts';
import { HALF_DIAGONALS, HALVES, STEPS_PER_M } from './lattice.ts';
import type { LeafScan } from './leafScan.ts';
import { type NearestHits, workOfDistance } from './nearestHits.ts';
import { EMPTY, type Trie } from './trie.ts';

/**
 * The part of a search that visits cells far from the query. There the chord alone is a poor bound: a whole city may
 * lie within the difference between chord and arc. So cells are excluded by two lower bounds (CellBound), both from one
 * geodesic to a cell near by: `minDistanceM` for the whole cell, and `arcExcessM` over the arc of each chord.
 */
export class FarSearch {
  private readonly hits: NearestHits;
  private readonly leaves: LeafScan;
  /** The query in lattice steps. */
  private readonly query: Float64Array;
  private readonly bound = new CellBound();
  private children = new Int32Array(0);
  private lat = 0;
  private lng = 0;

  constructor(hits: NearestHits, leaves: LeafScan, query: Float64Array) {
    this.hits = hits;
    this.leaves = leaves;
    this.query = query;
  }

  reset(trie: Trie, lat: number, lng: number): void {
    this.children = trie.children;
    this.lat = lat;
    this.lng = lng;
  }

  /**
   * Visits a cell: its reference, its depth, and its centre seen from the query, the axis that is halved next first.
   */
  visit(ref: number, depth: number, c0: number, c1: number, c2: number): void {
    this.hits.measureCandidates();
    this.visitCell(ref, depth, c0, c1, c2, -Infinity, -Infinity, -Infinity);
  }

  /** The bounds come from the cell at `boundDepth` that contains this one. */
  private visitCell(
    ref: number,
    depth: number,
    c0: number,
    c1: number,
    c2: number,
    arcExcessM: number,
    minDistanceM: number,
    boundDepth: number,
  ): void {
    if (ref === EMPTY || minDistanceM > this.hits.reachM) return;
    const chordSq = gapSq(c0, HALVES[depth]!) + gapSq(c1, HALVES[depth + 1]!) + gapSq(c2, HALVES[depth + 2]!);
    if (arcM(Math.sqrt(chordSq)) + arcExcessM > this.hits.reachM) return;
    if (depth >= boundDepth + BOUND_DEPTHS) {
      this.measureBound(depth, c0, c1, c2);
      this.visitCell(ref, depth, c0, c1, c2, this.bound.arcExcessM, this.bound.minDistanceM, depth);
      return;
    }
    if (ref < 0) {
      this.scanLeaf(ref, arcExcessM);
      return;
    }
    const step = HALVES[depth]! / 2;
    const lower = this.children[2 * ref]!;
    const upper = this.children[2 * ref + 1]!;
    if (arcExcessM > -Infinity) {
      const [nearRef, farRef, toNear] = c0 < 0 ? [upper, lower, step] : [lower, upper, -step];
      this.visitCell(nearRef, depth + 1, c1, c2, c0 + toNear, arcExcessM, minDistanceM, boundDepth);
      this.visitCell(farRef, depth + 1, c1, c2, c0 - toNear, arcExcessM, minDistanceM, boundDepth);
      return;
    }
    // Around the antipode chords do not even show which half is nearer.
    this.measureHalf(lower, depth + 1, c1, c2, c0 - step);
    const { arcExcessM: lowerExcessM, minDistanceM: lowerM } = this.bound;
    this.measureHalf(upper, depth + 1, c1, c2, c0 + step);
    const { arcExcessM: upperExcessM, minDistanceM: upperM } = this.bound;
    if (lowerM <= upperM)
      this.visitCell(lower, depth + 1, c1, c2, c0 - step, lowerExcessM, lowerM, depth + 1);
    this.visitCell(upper, depth + 1, c1, c2, c0 + step, upperExcessM, upperM, depth + 1);
    if (lowerM > upperM) this.visitCell(lower, depth + 1, c1, c2, c0 - step, lowerExcessM, lowerM, depth + 1);
  }

  private measureHalf(ref: number, depth: number, c0: number, c1: number, c2: number): void {
    if (ref === EMPTY) this.bound.minDistanceM = Infinity;
    else this.measureBound(depth, c0, c1, c2);
  }

  private measureBound(depth: number, c0: number, c1: number, c2: number): void {
    this.bound.measure(this.lat, this.lng, this.query, depth, c0, c1, c2);
    this.hits.spend(2 * workOfDistance(this.bound.minDistanceM));
  }

  private scanLeaf(leaf: number, arcExcessM: number): void {
    const { hits } = this;
    const { reachSq } = hits;
    hits.narrow(chordOfArc(hits.reachM - arcExcessM));
    this.leaves.scan(leaf);
    hits.widen(reachSq);
  }
}

/** The distance of a cell from the query along one axis, squared. */
export function gapSq(centre: number, half: number): number {
  const gap = Math.max(0, Math.abs(centre) - half);
  return gap * gap;
}

/** True when one geodesic for the whole cell pays off: it is far away, and small compared to its distance. */
export function isFar(chordSq: number, depth: number): boolean {
  return chordSq >= FAR_SQ && HALF_DIAGONALS[depth]! * FAR_RATIO <= Math.sqrt(chordSq);
}

/** At less than this, arc and chord differ by less than 30 m. */
const FAR_SQ = (300_000 * STEPS_PER_M) ** 2;
/** The half diagonal of a far cell is at most one part in so many of its distance. */
const FAR_RATIO = 12;
/** A cell a quarter as wide is measured again: a quarter was the best among an eighth, a quarter and a half. */
const BOUND_DEPTHS = 6;
