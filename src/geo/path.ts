import { distanceM, type Edges, type LatLng, northwardAreaM2 } from './wgs84.ts';

/**
 * A chain of edges, straight in longitude and latitude (RFC 7946, 3.1.1), with unwrapped longitudes: each is the given
 * one plus a multiple of 360, so that every edge goes the short way, over the antimeridian where that is shorter. The
 * westernmost longitude is in [-180, 180), so -180 and 180 give the same numbers.
 */
export interface Path extends Edges {
  /** The positions of the vertices as they were given. */
  readonly points: readonly LatLng[];
}

/** The path of a polyline; two positions or more. */
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

export type Pole = 'north' | 'south';

/**
 * The closed path of a polygon's exterior ring. The first vertex is repeated at the end (in lngs and lats, not in
 * points), `turns` full turns further east: 0 for an ordinary ring, 1 or -1 for one that runs around a pole; more
 * cannot be drawn without crossing itself.
 */
export interface Ring extends Path {
  readonly turns: number;
  /** The pole inside, or null when the ring does not run around one. */
  readonly pole: Pole | null;
}

/**
 * Continuous longitudes for a polygon's exterior ring, given without the closing repetition; winding is free and
 * repeated vertices are dropped. At least one position.
 *
 * A ring that runs around the Earth bounds two areas: the smaller one is meant. The larger one can be written as RFC
 * 7946 does it, with a cut to the pole: up a meridian, along the pole for 360°, and back down the same meridian. Such a
 * cut is not a boundary and is removed here; it tells which pole is inside. Where the ring reaches the pole on one meridian
 * and leaves it on another, the pole stays as one vertex. Any other edge along a pole has no length either, so the
 * other edges decide in which direction it runs.
 */
export function unwrapRing(points: readonly LatLng[]): Ring {
  const turns = countTurns(points);
  const total = turns[points.length] ?? 0;
  if (total === 0) {
    const open = removePolarCut(points, turns);
    if (open) return open;
  }
  const path = closedPath(points, turns);
  return { ...path, turns: total, pole: Math.abs(total) === 1 ? smallerSide(path) : null };
}

/** Vertex k of the result closes the ring: turns[n] is the number of times the ring runs around the Earth. */
function countTurns(points: readonly LatLng[]): number[] {
  const n = points.length;
  const turns = [0];
  for (let i = 0; i < n; i++) turns[i + 1] = turns[i]! + ringEdgeTurn(points[i]!, points[(i + 1) % n]!);
  const total = turns[n]!;
  if (Math.abs(total) === 1) {
    const poleEdge = widestPoleEdge(points, turns, total);
    for (let i = poleEdge + 1; poleEdge >= 0 && i <= n; i++) turns[i] = turns[i]! - total;
  }
  return turns;
}

/** As edgeTurn, except that from -180 to 180 along a pole is a full turn. */
function ringEdgeTurn(from: LatLng, to: LatLng): number {
  return alongPole(from, to) && Math.abs(to.lng - from.lng) === 360 ? 0 : edgeTurn(from, to);
}

/** The edge along a pole that goes furthest in the direction of `total`; -1 when there is none. */
function widestPoleEdge(points: readonly LatLng[], turns: readonly number[], total: number): number {
  let widest = -1;
  let widestStep = Number.NEGATIVE_INFINITY;
  for (let i = 0; i < points.length; i++) {
    const from = points[i]!;
    const to = points[(i + 1) % points.length]!;
    const step = total * (to.lng - from.lng + 360 * (turns[i + 1]! - turns[i]!));
    if (alongPole(from, to) && step > widestStep) {
      widest = i;
      widestStep = step;
    }
  }
  return widest;
}

/**
 * The ring without its cut to a pole, where it has exactly one: vertices in a row on the pole, a full turn long. Null
 * otherwise. With two, one at each pole, the ring is the frame of a world map.
 */
function removePolarCut(points: readonly LatLng[], turns: readonly number[]): Ring | null {
  const n = points.length;
  const cuts = findPolarCuts(points, turns);
  const cut = cuts[0];
  if (cuts.length !== 1 || !cut) return null;

  const from = cut.first + (cut.isSpike ? cut.length : cut.length - 1);
  const restLength = n - (from - cut.first);
  const rest: LatLng[] = [];
  const restTurns: number[] = [];
  for (let k = 0; k < restLength; k++) {
    const i = (from + k) % n;
    rest.push(points[i]!);
    restTurns[k] = turns[i]!;
  }
  restTurns[restLength] = restTurns[0]! - cut.turns;
  const path = closedPath(rest, restTurns);
  return { ...path, turns: -cut.turns, pole: points[cut.first]!.lat > 0 ? 'north' : 'south' };
}

