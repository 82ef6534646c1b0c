import { distanceM } from '../../geo/distance.ts';
import { writeSurfacePoint } from '../../geo/surfacePoint.ts';
import { EQUATORIAL_RADIUS_M, POLAR_RADIUS_M, RADIANS_PER_DEGREE } from '../../geo/wgs84.ts';
import { arcExcessSlope, arcM } from './arc.ts';
import { HALF_DIAGONALS, LATTICE_CENTRE, STEPS_PER_M } from './lattice.ts';

/**
 * Two lower bounds for the distance from a query to any device of a far cell, both from one geodesic to the middle of
 * the cell. Lengths without a unit in their name are lattice steps.
 */
export class CellBound {
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
