import { distanceM } from '../../geo/distance.ts';
import type { Disc } from '../area.ts';
import type { PlanarRing } from './planarRing.ts';

/** The extent of an area in degrees. Longitudes are continuous: across 180°, east is above 180. */
export interface Box {
  readonly south: number;
  readonly west: number;
  readonly north: number;
  readonly east: number;
}

/**
 * Where everything within a box is: in a polygon, apart from it, or null where the box may have a part of the boundary.
 * Only the boxes of edges are compared, which is exact.
 */
export function placeInRing(box: Box, ring: PlanarRing, ringBox: Box): 'inside' | 'apart' | null {
  // A polygon stands once in every full turn of longitudes.
  const lowest = Math.ceil((ringBox.west - box.east) / 360);
  const highest = Math.floor((ringBox.east - box.west) / 360);
  for (let turn = lowest; turn <= highest; turn++) {
    const isInside = isBoxInside(box.south, box.north, box.west + turn * 360, box.east + turn * 360, ring);
    if (isInside !== false) return isInside === null ? null : 'inside';
  }
  return 'apart';
}

/** Null where the box of an edge meets this one. Otherwise counts the edges that lie west of it. */
function isBoxInside(
  south: number,
  north: number,
  west: number,
  east: number,
  { lngs, lats }: PlanarRing,
): boolean | null {
  let isInside = false;
  for (let n = 1; n < lngs.length; n++) {
    const [lngA, lngB, latA, latB] = [lngs[n - 1]!, lngs[n]!, lats[n - 1]!, lats[n]!];
    if ((latA < south && latB < south) || (latA > north && latB > north)) continue;
    if (lngA > east && lngB > east) continue;
    if (!(lngA < west && lngB < west)) return null;
    if (latA <= south !== latB <= south) isInside = !isInside;
  }
  return isInside;
}

/**
 * True when everything within a box is in a circle. Along a parallel and along a meridian the distance from a centre is
 * greatest at an end, so the corners decide. Not around a pole, where a circle has all longitudes.
 */
export function isBoxInDisc({ south, west, north, east }: Box, { center, radiusM }: Disc): boolean {
  if (north > STEADY_LAT || south < -STEADY_LAT) return false;
  return [south, north].every((lat) =>
    [west, east].every((lng) => distanceM(center.lat, center.lng, lat, lng) <= radiusM),
  );
}

/** Where a circle is: in another one, apart from it, or null where it is partly inside, or around it. */
export function placeInDisc(disc: Disc, other: Disc): 'inside' | 'apart' | null {
  const gapM = distanceM(disc.center.lat, disc.center.lng, other.center.lat, other.center.lng);
  if (gapM >= disc.radiusM + other.radiusM) return 'apart';
  return gapM + disc.radiusM <= other.radiusM ? 'inside' : null;
}

const STEADY_LAT = 85;
