/** The WGS84 ellipsoid (NGA.STND.0036, table 3.1): defining axis and flattening; the polar radius follows from them. */
export const EQUATORIAL_RADIUS_M = 6378137;
export const FLATTENING = 1 / 298.257223563;
export const POLAR_RADIUS_M = EQUATORIAL_RADIUS_M * (1 - FLATTENING);
export const ECCENTRICITY_SQUARED = FLATTENING * (2 - FLATTENING);

export const RADIANS_PER_DEGREE = Math.PI / 180;

/** A position in degrees: lat -90 to 90, lng -180 to 180. GeoJSON's [lng, lat] order stays in the GeoJSON files. */
export interface LatLng {
  readonly lat: number;
  readonly lng: number;
}

/** True when both are numbers within these ranges, ends included. */
export function isLatLng(lat: unknown, lng: unknown): boolean {
  return typeof lat === 'number' && typeof lng === 'number' && Math.abs(lat) <= 90 && Math.abs(lng) <= 180;
}

/** Radius of curvature of the WGS84 meridian at a latitude, in metres: d(distance) per radian of latitude. */
export function meridianRadiusM(lat: number): number {
  const w = flatteningTerm(lat);
  return (EQUATORIAL_RADIUS_M * (1 - ECCENTRICITY_SQUARED)) / (w * Math.sqrt(w));
}

/** Radius of the parallel at a latitude, in metres: d(distance) per radian of longitude. */
export function parallelRadiusM(lat: number): number {
  return normalRadiusM(lat) * Math.cos(lat * RADIANS_PER_DEGREE);
}

/** Radius of curvature across the meridian (prime vertical), in metres. */
export function normalRadiusM(lat: number): number {
  return EQUATORIAL_RADIUS_M / Math.sqrt(flatteningTerm(lat));
}

function flatteningTerm(lat: number): number {
  const sinLat = Math.sin(lat * RADIANS_PER_DEGREE);
  return 1 - ECCENTRICITY_SQUARED * sinLat * sinLat;
}

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

/** A chain of edges, straight in longitude and latitude, by its vertices in degrees. */
export interface Edges {
  readonly lngs: readonly number[];
  readonly lats: readonly number[];
}

/**
 * The signed area in square metres between a path and the parallel `fromLat`: positive where the path runs east on
 * the north side of it. Exact for edges straight in longitude and latitude on the WGS84 ellipsoid: the area of a
 * closed path is the integral of the zone area over the longitude (Green's theorem), for any reference parallel. A
 * parallel near the path keeps the digits of small areas.
 */
export function northwardAreaM2({ lngs, lats }: Edges, fromLat: number): number {
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

const ECCENTRICITY = Math.sqrt(ECCENTRICITY_SQUARED);
const GAUSS_OFFSET = Math.sqrt(0.15);
const MAX_PIECE_DEGREES = 1;
