import { distanceM } from '../geometry/distance.ts';
import { writeSurfacePoint } from '../geometry/surfacePoint.ts';
import { EQUATORIAL_RADIUS_M, POLAR_RADIUS_M, RADIANS_PER_DEGREE } from '../geometry/wgs84.ts';
import { arcM, overArcSlope } from './positionIndexArc.ts';
import { HALF_DIAGONALS, LATTICE_CENTRE, STEPS_PER_M } from './positionIndexLattice.ts';

/**
 * What one geodesic, to the middle of a far cell, says of all devices in the cell. Lengths without a unit in their
 * name are lattice steps.
 */
export class PositionIndexAnchor {
  /** No device of the cell is nearer: the distance to the middle less the farthest that a device can be from there. */
  leastM = 0;
  /**
   * No device of the cell is nearer than this and the arc of its own chord: by how much a geodesic exceeds the arc
   * hardly changes from one device of the cell to the next (`overArcSlope`).
   */
  overArcM = 0;
  private readonly middle = new Float64Array(3);

  /**
   * Measures from the query, which stands at (lat, lng) and in the lattice, to a cell: its depth, and its centre seen
   * from the query, the axis that is halved next first.
   *
   * The middle is where the cell's centre c projects on the unit sphere of `maxChordM`. For p on that sphere and c off
   * it by d, |p - middle|² = (|p - c|² - d²) / (1 ± d); with |p - c| at most half a diagonal, and that at most 1/6, as
   * it is for far cells, |p - middle| exceeds it by 0.4 %, and the arc exceeds the chord by 0.2 %.
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
    this.leastM = geodesicM - radiusM - FAR_MARGIN_M;

    writeSurfacePoint(middleLat, middleLng, this.middle, 0);
    let chordSq = 0;
    for (let axis = 0; axis < 3; axis++) {
      const gap = this.middle[axis]! * STEPS_PER_M + LATTICE_CENTRE - query[axis]!;
      chordSq += gap * gap;
    }
    const chord = Math.sqrt(chordSq);
    const changeM = overArcSlope(chord + radiusM * STEPS_PER_M) * radiusM;
    this.overArcM = geodesicM - arcM(chord) - changeM - FAR_MARGIN_M;
  }
}

/**
 * Twice the error of distanceM (1e-9 of 20 000 km), and rounding to the lattice, 5 mm at each end, of which the arc
 * over a chord makes up to 6 times as much at 80° of half the angle (see `overArcSlope`).
 */
const FAR_MARGIN_M = 0.15;
const POLAR_RATIO = POLAR_RADIUS_M / EQUATORIAL_RADIUS_M;
