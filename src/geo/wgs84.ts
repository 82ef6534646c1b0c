/** The WGS84 ellipsoid (NGA.STND.0036, table 3.1): defining axis and flattening; the polar radius follows from them. */
export const EQUATORIAL_RADIUS_M = 6378137;
export const FLATTENING = 1 / 298.257223563;
export const POLAR_RADIUS_M = EQUATORIAL_RADIUS_M * (1 - FLATTENING);
export const ECCENTRICITY_SQUARED = FLATTENING * (2 - FLATTENING);
export const SECOND_ECCENTRICITY_SQUARED = ECCENTRICITY_SQUARED / (1 - ECCENTRICITY_SQUARED);

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
/** Of the outer nodes of three-point Gauss-Legendre quadrature from the middle one, as a share of the interval. */
export const GAUSS_OFFSET = Math.sqrt(0.15);
const MAX_PIECE_DEGREES = 1;

/**
 * Length in metres of the shortest path between two positions on the WGS84 ellipsoid; degrees, any finite longitude,
 * latitudes -90 to 90. Within 1e-9 of GeographicLib for every pair; exactly 0 for equal positions, and the same
 * bits in both directions. From a pole to one latitude it is the same bits for all longitudes, so that devices which are
 * equally near to it are told apart by IMEI, not by rounding.
 *
 * Vincenty's inverse solution, with two changes. Differences of nearby angles are formed before
 * any rounding, so distances of millimetres keep their digits. The last longitude residual is applied to the length by
 * its first-order effect (Clairaut's constant), so an iteration error of 1e-7 leaves about 1e-14. Near the antipode,
 * where the iteration is slow or does not converge, antipodalDistanceM is used instead. Up to a kilometre a closed formula
 * is as exact, in a fifth of the time.
 */
export function distanceM(latA: number, lngA: number, latB: number, lngB: number): number {
  const latGapDeg = Math.abs(latA - latB);
  // The same whatever the longitudes: across 180° they are far apart.
  const isShort = latGapDeg <= SHORT_DEGREES && Math.abs(lngA - lngB) <= SHORT_DEGREES;
  if (isShort && Math.abs(latA) <= SHORT_LAT_MAX && Math.abs(latB) <= SHORT_LAT_MAX)
    return shortDistanceM(latGapDeg, (latA + latB) / 2, Math.abs(lngA - lngB));
  return longDistanceM(latA, lngA, latB, lngB);
}

/** Apart, so that the rest is short enough to become a part of its callers: a call takes memory for every number. */
function longDistanceM(latA: number, lngA: number, latB: number, lngB: number): number {
  const isAtSouthPole = latA === -90 || latB === -90;
  const south = isAtSouthPole ? -Math.max(latA, latB) : Math.min(latA, latB);
  const north = isAtSouthPole ? 90 : Math.max(latA, latB);
  const lngGapDeg = lngGapDegrees(lngA, lngB);
  const lngGap = lngGapDeg * RADIANS_PER_DEGREE;

  // Reduced latitudes u: tan u = (1 - f) tan lat, by division instead of tan and atan.
  const sinSouth = POLAR_RATIO * Math.sin(south * RADIANS_PER_DEGREE);
  const sinNorth = POLAR_RATIO * Math.sin(north * RADIANS_PER_DEGREE);
  const cosSouth = cosDegrees(south);
  const cosNorth = cosDegrees(north);
  const normSouth = Math.sqrt(sinSouth * sinSouth + cosSouth * cosSouth);
  const normNorth = Math.sqrt(sinNorth * sinNorth + cosNorth * cosNorth);
  const sinUGap = (POLAR_RATIO * Math.sin((north - south) * RADIANS_PER_DEGREE)) / (normSouth * normNorth);
  return solve(
    sinSouth / normSouth,
    cosSouth / normSouth,
    sinNorth / normNorth,
    cosNorth / normNorth,
    sinUGap,
    lngGap,
  );
}

