import type { LatLng } from './latLng.ts';

/**
 * A chain of edges, straight in longitude and latitude (RFC 7946, 3.1.1), with unwrapped longitudes: each is the given
 * one plus a multiple of 360, so that every edge goes the short way, over the antimeridian where that is shorter. The
 * westernmost longitude lies in [-180, 180), so -180 and 180 give the same numbers.
 */
export interface Path {
  readonly lngs: readonly number[];
  readonly lats: readonly number[];
  /** The positions of the vertices as they were given. */
  readonly points: readonly LatLng[];
}

/** The path of a track; two positions or more. */
export function unwrapLine(points: readonly LatLng[]): Path {
  const turns = [0];
  for (let i = 1; i < points.length; i++) {
    turns[i] = turns[i - 1]! + edgeTurn(points[i - 1]!, points[i]!);
  }
  return placePath(points, turns);
}

/**
 * The path with the longitude points[i].lng + 360 * turns[i] at vertex i, shifted as a whole into the range of Path.
 */
export function placePath(points: readonly LatLng[], turns: readonly number[]): Path {
  let west = Number.POSITIVE_INFINITY;
  for (let i = 0; i < points.length; i++) west = Math.min(west, points[i]!.lng + 360 * turns[i]!);
  let shift = 0;
  while (west + 360 * shift < -180) shift++;
  while (west + 360 * shift >= 180) shift--;
  // Plain arrays: most paths are short and live briefly, so memory outside the heap would cost more.
  const lngs: number[] = [];
  const lats: number[] = [];
  for (let i = 0; i < points.length; i++) {
    lngs.push(points[i]!.lng + 360 * (turns[i]! + shift));
    lats.push(points[i]!.lat);
  }
  return { lngs, lats, points };
}

/** What the short way from one position to the next adds to the count of full turns: -1, 0 or 1. */
export function edgeTurn(from: LatLng, to: LatLng): number {
  const step = to.lng - from.lng;
  return step > 180 ? -1 : step < -180 ? 1 : 0;
}
