import { invariant } from '../lib/errors.ts';
import type { Path, Ring } from './path.ts';
import {
  type Edges,
  type LatLng,
  meridianRadiusM,
  normalRadiusM,
  RADIANS_PER_DEGREE,
  SECOND_ECCENTRICITY_SQUARED,
} from './wgs84.ts';

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

/**
 * Bounds that together hold all positions within bufferM of a path's edges, as `corridorBounds` does alone. A long path
 * that slants over the map, or runs to and fro on such a line, fills a small part of its one bounding box. So the box is
 * halved along its longer side, and each half is narrowed to the edges inside it, as long as that leaves much out.
 * Ordinary areas stay whole. At most MOST_PARTS.
 */
export function corridorParts(path: Path, bufferM: number): Bounds[] {
  const whole = corridorBounds(path, bufferM);
  const width = whole.east - whole.west;
  if ((width < 0 ? width + 360 : width) * (whole.north - whole.south) < LEAST_SIZE) return [whole];
  const done: Part[] = [];
  const allEdges = Int32Array.from({ length: path.lngs.length - 1 }, (_, edge) => edge);
  const open: Part[] = [{ ...extentOf(path), edges: allEdges }];
  while (open.length > 0 && done.length + open.length < MOST_PARTS) {
    const part = takeLargest(open);
    const halves = halvesOf(path, part);
    if (halves.length === 0) done.push(part);
    else open.push(...halves);
  }
  const parts = [...done, ...open];
  return parts.length === 1 ? [whole] : parts.map((part) => boundsOf(part, bufferM));
}

/** A part of the path: its box, with longitudes as the path has them, and the edges that run through it. */
interface Part extends Bounds {
  readonly edges: Int32Array;
}

/** No halves if they would leave out too little. */
function halvesOf(path: Path, part: Part): Part[] {
  const { west, south, east, north } = part;
  const isWide = east - west > north - south;
  const lng = (west + east) / 2;
  const lat = (south + north) / 2;
  const halves = [
    partOf(path, part.edges, isWide ? { ...part, east: lng } : { ...part, north: lat }),
    partOf(path, part.edges, isWide ? { ...part, west: lng } : { ...part, south: lat }),
  ].filter((half) => half !== null);
  const size = halves.reduce((sum, half) => sum + sizeOf(half), 0);
  return size <= WORTH_HALVING * sizeOf(part) ? halves : [];
}

/** The part of these edges that is inside a box; null when none is. */
function partOf({ lngs, lats }: Path, edges: Int32Array, box: Bounds): Part | null {
  const found = new Int32Array(edges.length);
  let count = 0;
  let west = Infinity;
  let south = Infinity;
  let east = -Infinity;
  let north = -Infinity;
  for (let n = 0; n < edges.length; n++) {
    const edge = edges[n]!;
    const lng = lngs[edge]!;
    const lat = lats[edge]!;
    const dLng = lngs[edge + 1]! - lng;
    const dLat = lats[edge + 1]! - lat;
    // The fractions of the edge between which it is in the box.
    let from = 0;
    let to = 1;
    if (dLng !== 0) {
      const a = (box.west - lng) / dLng;
      const b = (box.east - lng) / dLng;
      from = Math.max(from, Math.min(a, b));
      to = Math.min(to, Math.max(a, b));
    } else if (lng < box.west || lng > box.east) continue;
    if (dLat !== 0) {
      const a = (box.south - lat) / dLat;
      const b = (box.north - lat) / dLat;
      from = Math.max(from, Math.min(a, b));
      to = Math.min(to, Math.max(a, b));
    } else if (lat < box.south || lat > box.north) continue;
    if (from > to) continue;
    found[count++] = edge;
    const lngA = lng + from * dLng;
    const lngB = lng + to * dLng;
    const latA = lat + from * dLat;
    const latB = lat + to * dLat;
    west = Math.min(west, Math.min(lngA, lngB));
    east = Math.max(east, Math.max(lngA, lngB));
    south = Math.min(south, Math.min(latA, latB));
    north = Math.max(north, Math.max(latA, latB));
  }
  return count === 0 ? null : { west, south, east, north, edges: found.subarray(0, count) };
}

function takeLargest(parts: Part[]): Part {
  let largest = 0;
  for (let n = 1; n < parts.length; n++) if (sizeOf(parts[n]!) > sizeOf(parts[largest]!)) largest = n;
  return parts.splice(largest, 1)[0]!;
}

/** On the map of longitude and latitude; a line along a meridian has a width too. */
function sizeOf({ west, south, east, north }: Bounds): number {
  return (east - west + THIN_DEGREES) * (north - south + THIN_DEGREES);
}

/** The corners are enough: a buffer is widest where the box is nearest to a pole. */
function boundsOf({ west, south, east, north }: Part, bufferM: number): Bounds {
  const turn = 360 * Math.floor((west + 180) / 360);
  const lngs = [west - turn, east - turn, west - turn, east - turn];
  return corridorBounds({ lngs, lats: [south, south, north, north], points: [] }, bufferM);
}

/** Each part takes some 200 bytes of the index of areas. */
const MOST_PARTS = 8;
/** In square degrees: about fifty kilometres in each direction. */
const LEAST_SIZE = 0.25;
/** A box that shrinks by less than this is not halved. */
const WORTH_HALVING = 0.8;
const THIN_DEGREES = 0.01;
