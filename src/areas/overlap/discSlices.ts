import { circleBounds } from '../../geo/bounds.ts';
import { distanceM } from '../../geo/distance.ts';
import { parallelRadiusM } from '../../geo/radii.ts';
import { RADIANS_PER_DEGREE } from '../../geo/wgs84.ts';
import type { Disc } from '../area.ts';
import type { Slices } from './intervals.ts';

/** The half width is found to this share of the radius. */
const TOLERANCE_SHARE = 1e-7;
const MAX_STEPS = 60;

/** A circle or place: all positions within its radius by geodesic distance. */
export function discSlices({ center, radiusM }: Disc): Slices {
  const { south, north } = circleBounds(center, radiusM);
  return {
    south,
    north,
    detailM: radiusM / 4,
    breaks: [],
    at: (lat) => {
      const half = halfWidthDegrees(center.lat, radiusM, lat);
      return half === 0 ? [] : [center.lng - half, center.lng + half];
    },
  };
}

/**
 * How far east of the centre's meridian the circle meets a parallel, 0 to 180 degrees: by false position (the Illinois
 * rule), from a first guess on the plane.
 */
function halfWidthDegrees(centerLat: number, radiusM: number, lat: number): number {
  const excessM = (dLng: number) => distanceM(centerLat, 0, lat, dLng) - radiusM;
  let low = 0;
  let lowM = excessM(low);
  if (lowM >= 0) return 0;
  let high = 180;
  let highM = excessM(high);
  if (highM <= 0) return 180;
  // A right triangle of the plane has the radius and the way along the meridian.
  const alongM = Math.sqrt(radiusM * radiusM - (lowM + radiusM) ** 2);
  const perDegreeM = Math.max(parallelRadiusM(lat) * RADIANS_PER_DEGREE, Number.MIN_VALUE);
  let guess = Math.min(alongM / perDegreeM, 179);
  for (let step = 0; step < MAX_STEPS; step++) {
    const missM = excessM(guess);
    if (Math.abs(missM) <= TOLERANCE_SHARE * radiusM) return guess;
    if (missM < 0) {
      low = guess;
      lowM = missM;
      highM /= 2;
    } else {
      high = guess;
      highM = missM;
      lowM /= 2;
    }
    guess = low + ((high - low) * lowM) / (lowM - highM);
  }
  return guess;
}
