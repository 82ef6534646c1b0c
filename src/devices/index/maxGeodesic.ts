import { EQUATORIAL_RADIUS_M, POLAR_RADIUS_M } from '../../geo/wgs84.ts';

/**
 * The longest geodesic, in metres, between two positions that are this far apart in a straight line. The bound is
 * nearly tight: arc and chord themselves differ by 1 mm at 10 km and by 28 m at 300 km.
 *
 * The plane through both positions and the Earth's centre cuts an ellipse with half axes between a and b, whose
 * curvature is at most a / b². Of two convex arcs over the same chord, the one that is nowhere more curved is not
 * longer (Schur's theorem). So the path along that ellipse, and with it the geodesic, is at most an arc of the circle
 * with radius b² / a.
 */
export function maxGeodesicM(chordM: number): number {
  const sine = chordM / (2 * LEAST_RADIUS_M);
  return sine < 1 ? 2 * LEAST_RADIUS_M * Math.asin(sine) : Infinity;
}

const LEAST_RADIUS_M = (POLAR_RADIUS_M * POLAR_RADIUS_M) / EQUATORIAL_RADIUS_M;
