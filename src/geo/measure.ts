import { invariant } from '../lib/errors.ts';
import type { Path, Ring } from './path.ts';
import {
  type Edges,
  GAUSS_OFFSET,
  type LatLng,
  meridianRadiusM,
  normalRadiusM,
  northwardAreaM2,
  parallelRadiusM,
  RADIANS_PER_DEGREE,
  SECOND_ECCENTRICITY_SQUARED,
} from './wgs84.ts';

interface Measures {
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

/** The parallel from which area is counted: the pole for a ring around it; any other is most accurate from its middle. */
function referenceLat(ring: Ring): number {
  if (ring.pole) return ring.pole === 'north' ? 90 : -90;
  const { south, north } = extentOf(ring);
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

const STEADY_SHARE = 0.1;
/** An edge that ends on a pole is halved this often, down to less than a millimetre. */
const MAX_DEPTH = 36;

/**
 * The centroid of a polygon, on the map of longitude and latitude (PostGIS' ST_Centroid(geometry)); lng -180 to 180.
 * It may be outside of a bent shape. Around a pole that map has no middle: there the centroid is the direction of the
 * area's mean normal, computed from the boundary alone.
 */
export function ringCentroid(ring: Ring): LatLng {
  return ring.pole ? polarCentroid(ring) : planarCentroid(ring);
}

function planarCentroid({ lngs, lats }: Ring): LatLng {
  // Relative to a vertex, so that small shapes keep their digits.
  const lng0 = lngs[0]!;
  const lat0 = lats[0]!;
  let doubleArea = 0;
  let east = 0;
  let north = 0;
  for (let i = 2; i < lngs.length; i++) {
    const ax = lngs[i - 1]! - lng0;
    const ay = lats[i - 1]! - lat0;
    const bx = lngs[i]! - lng0;
    const by = lats[i]! - lat0;
    const cross = ax * by - bx * ay;
    doubleArea += cross;
    east += (ax + bx) * cross;
    north += (ay + by) * cross;
  }
  const lng = lng0 + east / (3 * doubleArea);
  return { lat: lat0 + north / (3 * doubleArea), lng: lng > 180 ? lng - 360 : lng };
}

/** On the unit sphere the vector area inside a closed curve is half the sum of the cross products along it. */
function polarCentroid({ lngs, lats, pole, turns }: Ring): LatLng {
  const sum = { x: 0, y: 0, z: 0 };
  let from = normalAt(lats[0]!, lngs[0]!);
  for (let i = 1; i < lngs.length; i++) {
    const dLng = lngs[i]! - lngs[i - 1]!;
    const dLat = lats[i]! - lats[i - 1]!;
    const steps = Math.ceil(Math.max(Math.abs(dLng), Math.abs(dLat)));
    for (let k = 1; k <= steps; k++) {
      const to = normalAt(lats[i - 1]! + (k / steps) * dLat, lngs[i - 1]! + (k / steps) * dLng);
      sum.x += from.y * to.z - from.z * to.y;
      sum.y += from.z * to.x - from.x * to.z;
      sum.z += from.x * to.y - from.y * to.x;
      from = to;
    }
  }
  // Eastward around the north pole the inside is on the left, and the sum points out of it.
  const sign = pole === 'north' ? turns : -turns;
  return {
    lat: Math.atan2(sign * sum.z, Math.hypot(sum.x, sum.y)) / RADIANS_PER_DEGREE,
    lng: Math.atan2(sign * sum.y, sign * sum.x) / RADIANS_PER_DEGREE,
  };
}

function normalAt(lat: number, lng: number): { x: number; y: number; z: number } {
  const phi = lat * RADIANS_PER_DEGREE;
  const lambda = lng * RADIANS_PER_DEGREE;
  return { x: Math.cos(phi) * Math.cos(lambda), y: Math.cos(phi) * Math.sin(lambda), z: Math.sin(phi) };
}

/**
 * A bounding box in degrees, within -90..90 and -180..180. When west is greater than east, it crosses the antimeridian
 * (RFC 7946, 5.2). The bounds of a shape around a pole, or one that reaches a pole, have west -180 and east 180.
 */
export interface Bounds {
  readonly south: number;
  readonly west: number;
  readonly north: number;
  readonly east: number;
}

/** The least and the largest of a path's latitudes and of its longitudes, which are continuous. */
export function extentOf({ lngs, lats }: Edges): Bounds {
  let [south, west, north, east] = [Infinity, Infinity, -Infinity, -Infinity];
  for (let i = 0; i < lngs.length; i++) {
    south = Math.min(south, lats[i]!);
    west = Math.min(west, lngs[i]!);
    north = Math.max(north, lats[i]!);
    east = Math.max(east, lngs[i]!);
  }
  return { south, west, north, east };
}

/** Bounds of a polygon, exact to the last digit: every position inside or on the boundary is within them. */
export function ringBounds(ring: Ring): Bounds {
  const { south, west, north, east } = extentOf(ring);
  if (ring.pole === 'north') return { south, west: -180, north: 90, east: 180 };
  if (ring.pole === 'south') return { south: -90, west: -180, north, east: 180 };
  if (east - west >= 360) return { south, west: -180, north, east: 180 };
  // The longitude as it was given: subtracting the 360 again could lose the last digit.
  return { south, west, north, east: east > 180 ? ring.points[ring.lngs.indexOf(east)]!.lng : east };
}

/** Bounds of all positions within radiusM (metres, up to MAX_RADIUS_M) of the centre, slightly larger than needed. */
export function circleBounds(center: LatLng, radiusM: number): Bounds {
  const cap = capAround(center.lat, radiusM);
  return spanning(cap.south, center.lng - cap.halfWidth, cap.north, center.lng + cap.halfWidth);
}

/**
 * Bounds of all positions within bufferM of a path's edges. The caps around the vertices are enough, because along an
 * edge the extent of the cap changes as a convex function: its half width grows ever faster towards the pole.
 */
export function corridorBounds({ lngs, lats }: Path, bufferM: number): Bounds {
  let south = 90;
  let north = -90;
  let west = Number.POSITIVE_INFINITY;
  let east = Number.NEGATIVE_INFINITY;
  for (let i = 0; i < lngs.length; i++) {
    const cap = capAround(lats[i]!, bufferM);
    south = Math.min(south, cap.south);
    north = Math.max(north, cap.north);
    west = Math.min(west, lngs[i]! - cap.halfWidth);
    east = Math.max(east, lngs[i]! + cap.halfWidth);
  }
  return spanning(south, west, north, east);
}

/** A box for an R-tree, in plain coordinates: it never crosses the antimeridian. */
export interface IndexBox {
  readonly minX: number;
  readonly minY: number;
  readonly maxX: number;
  readonly maxY: number;
}

/**
 * One or two boxes that hold every position of the bounds however it is written: 180 and -180 are one meridian, and a
 * pole has all longitudes. They are padded outward, so they may select too much but never too little.
 */
export function indexBoxes(bounds: Bounds): IndexBox[] {
  const minY = bounds.south - INDEX_PAD_DEGREES;
  const maxY = bounds.north + INDEX_PAD_DEGREES;
  const minX = bounds.west - INDEX_PAD_DEGREES;
  const maxX = bounds.east + INDEX_PAD_DEGREES;
  const box = (west: number, east: number): IndexBox => ({ minX: west, minY, maxX: east, maxY });
  if (minY <= -90 || maxY >= 90 || (minX <= -180 && maxX >= 180)) return [box(-180, 180)];
  if (minX < -180) return [box(-180, maxX), box(minX + 360, 180)];
  if (maxX > 180) return [box(minX, 180), box(-180, maxX - 360)];
  return minX <= maxX ? [box(minX, maxX)] : [box(minX, 180), box(-180, maxX)];
}

interface Cap {
  readonly south: number;
  readonly north: number;
  /** In degrees of longitude; 180 when the cap surrounds or nearly touches a pole. */
  readonly halfWidth: number;
}

/**
 * The extent of a geodesic circle around a position on longitude 0. North and south come from the meridian's curvature
 * half way. East and west come from C. F. Gauss' conformal sphere, which osculates the ellipsoid at the centre's
 * latitude and preserves lengths near it to third order. Both are accurate to 1e-7 up to the largest radius; ten times
 * that is added.
 */
function capAround(lat: number, radiusM: number): Cap {
  invariant(radiusM >= 0 && radiusM <= MAX_RADIUS_M, 'radius within the range of the formula');
  const paddedM = radiusM * (1 + PAD_SHARE) + PAD_M;
  const north = lat + meridianDegrees(lat, paddedM);
  const south = lat - meridianDegrees(lat, -paddedM);
  const sinLat = Math.sin(lat * RADIANS_PER_DEGREE);
  const cosLat = Math.cos(lat * RADIANS_PER_DEGREE);
  const scale = Math.sqrt(1 + SECOND_ECCENTRICITY_SQUARED * cosLat ** 4);
  const cosSphere = Math.sqrt(1 - (sinLat / scale) ** 2);
  const radiusOfSphere = Math.sqrt(meridianRadiusM(lat) * normalRadiusM(lat));
  const sine = Math.sin(paddedM / radiusOfSphere) / cosSphere;
  const reachesPole = north >= 90 || south <= -90 || sine >= 1;
  return {
    south: Math.max(south, -90),
    north: Math.min(north, 90),
    halfWidth: reachesPole ? 180 : Math.asin(sine) / scale / RADIANS_PER_DEGREE,
  };
}

/** Degrees of latitude covered by a distance along the meridian, northward if positive. The result is positive. */
function meridianDegrees(lat: number, distanceM: number): number {
  const guess = distanceM / meridianRadiusM(lat) / RADIANS_PER_DEGREE;
  return Math.abs(distanceM) / meridianRadiusM(lat + guess / 2) / RADIANS_PER_DEGREE;
}

function spanning(south: number, west: number, north: number, east: number): Bounds {
  if (east - west >= 360) return { south, west: -180, north, east: 180 };
  const from = west < -180 ? west + 360 : west >= 180 ? west - 360 : west;
  const to = east > 180 ? east - 360 : east;
  return { south, west: from, north, east: to };
}

/** Twice the largest radius of an area. */
const MAX_RADIUS_M = 200_000;
const PAD_SHARE = 1e-6;
const PAD_M = 0.001;
const INDEX_PAD_DEGREES = 1e-9;
