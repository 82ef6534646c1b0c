import type { Path } from './path.ts';
import { ECCENTRICITY_SQUARED } from './surfacePoint.ts';
import { FLATTENING, POLAR_RADIUS_M, RADIANS_PER_DEGREE } from './wgs84.ts';

/**
 * The signed area in square metres between a path and the parallel `fromLat`: positive where the path runs east on
 * the north side of it. Exact for edges straight in longitude and latitude on the WGS84 ellipsoid: the area of a
 * closed path is the integral of the zone area over the longitude (Green's theorem), for any reference parallel. A
 * parallel near the path keeps the digits of small areas.
 */
export function northwardAreaM2(path: Path, fromLat: number): number {
  const { lngs, lats } = path;
  let areaM2 = 0;
  for (let i = 1; i < lngs.length; i++) {
    const dLng = (lngs[i]! - lngs[i - 1]!) * RADIANS_PER_DEGREE;
    if (dLng !== 0) areaM2 += dLng * meanZoneAreaM2(lats[i - 1]!, lats[i]!, fromLat);
  }
  return areaM2;
}

/** The mean of zoneAreaM2 over the latitudes of one straight edge, by three-point Gauss-Legendre quadrature per piece. */
export function meanZoneAreaM2(latA: number, latB: number, fromLat: number): number {
  const pieces = Math.max(1, Math.ceil(Math.abs(latB - latA) / MAX_PIECE_DEGREES));
  const step = (latB - latA) / pieces;
  let sum = 0;
  for (let k = 0; k < pieces; k++) {
    const middle = latA + (k + 0.5) * step;
    const off = GAUSS_OFFSET * step;
    const ends = zoneAreaM2(fromLat, middle - off) + zoneAreaM2(fromLat, middle + off);
    sum += (5 * ends + 8 * zoneAreaM2(fromLat, middle)) / 18;
  }
  return sum / pieces;
}

/**
 * The area between two parallels per radian of longitude, in square metres, positive northward. With s = sin lat it
 * is the difference of b² / 2 * (s / (1 - e² s²) + atanh(e s) / e) (J. P. Snyder, Map Projections: A Working Manual,
 * 1987, equation 3-12), written so that nearby parallels lose no digits.
 */
export function zoneAreaM2(fromLat: number, toLat: number): number {
  const from = fromLat * RADIANS_PER_DEGREE;
  const to = toLat * RADIANS_PER_DEGREE;
  const s1 = Math.sin(from);
  const s2 = Math.sin(to);
  const ds = 2 * Math.cos((from + to) / 2) * Math.sin(((toLat - fromLat) / 2) * RADIANS_PER_DEGREE);
  const e2 = ECCENTRICITY_SQUARED;
  const rational = (ds * (1 + e2 * s1 * s2)) / ((1 - e2 * s1 * s1) * (1 - e2 * s2 * s2));
  const x = (ECCENTRICITY * ds) / (1 - e2 * s1 * s2);
  return ((POLAR_RADIUS_M * POLAR_RADIUS_M) / 2) * (rational + Math.atanh(x) / ECCENTRICITY);
}

const ECCENTRICITY = Math.sqrt(FLATTENING * (2 - FLATTENING));
const GAUSS_OFFSET = Math.sqrt(0.15);
const MAX_PIECE_DEGREES = 1;
