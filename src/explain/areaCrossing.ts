import type { Shape } from '../areas/shape.ts';
import type { LatLng } from '../geo/wgs84.ts';
import { Pace, type Steps } from '../lib/workTurns.ts';

/** A place outside an area, and how far outside in metres. */
export interface Outside extends LatLng {
  readonly distanceM: number;
}

/** Nearer to the boundary than this, a way counts as missing the area; or this part of its length, if that is more. */
const LEAST_M = 1;
const LEAST_PART = 1e-4;
/** Distances on the ellipsoid and their order are within 0.34 %, the great circle with them. */
const SAFE = 0.99;
/** Between places nearly opposite on the globe there is more than one shortest way. */
const OPPOSITE_RAD = 3.1;
const RADIANS = Math.PI / 180;

/**
 * Whether the straight way between two places outside an area, `lengthM` long, leads through it. It goes along the way in
 * strides of the distance to the boundary, so it cannot step over anything wider than the limits above.
 */
export function* crosses(
  shape: Pick<Shape, 'signedDistanceM'>,
  a: Outside,
  b: Outside,
  lengthM: number,
  pace: Pace = new Pace(),
): Steps<boolean> {
  if (!mayCross(a.distanceM, b.distanceM, lengthM)) return false;
  const at = greatCircle(a, b);
  if (at === null) return false;
  const leastM = Math.max(LEAST_M, LEAST_PART * lengthM);
  for (let alongM = a.distanceM * SAFE; alongM < lengthM; ) {
    const { lat, lng } = at(alongM / lengthM);
    const distanceM = shape.signedDistanceM(lat, lng);
    if (distanceM <= 0) return true;
    if (!mayCross(distanceM, b.distanceM, lengthM - alongM)) return false;
    alongM += Math.max(leastM, distanceM * SAFE);
    if (pace.isDue()) yield* pace.pause();
  }
  return false;
}

/** False when the area is out of reach between two places at least so far outside. */
export function mayCross(distanceAM: number, distanceBM: number, lengthM: number): boolean {
  return (distanceAM + distanceBM) * SAFE <= lengthM;
}

/** The place at a part of the way, 0 at a and 1 at b; null when there is more than one. */
function greatCircle(a: LatLng, b: LatLng): ((part: number) => LatLng) | null {
  const [ax, ay, az] = direction(a);
  const [bx, by, bz] = direction(b);
  const dot = ax * bx + ay * by + az * bz;
  const cross = Math.hypot(ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx);
  const angle = Math.atan2(cross, dot);
  if (angle > OPPOSITE_RAD || angle === 0) return null;
  const sin = Math.sin(angle);
  return (part) => {
    const p = Math.sin((1 - part) * angle) / sin;
    const q = Math.sin(part * angle) / sin;
    const x = p * ax + q * bx;
    const y = p * ay + q * by;
    const z = p * az + q * bz;
    return { lat: Math.atan2(z, Math.hypot(x, y)) / RADIANS, lng: Math.atan2(y, x) / RADIANS };
  };
}

function direction({ lat, lng }: LatLng): readonly [x: number, y: number, z: number] {
  const cosLat = Math.cos(lat * RADIANS);
  return [cosLat * Math.cos(lng * RADIANS), cosLat * Math.sin(lng * RADIANS), Math.sin(lat * RADIANS)];
}
