import type { LatLng } from './latLng.ts';

/**
 * A chain of edges, straight in longitude and latitude (RFC 7946, 3.1.1), on a map without a seam: every longitude
 * is the given one plus a multiple of 360, so that an edge spanning more than 180° goes the short way over the
 * antimeridian. The westernmost longitude lies in [-180, 180); two names of one meridian give the same numbers.
 */
export interface Path {
  readonly lngs: Float64Array;
  readonly lats: Float64Array;
  /** The positions as they were given, vertex by vertex. */
  readonly points: readonly LatLng[];
}

/** The path of a track; two positions or more. */
export function unwrapLine(points: readonly LatLng[]): Path {
  const turns = new Int32Array(points.length);
  for (let i = 1; i < points.length; i++) {
    turns[i] = turns[i - 1]! + edgeTurn(points[i - 1]!, points[i]!);
  }
  return placePath(points, turns);
}

/** The path whose longitude at vertex i is points[i].lng + 360 * turns[i], moved as a whole to the canonical place. */
export function placePath(points: readonly LatLng[], turns: Int32Array): Path {
  let west = Number.POSITIVE_INFINITY;
  for (let i = 0; i < points.length; i++) west = Math.min(west, points[i]!.lng + 360 * turns[i]!);
  let shift = 0;
  while (west + 360 * shift < -180) shift++;
  while (west + 360 * shift >= 180) shift--;
  const lngs = new Float64Array(points.length);
  const lats = new Float64Array(points.length);
  for (let i = 0; i < points.length; i++) {
    lngs[i] = points[i]!.lng + 360 * (turns[i]! + shift);
    lats[i] = points[i]!.lat;
  }
  return { lngs, lats, points };
}

/** What the short way from one position to the next adds to the count of full turns: -1, 0 or 1. */
export function edgeTurn(from: LatLng, to: LatLng): number {
  const step = to.lng - from.lng;
  return step > 180 ? -1 : step < -180 ? 1 : 0;
}