/**
 * Gauss' mid-latitude formulas (Rapp, Geometric Geodesy I, 1991, section 5.6). The first terms that are left out are of the
 * fourth order in length by radius: 1e-14 for a kilometre at 60°, 1e-12 at 85°.
 */
function shortDistanceM(latGapDeg: number, middleDeg: number, lngGapDeg: number): number {
  const latGap = latGapDeg * RADIANS_PER_DEGREE;
  const lngGap = lngGapDeg * RADIANS_PER_DEGREE;
  const sin = Math.sin(middleDeg * RADIANS_PER_DEGREE);
  const sinSq = sin * sin;
  const cosSq = (1 - sin) * (1 + sin);
  const etaSq = SECOND_ECCENTRICITY_SQUARED * cosSq;
  const perVSq = 1 / (1 + etaSq);
  const acrossRadiusM = EQUATORIAL_RADIUS_M / Math.sqrt(1 - ECCENTRICITY_SQUARED * sinSq);
  const lngGapSq = lngGap * lngGap;
  const latTerm = latGap * latGap * (perVSq * perVSq * (1 / 24));
  // The square of the tangent of the middle, times that of its cosine, is the square of its sine.
  const acrossM =
    acrossRadiusM *
    lngGap *
    Math.sqrt(cosSq) *
    (1 - lngGapSq * sinSq * (1 / 24) + latTerm * (1 + etaSq - 9 * SECOND_ECCENTRICITY_SQUARED * sinSq));
  const alongM =
    acrossRadiusM *
    perVSq *
    latGap *
    (1 - lngGapSq * (1 / 8)) *
    (1 +
      (1 - 2 * etaSq) * lngGapSq * cosSq * (1 / 24) +
      3 * latTerm * (etaSq - SECOND_ECCENTRICITY_SQUARED * sinSq));
  return Math.sqrt(acrossM * acrossM + alongM * alongM);
}

function solve(
  sinU1: number,
  cosU1: number,
  sinU2: number,
  cosU2: number,
  sinUGap: number,
  lngGap: number,
): number {
  const sinSin = sinU1 * sinU2;
  const cosCos = cosU1 * cosU2;
  // Exact to f² on short lines: there the lag is f cosU1 cosU2 omega.
  let omega = Math.min(lngGap / (1 - FLATTENING * cosCos), Math.PI);
  for (let iteration = 0; iteration < MAX_ITERATIONS; iteration++) {
    const sinHalf = Math.sin(omega / 2);
    const sinOmega = 2 * sinHalf * Math.cos(omega / 2);
    const across = cosU2 * sinOmega;
    const along = sinUGap + 2 * sinU1 * cosU2 * sinHalf * sinHalf;
    const sinSigma = Math.sqrt(across * across + along * along);
    const cosSigma = sinSin + cosCos * (1 - 2 * sinHalf * sinHalf);
    if (cosSigma < NEARLY_ANTIPODAL_COS) break;
    if (sinSigma === 0) return 0;

    const sigma = Math.atan2(sinSigma, cosSigma);
    const sinAlpha = (cosCos * sinOmega) / sinSigma;
    const cosSqAlpha = 1 - sinAlpha * sinAlpha;
    const cos2SigmaM = cosSqAlpha > 0 ? cosSigma - (2 * sinSin) / cosSqAlpha : 0;
    const lag = longitudeLagRad(sinAlpha, cosSqAlpha, sigma, sinSigma, cosSigma, cos2SigmaM);
    const residual = lngGap - (omega - lag);
    if (Math.abs(residual) <= RESIDUAL_TOLERANCE * omega) {
      const lengthM = arcLengthM(cosSqAlpha, sigma, sinSigma, cosSigma, cos2SigmaM);
      return lengthM + EQUATORIAL_RADIUS_M * sinAlpha * residual;
    }
    omega += residual;
  }
  return antipodalDistanceM(sinU1, cosU1, sinU2, cosU2, lngGap);
}

