import { arcLengthM, longitudeLagRad } from './geodesicSeries.ts';
import { EQUATORIAL_RADIUS_M } from './wgs84.ts';

/**
 * Length in metres of the geodesic between nearly antipodal positions, given by sine and cosine of their reduced
 * latitudes and the angle between their meridians (radians, 0 to π). It works for any other pair too, but slower.
 *
 * C. F. F. Karney, "Algorithms for geodesics", J. Geod. 87 (2013), section 4: with the positions arranged so that
 * |u2| <= -u1, the longitude reached on parallel u2 grows with the azimuth at u1, from 0 (due north) to π (over the
 * south pole). Bisection finds the azimuth without a starting guess, in about twenty steps.
 */
export function antipodalDistanceM(
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
