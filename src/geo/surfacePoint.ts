import { EQUATORIAL_RADIUS_M, FLATTENING, RADIANS_PER_DEGREE } from './wgs84.ts';

/**
 * Writes the earth-centred coordinates (x, y, z in metres) of a position on the WGS84 ellipsoid to `out[at]` and the
 * two numbers after it. Straight lines between such points ("chords") order distances almost like geodesics, without
 * special cases at the antimeridian and the poles. Degrees, any finite longitude.
 */
export function writeSurfacePoint(lat: number, lng: number, out: Float64Array, at: number): void {
  const phi = lat * RADIANS_PER_DEGREE;
  const lambda = lng * RADIANS_PER_DEGREE;
  const sinPhi = Math.sin(phi);
  const normal = EQUATORIAL_RADIUS_M / Math.sqrt(1 - ECCENTRICITY_SQUARED * sinPhi * sinPhi);
  const toAxis = normal * Math.cos(phi);
  out[at] = toAxis * Math.cos(lambda);
  out[at + 1] = toAxis * Math.sin(lambda);
  out[at + 2] = normal * (1 - ECCENTRICITY_SQUARED) * sinPhi;
}

export const ECCENTRICITY_SQUARED = FLATTENING * (2 - FLATTENING);

/** A query point in space. Its z is multiplied by zScale already, the z of what it is compared with is not. */
export interface SpacePoint {
  x: number;
  y: number;
  z: number;
  zScale: number;
}

/**
 * The squared distance from a point to the straight segment between two points of an array, given by the offsets of
 * their x.
 */
export function chordDistanceSq(points: Float64Array, a: number, b: number, point: SpacePoint): number {
  const { x, y, z, zScale } = point;
  const ex = points[b]! - points[a]!;
  const ey = points[b + 1]! - points[a + 1]!;
  const ez = (points[b + 2]! - points[a + 2]!) * zScale;
  const rx = x - points[a]!;
  const ry = y - points[a + 1]!;
  const rz = z - points[a + 2]! * zScale;
  const ratio = (rx * ex + ry * ey + rz * ez) / (ex * ex + ey * ey + ez * ez + NOT_ZERO);
  // Clamps to 0..1 without a branch, which the processor would predict wrong half of the time.
  const t = (Math.abs(ratio) - Math.abs(ratio - 1) + 1) / 2;
  const dx = rx - t * ex;
  const dy = ry - t * ey;
  const dz = rz - t * ez;
  return dx * dx + dy * dy + dz * dz;
}

/** Where on that segment the nearest point lies: 0 at a, 1 at b. */
export function chordFraction(points: Float64Array, a: number, b: number, point: SpacePoint): number {
  const { x, y, z, zScale } = point;
  const ex = points[b]! - points[a]!;
  const ey = points[b + 1]! - points[a + 1]!;
  const ez = (points[b + 2]! - points[a + 2]!) * zScale;
  const along = (x - points[a]!) * ex + (y - points[a + 1]!) * ey + (z - points[a + 2]! * zScale) * ez;
  return Math.min(1, Math.max(0, along / (ex * ex + ey * ey + ez * ez + NOT_ZERO)));
}

/** Makes the ratio 0 on a segment without length. */
const NOT_ZERO = 1e-300;