/** The smaller angle between two meridians, 0 to 180; exact for nearby ones, also across 180°. */
function lngGapDegrees(lngA: number, lngB: number): number {
  const a = Math.abs(lngA) <= 180 ? lngA : lngA - 360 * Math.round(lngA / 360);
  const b = Math.abs(lngB) <= 180 ? lngB : lngB - 360 * Math.round(lngB / 360);
  const gap = Math.abs(a - b);
  return gap <= 180 ? gap : 180 - Math.max(a, b) + (180 + Math.min(a, b));
}

/** Cosine of a latitude, to the last digit also next to the poles, and exactly 0 on them. */
function cosDegrees(lat: number): number {
  const colat = 90 - Math.abs(lat);
  return colat < 45 ? Math.sin(colat * RADIANS_PER_DEGREE) : Math.cos(lat * RADIANS_PER_DEGREE);
}

const POLAR_RATIO = 1 - FLATTENING;
/** Of latitude and of longitude: a kilometre at most. */
const SHORT_DEGREES = 0.01;
/** The formulas divide by the cosine of the latitude. */
const SHORT_LAT_MAX = 85;
const RESIDUAL_TOLERANCE = 1e-7;
/** Within 2.5° of the antipode each step gains less than a digit; outside, 30 steps are plenty. */
const NEARLY_ANTIPODAL_COS = Math.cos(177.5 * RADIANS_PER_DEGREE);
const MAX_ITERATIONS = 30;

/**
 * Length in metres of the geodesic between nearly antipodal positions, given by sine and cosine of their reduced
 * latitudes and the angle between their meridians (radians, 0 to π). It works for any other pair too, but slower.
 *
 * C. F. F. Karney, "Algorithms for geodesics", J. Geod. 87 (2013), section 4: with the positions arranged so that
 * |u2| <= -u1, the longitude reached on parallel u2 grows with the azimuth at u1, from 0 (due north) to π (over the
 * south pole). Bisection finds the azimuth without a starting guess, in about twenty steps.
 */
function antipodalDistanceM(
  sinU1: number,
  cosU1: number,
  sinU2: number,
  cosU2: number,
  lngGap: number,
): number {
  // cos² u2 - cos² u1, from the functions that change quickly there.
  const cosSqGap =
    cosU1 < Math.abs(sinU1) ? (cosU2 - cosU1) * (cosU2 + cosU1) : (sinU1 - sinU2) * (sinU1 + sinU2);
  return cosSqGap < 0
    ? bisect(sinU2, cosU2, sinU1, -cosSqGap, lngGap)
    : bisect(sinU1, cosU1, sinU2, cosSqGap, lngGap);
}

/** u1 is the one farther from the equator. The ellipsoid is symmetric, so u1 can be taken as the southern one. */
function bisect(sinU1: number, cosU1: number, sinU2: number, cosSqGap: number, lngGap: number): number {
  const south = -Math.abs(sinU1); // on the equator -0, from where an azimuth south of east leads half way round
  const north = sinU1 > 0 ? -sinU2 : sinU2;
  let width = Math.PI / 2;
  let azimuth = width;
  for (let step = 0; ; step++) {
    follow(azimuth, south, cosU1, north, cosSqGap);
    const missedBy = lngGap - (trial[REACHED_RAD] as number);
    // To first order, the missing angle along the parallel adds Clairaut's constant times that angle. The rate is exact
    // at the solution and the angle shrinks towards it, so the remaining error is below angle times bracket.
    if (Math.abs(missedBy) * width * EQUATORIAL_RADIUS_M < TOLERANCE_M || step === MAX_STEPS) {
      return (trial[LENGTH_M] as number) + EQUATORIAL_RADIUS_M * (trial[SIN_ALPHA] as number) * missedBy;
    }
    width /= 2;
    azimuth += missedBy > 0 ? width : -width;
  }
}

