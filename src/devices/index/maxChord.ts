import { EQUATORIAL_RADIUS_M, POLAR_RADIUS_M } from '../../geo/wgs84.ts';

/**
 * The longest straight line, in metres, between two positions whose geodesic is at most this long. Positions farther
 * apart by chord are farther apart by geodesic too.
 *
 * First, no chord is longer than its arc. Second, divide x and y by a and z by b: the ellipsoid becomes the unit
 * sphere of reduced latitudes u, on which ds² = a² cos²u dlng² + (a² sin²u + b² cos²u) du² is nowhere below b² times
 * the sphere's own metric. So a geodesic s covers at most the angle s / b there, a chord of at most 2 sin(s / 2b),
 * which stretches back to at most a times that. The second rule is the tighter one from about 1800 km.
 */
export function maxChordM(geodesicM: number): number {
  const halfAngle = geodesicM / (2 * POLAR_RADIUS_M);
  const limitM = 2 * EQUATORIAL_RADIUS_M * (halfAngle < Math.PI / 2 ? Math.sin(halfAngle) : 1);
  return Math.min(geodesicM, limitM);
}
