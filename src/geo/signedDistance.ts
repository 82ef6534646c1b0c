import { distanceM } from './distance.ts';
import type { EdgeIndex } from './edgeIndex.ts';
import type { LatLng } from './latLng.ts';
import { nearestEdgeM, nearestEdgeWithinM } from './nearestEdge.ts';
import { type RingIndex, ringSide } from './ringSide.ts';

// Metres from a position to the boundary of an area: negative inside, 0 on the boundary, positive outside, so that a
// position is inside exactly when the distance is 0 or less. Degrees, lat -90 to 90, lng -180 to 180.

/** Polygon: the exact test of ringSide.ts gives the sign, the nearest edge the amount. */
export function ringDistanceM(ring: RingIndex, lat: number, lng: number): number {
  const side = ringSide(ring, lat, lng);
  return side === 'out' ? offBoundaryM(ring, lat, lng) : sideDistanceM(ring, side, lat, lng);
}

/** The same, and Infinity outside. */
export function ringInsideDistanceM(ring: RingIndex, lat: number, lng: number): number {
  const side = ringSide(ring, lat, lng);
  return side === 'out' ? Number.POSITIVE_INFINITY : sideDistanceM(ring, side, lat, lng);
}

function sideDistanceM(ring: RingIndex, side: 'in' | 'on', lat: number, lng: number): number {
  return side === 'on' ? 0 : -offBoundaryM(ring, lat, lng);
}

/** An amount that rounds to 0 beside the boundary must not turn outside into inside. */
function offBoundaryM(ring: RingIndex, lat: number, lng: number): number {
  return Math.max(nearestEdgeM(ring.edges, lat, lng), SMALLEST_M);
}

/** Track with a margin: all positions within bufferM of its edges are inside. */
export function corridorDistanceM(edges: EdgeIndex, bufferM: number, lat: number, lng: number): number {
  const insideM = corridorInsideDistanceM(edges, bufferM, lat, lng);
  // Both searches are exact to 1e-5, and outside must stay outside.
  return insideM <= 0 ? insideM : Math.max(nearestEdgeM(edges, lat, lng) - bufferM, SMALLEST_M);
}

/** The same, and Infinity outside: only what is near enough to be inside is looked at. */
export function corridorInsideDistanceM(edges: EdgeIndex, bufferM: number, lat: number, lng: number): number {
  const distanceM = nearestEdgeWithinM(edges, lat, lng, bufferM) - bufferM;
  return distanceM <= 0 ? distanceM : Number.POSITIVE_INFINITY;
}

/** Circle or place: all positions within radiusM of the centre are inside. */
export function circleDistanceM(center: LatLng, radiusM: number, lat: number, lng: number): number {
  return distanceM(center.lat, center.lng, lat, lng) - radiusM;
}

const SMALLEST_M = 1e-9;