/** Follows the great circle of the auxiliary sphere from u1 at this azimuth to its next northward crossing of u2. */
function follow(azimuth: number, sinU1: number, cosU1: number, sinU2: number, cosSqGap: number): void {
  const northing1 = Math.cos(azimuth) * cosU1;
  const northing2 = Math.sqrt(Math.max(0, northing1 * northing1 + cosSqGap));
  const sinAlpha = Math.sin(azimuth) * cosU1;
  const cosSqAlpha = northing1 * northing1 + sinU1 * sinU1;
  const sigma1 = Math.atan2(sinU1, northing1);
  const sigma2 = Math.atan2(sinU2, northing2);
  const sigma = sigma2 - sigma1;
  const omega = Math.atan2(sinAlpha * sinU2, northing2) - Math.atan2(sinAlpha * sinU1, northing1);
  const sinSigma = Math.sin(sigma);
  const cosSigma = Math.cos(sigma);
  const cos2SigmaM = Math.cos(sigma1 + sigma2);
  const lag = longitudeLagRad(sinAlpha, cosSqAlpha, sigma, sinSigma, cosSigma, cos2SigmaM);
  trial[REACHED_RAD] = omega - lag;
  trial[LENGTH_M] = arcLengthM(cosSqAlpha, sigma, sinSigma, cosSigma, cos2SigmaM);
  trial[SIN_ALPHA] = sinAlpha;
}

/** The result of `follow`. Shared by all calls, which is safe because none of them waits. */
const trial = new Float64Array(3);
const [REACHED_RAD, LENGTH_M, SIN_ALPHA] = [0, 1, 2] as const;

const TOLERANCE_M = 1e-3;
const MAX_STEPS = 60;

// The two series of T. Vincenty, "Direct and inverse solutions of geodesics on the ellipsoid with application of
// nested equations", Survey Review 23 (176), 1975, with his names. A geodesic becomes a great circle on the auxiliary
// sphere (reduced latitudes). It crosses the equator there at azimuth alpha, and the arc sigma on it has the midpoint
// sigmaM, counted from that crossing. Both are accurate to about 1e-10 of the length.

/** How many radians the longitude difference on the ellipsoid falls short of the one on the sphere (equation 11). */
function longitudeLagRad(
  sinAlpha: number,
  cosSqAlpha: number,
  sigma: number,
  sinSigma: number,
  cosSigma: number,
  cos2SigmaM: number,
): number {
  const c = (FLATTENING / 16) * cosSqAlpha * (4 + FLATTENING * (4 - 3 * cosSqAlpha));
  const tail = cos2SigmaM + c * cosSigma * (2 * cos2SigmaM * cos2SigmaM - 1);
  return (1 - c) * FLATTENING * sinAlpha * (sigma + c * sinSigma * tail);
}

/** Metres along the geodesic (equations 3, 4, 6 and 19). */
function arcLengthM(
  cosSqAlpha: number,
  sigma: number,
  sinSigma: number,
  cosSigma: number,
  cos2SigmaM: number,
): number {
  const uSq = cosSqAlpha * SECOND_ECCENTRICITY_SQUARED;
  const a = 1 + (uSq / 16384) * (4096 + uSq * (uSq * (320 - 175 * uSq) - 768));
  const b = (uSq / 1024) * (256 + uSq * (uSq * (74 - 47 * uSq) - 128));
  const middle = 2 * cos2SigmaM * cos2SigmaM - 1;
  const third = (b / 6) * cos2SigmaM * (4 * sinSigma * sinSigma - 3) * (4 * cos2SigmaM * cos2SigmaM - 3);
  const deltaSigma = b * sinSigma * (cos2SigmaM + (b / 4) * (cosSigma * middle - third));
  return POLAR_RADIUS_M * a * (sigma - deltaSigma);
}