interface PolarCut {
  readonly first: number;
  readonly length: number;
  readonly turns: number;
  /** The pole is reached and left on the same meridian. */
  readonly isSpike: boolean;
}

function findPolarCuts(points: readonly LatLng[], turns: readonly number[]): PolarCut[] {
  const n = points.length;
  const cuts: PolarCut[] = [];
  const lngAt = (i: number) => points[(i + n) % n]!.lng + 360 * turns[(i + n) % n]!;
  for (let first = 0; first < n; first++) {
    const start = points[first]!;
    if (Math.abs(start.lat) !== 90 || points[(first + n - 1) % n]!.lat === start.lat) continue;
    let length = 1;
    while (length < n && points[(first + length) % n]!.lat === start.lat) length++;
    const last = (first + length - 1) % n;
    const fullTurns = turns[last]! - turns[first]! + (points[last]!.lng - start.lng) / 360;
    if (Math.abs(fullTurns) !== 1) continue;
    const isSpike = lngAt(first - 1) === lngAt(first) && lngAt(last + 1) === lngAt(last);
    cuts.push({ first, length, turns: fullTurns, isSpike });
  }
  return cuts;
}

/** The path through all vertices and back to the first, at turns[n]. A vertex equal to the next one is dropped. */
function closedPath(points: readonly LatLng[], turns: readonly number[]): Path {
  const n = points.length;
  const lngAt = (i: number) => points[i % n]!.lng + 360 * turns[i]!;
  const kept: number[] = [];
  for (let i = 0; i < n; i++) {
    const repeated = points[i]!.lat === points[(i + 1) % n]!.lat && lngAt(i) === lngAt(i + 1);
    if (!repeated) kept.push(i);
  }
  const first = kept[0] ?? 0;
  const closedTurns = kept.map((i) => turns[i]!);
  closedTurns[kept.length] = turns[first]! + turns[n]! - turns[0]!;
  const keptPoints = kept.map((i) => points[i]!);
  const { lngs, lats } = placePath([...keptPoints, points[first]!], closedTurns);
  return { lngs, lats, points: keptPoints };
}

function smallerSide(path: Path): Pole {
  const last = path.lngs.length - 1;
  const eastward = Math.sign(path.lngs[last]! - path.lngs[0]!);
  // The area between equator and ring is positive where the ring runs mostly north of it.
  return eastward * northwardAreaM2(path, 0) >= 0 ? 'north' : 'south';
}

function alongPole(a: LatLng, b: LatLng): boolean {
  return Math.abs(a.lat) === 90 && a.lat === b.lat;
}

/**
 * Twice the area of a polygon on the flat map, positive if counter-clockwise. The first vertex may or may not be
 * repeated at the end. Coordinates are taken relative to the first vertex, so that small shapes keep their digits.
 */
export function doublePlanarArea(xs: ArrayLike<number>, ys: ArrayLike<number>): number {
  const [x0, y0] = [xs[0] ?? 0, ys[0] ?? 0];
  let area = 0;
  for (let i = 2; i < xs.length; i++) {
    area += (xs[i - 1]! - x0) * (ys[i]! - y0) - (xs[i]! - x0) * (ys[i - 1]! - y0);
  }
  return area;
}

/** A polygon's points without the repetition of the first that closes a GeoJSON ring. */
export function openRing(points: readonly LatLng[]): readonly LatLng[] {
  const first = points[0];
  const last = points[points.length - 1];
  if (points.length < 2 || !first || !last) return points;
  return first.lat === last.lat && first.lng === last.lng ? points.slice(0, -1) : points;
}

/**
 * Drops every point closer than 0.1 m to the last one that was kept; in a ring also the last points that are that close
 * to the first. Points at a pole that differ in longitude stay, because they decide where the edges to the pole run.
 */
export function simplify(points: readonly LatLng[], closed: boolean): LatLng[] {
  const kept: LatLng[] = [];
  for (const point of points) {
    const last = kept[kept.length - 1];
    if (!last || !nearlyCoincident(last, point)) kept.push(point);
  }
  while (closed && kept.length > 1 && nearlyCoincident(kept[kept.length - 1]!, kept[0]!)) kept.pop();
  return kept;
}

function nearlyCoincident(a: LatLng, b: LatLng): boolean {
  if (Math.abs(a.lat - b.lat) > SURELY_APART_DEGREES) return false;
  if (a.lat === b.lat && Math.abs(a.lat) === 90) return a.lng === b.lng;
  return distanceM(a.lat, a.lng, b.lat, b.lng) < COINCIDENT_M;
}

const COINCIDENT_M = 0.1;
/** A degree of latitude is nowhere shorter than 110.5 km. */
const SURELY_APART_DEGREES = COINCIDENT_M / 110_000;
