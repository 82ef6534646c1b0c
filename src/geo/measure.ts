import { northwardAreaM2 } from './authalic.ts';
import type { Path } from './path.ts';
import { meridianRadiusM, normalRadiusM, parallelRadiusM } from './radii.ts';
import type { Ring } from './ring.ts';
import { RADIANS_PER_DEGREE } from './wgs84.ts';

export interface Measures {
  readonly areaM2: number;
  readonly perimeterM: number;
}

/** Area and perimeter of a polygon on the WGS84 ellipsoid, its edges straight in longitude and latitude. */
export function ringMeasures(ring: Ring): Measures {
  return { areaM2: ringAreaM2(ring), perimeterM: pathLengthM(ring) };
}

export function ringAreaM2(ring: Ring): number {
  return Math.abs(northwardAreaM2(ring, referenceLat(ring)));
}

/** Length in metres of a path, along its edges; of a ring, its perimeter. */
export function pathLengthM({ lngs, lats }: Path): number {
  let lengthM = 0;
  for (let i = 1; i < lngs.length; i++) {
    lengthM += edgeLengthM(lats[i - 1]!, lats[i]!, Math.abs(lngs[i]! - lngs[i - 1]!), 0);
  }
  return lengthM;
}

/**
 * Area and perimeter of a circle on the ellipsoid: those of a spherical cap with the Gaussian curvature at the centre.
 * The change of curvature cancels out over the circle; at 100 km the remaining relative error is below 1e-9.
 */
export function circleMeasures(lat: number, radiusM: number): Measures {
  const radiusOfSphere = Math.sqrt(meridianRadiusM(lat) * normalRadiusM(lat));
  const chordM = 2 * radiusOfSphere * Math.sin(radiusM / radiusOfSphere / 2);
  return {
    areaM2: Math.PI * chordM * chordM,
    perimeterM: 2 * Math.PI * radiusOfSphere * Math.sin(radiusM / radiusOfSphere),
  };
}

/** From where area is counted: a ring around a pole needs the pole, any other is most accurate from its own middle. */
function referenceLat(ring: Ring): number {
  if (ring.pole) return ring.pole === 'north' ? 90 : -90;
  let south = ring.lats[0]!;
  let north = south;
  for (const lat of ring.lats) {
    south = Math.min(south, lat);
    north = Math.max(north, lat);
  }
  return (south + north) / 2;
}

/**
 * The arc length of one edge by three-point Gauss-Legendre quadrature. An edge near a pole, along which the parallels
 * shrink fast, is halved first. dLng in degrees, 0 or more.
 */
function edgeLengthM(latA: number, latB: number, dLng: number, depth: number): number {
  const middle = (latA + latB) / 2;
  const dLat = Math.abs(latB - latA);
  if (dLat > STEADY_SHARE * (90 - Math.abs(middle)) && depth < MAX_DEPTH) {
    return edgeLengthM(latA, middle, dLng / 2, depth + 1) + edgeLengthM(middle, latB, dLng / 2, depth + 1);
  }
  const off = GAUSS_OFFSET * (latB - latA);
  const ends = speedM(middle - off, dLat, dLng) + speedM(middle + off, dLat, dLng);
  return ((5 * ends + 8 * speedM(middle, dLat, dLng)) / 18) * RADIANS_PER_DEGREE;
}

function speedM(lat: number, dLat: number, dLng: number): number {
  return Math.hypot(meridianRadiusM(lat) * dLat, parallelRadiusM(lat) * dLng);
}

const GAUSS_OFFSET = Math.sqrt(0.15);
const STEADY_SHARE = 0.1;
/** An edge that ends on a pole is halved this often, down to less than a millimetre. */
const MAX_DEPTH = 36;
