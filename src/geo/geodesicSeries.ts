import { EQUATORIAL_RADIUS_M, FLATTENING, POLAR_RADIUS_M } from './wgs84.ts';

// The two series of T. Vincenty, "Direct and inverse solutions of geodesics on the ellipsoid with application of
// nested equations", Survey Review 23 (176), 1975, with his names. A geodesic becomes a great circle on the auxiliary
// sphere (reduced latitudes). It crosses the equator there at azimuth alpha, and the arc sigma on it has the midpoint
// sigmaM, counted from that crossing. Both are accurate to about 1e-10 of the length.

/** How many radians the longitude difference on the ellipsoid falls short of the one on the sphere (equation 11). */
export function longitudeLagRad(
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
export function arcLengthM(
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

const SECOND_ECCENTRICITY_SQUARED = (EQUATORIAL_RADIUS_M / POLAR_RADIUS_M) ** 2 - 1;
