import { RADIANS_PER_DEGREE, writeSurfacePoint } from '../../geo/wgs84.ts';
import type { Region } from '../index/regionWalk.ts';

/** Between two parallels and two meridians. A box whose west is more than its east crosses 180°. */
export interface Box {
  readonly west: number;
  readonly south: number;
  readonly east: number;
  readonly north: number;
}

/** Less than any radius of curvature of the ellipsoid has. */
const RADIUS_LEAST_M = 6_335_000;

/** The positions of a box. A pole has every longitude, and -180° is 180°. */
export function boxRegion({ west, south, east, north }: Box): Region {
  const halfWidth = (east - west + (east < west ? 360 : 0)) / 2;
  const middle = west + halfWidth;
  return {
    contains: (lat, lng) =>
      lat >= south &&
      lat <= north &&
      (isBetween(west, east, lng) ||
        Math.abs(lat) === 90 ||
        (lng === 180 && isBetween(west, east, -180)) ||
        (lng === -180 && isBetween(west, east, 180))),
    sideOf: (lat, lng, radiusM) => {
      const angle = (1.001 * radiusM) / RADIUS_LEAST_M;
      const latSpan = angle / RADIANS_PER_DEGREE;
      if (lat + latSpan < south || lat - latSpan > north) return 'out';
      const isInLats = Math.max(-90, lat - latSpan) >= south && Math.min(90, lat + latSpan) <= north;
      if (halfWidth >= 180) return isInLats ? 'in' : 'cut';
      // Positions within an angle have longitudes within this one; with a pole among them the sine is not below 1.
      const sine = (1.01 * Math.sin(angle)) / Math.cos(lat * RADIANS_PER_DEGREE);
      if (angle >= 1 || !(sine < 1)) return 'cut';
      const lngSpan = Math.asin(sine) / RADIANS_PER_DEGREE;
      const off = Math.abs(((((lng - middle) % 360) + 540) % 360) - 180);
      if (off - lngSpan > halfWidth) return 'out';
      return isInLats && off + lngSpan <= halfWidth ? 'in' : 'cut';
    },
    sideOfCuboid: cuboidSides({ west, south, east, north }, halfWidth),
  };
}

/**
 * A parallel is where the ellipsoid meets a plane across its axis, and a meridian where it meets a plane through it. A box
 * of at most half the way around is on the inner side of both meridians, a wider one on that of at least one.
 */
function cuboidSides({ west, south, east, north }: Box, halfWidth: number): Required<Region>['sideOfCuboid'] {
  const lowest = south === -90 ? Number.NEGATIVE_INFINITY : heightM(south);
  const highest = north === 90 ? Number.POSITIVE_INFINITY : heightM(north);
  const [westX, westY] = [-Math.sin(west * RADIANS_PER_DEGREE), Math.cos(west * RADIANS_PER_DEGREE)];
  const [eastX, eastY] = [Math.sin(east * RADIANS_PER_DEGREE), -Math.cos(east * RADIANS_PER_DEGREE)];
  return (x, y, z, halfX, halfY, halfZ) => {
    if (z + halfZ < lowest || z - halfZ > highest) return 'out';
    const isInLats = z - halfZ > lowest && z + halfZ < highest;
    if (halfWidth >= 180) return isInLats ? 'in' : 'cut';
    const fromWest = westX * x + westY * y;
    const reachWest = Math.abs(westX) * halfX + Math.abs(westY) * halfY;
    const fromEast = eastX * x + eastY * y;
    const reachEast = Math.abs(eastX) * halfX + Math.abs(eastY) * halfY;
    if (halfWidth <= 90) {
      if (fromWest < -reachWest || fromEast < -reachEast) return 'out';
      return isInLats && fromWest > reachWest && fromEast > reachEast ? 'in' : 'cut';
    }
    if (fromWest < -reachWest && fromEast < -reachEast) return 'out';
    return isInLats && (fromWest > reachWest || fromEast > reachEast) ? 'in' : 'cut';
  };
}

/** How far north of the equator's plane a parallel is. */
function heightM(lat: number): number {
  writeSurfacePoint(lat, 0, surfacePoint, 0);
  return surfacePoint[2] as number;
}

const surfacePoint = new Float64Array(3);

function isBetween(west: number, east: number, lng: number): boolean {
  return west <= east ? lng >= west && lng <= east : lng >= west || lng <= east;
}
