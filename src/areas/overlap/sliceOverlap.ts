import type { Steps } from '../../base/workTurns.ts';
import { zoneAreaM2 } from '../../geometry/geodesic/authalic.ts';
import { RADIANS_PER_DEGREE } from '../../geometry/geodesic/wgs84.ts';
import { commonDegrees, type Slices } from './intervals.ts';

/** Slices within the smaller detail of the two shapes. */
const SLICES_PER_DETAIL = 16;
const LEAST_SLICES = 1_024;
const MOST_SLICES = 40_000;
const SLICES_PER_STEP = 64;
const METRES_PER_DEGREE = 111_000;

/**
 * The area in square metres that two shapes have in common. It is the sum over thin slices between parallels. Each
 * slice is as wide as the shapes' common part in its middle, and is measured on the ellipsoid. This works for every
 * kind of shape, across 180° and around the poles. The error is below 0.01 % where a slice is much thinner than the
 * details of the shapes.
 */
export function* sliceOverlapM2(a: Slices, b: Slices): Steps<number> {
  const south = Math.max(a.south, b.south);
  const north = Math.min(a.north, b.north);
  if (south >= north) return 0;
  const heightM = (north - south) * METRES_PER_DEGREE;
  const wanted = Math.ceil((heightM / Math.min(a.detailM, b.detailM)) * SLICES_PER_DETAIL);
  const count = Math.min(MOST_SLICES, Math.max(LEAST_SLICES, wanted));
  const step = (north - south) / count;
  let areaM2 = 0;
  for (let n = 0; n < count; n++) {
    if (n % SLICES_PER_STEP === SLICES_PER_STEP - 1) yield;
    const lat = south + (n + 0.5) * step;
    const degrees = commonDegrees(a.at(lat), b.at(lat));
    if (degrees > 0) {
      areaM2 += degrees * RADIANS_PER_DEGREE * zoneAreaM2(lat - step / 2, lat + step / 2);
    }
  }
  return areaM2;
}
