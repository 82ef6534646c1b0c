import {
  distanceM,
  EQUATORIAL_RADIUS_M,
  POLAR_RADIUS_M,
  RADIANS_PER_DEGREE,
  writeSurfacePoint,
} from '../../geo/wgs84.ts';
import { gapSq, type NearestHits, workOfDistance } from './nearestHits.ts';
import { EMPTY, HALF_DIAGONALS, HALVES, LATTICE_CENTRE, STEPS_PER_M } from './trie.ts';

/**
 * The part of a search that visits cells far from the query. There the chord alone is a poor bound: a whole city may
 * lie within the difference between chord and arc. So cells are excluded by two lower bounds (CellBound), both from one
 * geodesic to a cell near by: `minDistanceM` for the whole cell, and `arcExcessM` over the arc of each chord.
 */
export class FarSearch {
  private readonly hits: NearestHits;
  /** The query in lattice steps. */
  private readonly query: Float64Array;
  private readonly scan: (leaf: number) => void;
  private readonly bound = new CellBound();
  private children = new Int32Array(0);

  /** `scan` offers the devices of a leaf to `hits`. */
  constructor(hits: NearestHits, query: Float64Array, scan: (leaf: number) => void) {
    this.hits = hits;
    this.query = query;
    this.scan = scan;
  }

  /**
   * Visits a cell of a trie with these `children`: its reference, its depth, and its centre seen from the query, the
   * axis that is halved next first.
   */
  visit(
    children: Int32Array<ArrayBuffer>,
    ref: number,
    depth: number,
    c0: number,
    c1: number,
    c2: number,
  ): void {
    this.children = children;
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
    this.bound.measure(this.hits.lat, this.hits.lng, this.query, depth, c0, c1, c2);
    this.hits.spend(2 * workOfDistance(this.bound.minDistanceM));
  }

  private scanLeaf(leaf: number, arcExcessM: number): void {
    const { hits } = this;
    const { reachSq } = hits;
    hits.narrow(chordOfArc(hits.reachM - arcExcessM));
    this.scan(leaf);
    hits.widen(reachSq);
  }
}

/** A cell a quarter as wide is measured again: a quarter was the best among an eighth, a quarter and a half. */
const BOUND_DEPTHS = 6;

/**
 * Two lower bounds for the distance from a query to any device of a far cell, both from one geodesic to the middle of
 * the cell. Lengths without a unit in their name are lattice steps.
 */
class CellBound {
  /** No device of the cell is nearer: the distance to the middle less the most that a device can be away from there. */
  minDistanceM = 0;
  /**
   * No device of the cell is nearer than the arc of its own chord plus this. The excess of a geodesic over that arc
   * hardly changes from one device of the cell to the next (arcExcessSlope).
   */
  arcExcessM = 0;
  private readonly middle = new Float64Array(3);

  /**
   * Measures from the query, given in degrees and in lattice steps, to a cell, given by its depth and by its centre
   * seen from the query, the axis that is halved next first.
   *
   * The middle is the projection of the cell's centre c onto the unit sphere of `maxChordM`. For p on that sphere and c
   * at distance d from it, |p - middle|² = (|p - c|² - d²) / (1 ± d). Here |p - c| is at most half a diagonal, and half
   * a diagonal of a far cell is at most 1/6. So |p - middle| exceeds |p - c| by at most 0.4 %, and the arc exceeds the
   * chord by at most 0.2 %.
   */
  measure(
    lat: number,
    lng: number,
    query: Float64Array,
    depth: number,
    c0: number,
    c1: number,
    c2: number,
  ): void {
    const turn = depth % 3;
    const x = (turn === 0 ? c0 : turn === 1 ? c2 : c1) + query[0]! - LATTICE_CENTRE;
    const y = (turn === 0 ? c1 : turn === 1 ? c0 : c2) + query[1]! - LATTICE_CENTRE;
    const z = ((turn === 0 ? c2 : turn === 1 ? c1 : c0) + query[2]! - LATTICE_CENTRE) / POLAR_RATIO;
    const axisGap = Math.sqrt(x * x + y * y);
    const middleLat = Math.atan2(z, axisGap * POLAR_RATIO) / RADIANS_PER_DEGREE;
    const middleLng = Math.atan2(y, x) / RADIANS_PER_DEGREE;
    const geodesicM = distanceM(lat, lng, middleLat, middleLng);
    const radiusM = (1.01 * HALF_DIAGONALS[depth]!) / (POLAR_RATIO * STEPS_PER_M);
    this.minDistanceM = geodesicM - radiusM - FAR_MARGIN_M;

    writeSurfacePoint(middleLat, middleLng, this.middle, 0);
    let chordSq = 0;
    for (let axis = 0; axis < 3; axis++) {
      const gap = this.middle[axis]! * STEPS_PER_M + LATTICE_CENTRE - query[axis]!;
      chordSq += gap * gap;
    }
    const chord = Math.sqrt(chordSq);
    const changeM = arcExcessSlope(chord + radiusM * STEPS_PER_M) * radiusM;
    this.arcExcessM = geodesicM - arcM(chord) - changeM - FAR_MARGIN_M;
  }
}

/**
 * Twice the error of distanceM (1e-9 of 20 000 km), and the rounding to the lattice, 5 mm at each end. At 80° of half
 * the angle the arc over a chord magnifies that up to 6 times (see arcExcessSlope).
 */
const FAR_MARGIN_M = 0.15;
const POLAR_RATIO = POLAR_RADIUS_M / EQUATORIAL_RADIUS_M;

// Chords in lattice steps, and the arcs over them on a sphere of about the Earth's size.

const ARC_RADIUS = 6_371_000 * STEPS_PER_M;

/** The arc over a chord, in metres. */
export function arcM(chord: number): number {
  return ((2 * ARC_RADIUS) / STEPS_PER_M) * Math.asin(Math.min(1, chord / (2 * ARC_RADIUS)));
}

/** The chord of an arc; infinite for an arc of half the circumference or more. */
export function chordOfArc(lengthM: number): number {
  const halfAngle = (lengthM * STEPS_PER_M) / (2 * ARC_RADIUS);
  return halfAngle < Math.PI / 2 ? 2 * ARC_RADIUS * Math.sin(halfAngle) : Infinity;
}

/**
 * How fast the excess of a geodesic over the arc of its chord can change: the most metres for each metre by which one
 * end is moved. Infinite near the antipode, where that arc means nothing. For chords from 300 km on.
 *
 * On the ellipsoid it is 0.0055 tan² of half the angle up to 20°, and less beyond (0.0025 at 80°), measured on 1.5
 * million pairs of positions. Here it is doubled.
 */
export function arcExcessSlope(chord: number): number {
  const sine = chord / (2 * ARC_RADIUS);
  return sine > MAX_SINE ? Infinity : (0.011 * sine * sine) / (1 - sine * sine);
}

/** The sine of 80°. */
const MAX_SINE = 0.985;
