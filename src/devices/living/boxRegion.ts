import { RADIANS_PER_DEGREE } from '../../geo/wgs84.ts';
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
  };
}

function isBetween(west: number, east: number, lng: number): boolean {
  return west <= east ? lng >= west && lng <= east : lng >= west || lng <= east;
}
