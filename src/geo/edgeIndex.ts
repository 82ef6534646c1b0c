import { NumberPages } from '../lib/numberPages.ts';
import { extentOf } from './measure.ts';
import type { Path, Pole, Ring } from './path.ts';
import { RADIANS_PER_DEGREE, writeSurfacePoint } from './wgs84.ts';

/**
 * The edges of a path, prepared for many queries: a hierarchy of bounding volumes over runs of consecutive edges.
 * Consecutive edges are near each other, so no spatial sorting is needed. A run that is beside a point as a whole need
 * not be opened: its two ends show how it passes (see ringSide.ts). Built in O(n log n).
 *
 * Each run has a box in degrees and, in space, a capsule: a straight axis and a radius that holds every point of
 * the run (D. H. Ballard, "Strip trees", CACM 24(5), 1981). All numbers are in flat arrays, a stride per item.
 */
export interface EdgeIndex {
  readonly edgeCount: number;
  /**
   * edgeCount + 1 vertices: lng, lat, x, y, z (writeSurfacePoint) and the tolerance in metres of the edge that starts
   * there.
   */
  readonly vertices: Float64Array;
  /** Whether an edge is longer than some hundred kilometres. */
  readonly isLong: boolean;
  /** Per run west, south, east, north, capsule radius in metres, and both ends of its axis (x, y, z, x, y, z). */
  readonly runs: Float64Array;
  /**
   * Only of a long index, otherwise empty: a strip in degrees that holds each run, as the east and north part of a unit
   * normal and the least and largest multiple of it. Long edges bend in space, so their capsules are wide even where
   * they are close together.
   */
  readonly strips: Float64Array;
  /** levels[l - 1] is the first run of level l, whose runs have FANOUT ** l edges; the last level is searched whole. */
  readonly levels: readonly number[];
}

/** A polygon's exterior ring, prepared for queries. */
export interface RingIndex {
  readonly edges: EdgeIndex;
  readonly west: number;
  readonly east: number;
  /** The pole inside a ring that runs around the Earth. */
  readonly pole: Pole | null;
  /** Poles that are a vertex: positions there are on the boundary under every longitude. */
  readonly poleVertices: readonly Pole[];
}

export const VERTEX_STRIDE = 6;
export const RUN_STRIDE = 11;
export const STRIP_STRIDE = 4;
/** A run holds four of the level below: measured best among 2, 4 and 8. */
export const FANOUT_BITS = 2;
/** The last level has no more runs than this. */
export const MOST_ROOTS = 8;

/**
 * A path needs two vertices or more. Its numbers are taken from `pages`: indexes that share them should be dropped in about
 * the order in which they were built.
 */
export function buildEdgeIndex({ lngs, lats }: Path, pages = new NumberPages()): EdgeIndex {
  const edgeCount = lngs.length - 1;
  const levels: number[] = [];
  let runCount = 0;
  for (let count = edgeCount; count > MOST_ROOTS; runCount += count) {
    levels.push(runCount);
    count = runsAt(edgeCount, levels.length);
  }
  const vertices = pages.take(lngs.length * VERTEX_STRIDE);
  const runs = pages.take(runCount * RUN_STRIDE);
  const isLong = writeVertices(lngs, lats, vertices) > LONG_TOLERANCE_M;
  const strips = isLong ? pages.take(runCount * STRIP_STRIDE) : NO_STRIPS;
  for (let level = 1, at = 0; level <= levels.length; level++) {
    const length = 1 << (FANOUT_BITS * level);
    for (let first = 0; first < edgeCount; first += length, at += RUN_STRIDE) {
      const end = Math.min(first + length, edgeCount);
      writeRun(vertices, first, end, runs, at);
      if (isLong) writeStrip(vertices, first, end, strips, (at / RUN_STRIDE) * STRIP_STRIDE);
    }
  }
  return { edgeCount, vertices, isLong, runs, strips, levels };
}

export function buildRingIndex(ring: Ring, pages?: NumberPages): RingIndex {
  const poleVertices: Pole[] = [];
  if (ring.lats.includes(90)) poleVertices.push('north');
  if (ring.lats.includes(-90)) poleVertices.push('south');
  const { west, east } = extentOf(ring);
  return { edges: buildEdgeIndex(ring, pages), west, east, pole: ring.pole, poleVertices };
}

/** What its numbers take. */
export function edgeIndexBytes({ vertices, runs, strips }: EdgeIndex): number {
  return vertices.byteLength + runs.byteLength + strips.byteLength;
}

/** How many runs (edges, at level 0) a level has. */
export function runsAt(edgeCount: number, level: number): number {
  const bits = FANOUT_BITS * level;
  return (edgeCount + (1 << bits) - 1) >> bits;
}

/** Returns the largest tolerance. */
function writeVertices(lngs: readonly number[], lats: readonly number[], vertices: Float64Array): number {
  let largestM = 0;
  for (let i = 0, at = 0; i < lngs.length; i++, at += VERTEX_STRIDE) {
    vertices[at] = lngs[i]!;
    vertices[at + 1] = lats[i]!;
    writeSurfacePoint(lats[i]!, lngs[i]!, vertices, at + 2);
    if (i === 0) continue;
    const toleranceM = edgeToleranceM(lngs[i - 1]!, lats[i - 1]!, lngs[i]!, lats[i]!);
    vertices[at - 1] = toleranceM;
    largestM = Math.max(largestM, toleranceM);
  }
  return largestM;
}

/**
 * The tolerance of an edge: how far it may be from its chord, the straight line through space between its ends. A curve
 * deviates by at most an eighth of its largest second derivative (Taylor). For an edge, straight in lat and lng, that
 * is at most r (dLat² + 2 sin|lat| dLat dLng + cos(lat) dLng²).
 */
function edgeToleranceM(lngA: number, latA: number, lngB: number, latB: number): number {
  const dLng = Math.abs(lngB - lngA) * RADIANS_PER_DEGREE;
  const dLat = Math.abs(latB - latA) * RADIANS_PER_DEGREE;
  const farthest = Math.max(Math.abs(latA), Math.abs(latB)) * RADIANS_PER_DEGREE;
  const nearest = latA * latB <= 0 ? 0 : Math.min(Math.abs(latA), Math.abs(latB)) * RADIANS_PER_DEGREE;
  const bend = dLat * dLat + 2 * Math.sin(farthest) * dLat * dLng + Math.cos(nearest) * dLng * dLng;
  return (LARGEST_RADIUS_M / 8) * bend + ROUNDING_M;
}

function writeRun(vertices: Float64Array, first: number, end: number, runs: Float64Array, at: number): void {
  const from = first * VERTEX_STRIDE;
  const to = end * VERTEX_STRIDE;
  let west = Number.POSITIVE_INFINITY;
  let south = Number.POSITIVE_INFINITY;
  let east = Number.NEGATIVE_INFINITY;
  let north = Number.NEGATIVE_INFINITY;
  let toleranceM = 0;
  for (let i = from; i <= to; i += VERTEX_STRIDE) {
    west = Math.min(west, vertices[i]!);
    east = Math.max(east, vertices[i]!);
    south = Math.min(south, vertices[i + 1]!);
    north = Math.max(north, vertices[i + 1]!);
    if (i < to) toleranceM = Math.max(toleranceM, vertices[i + 5]!);
  }
  runs[at] = west;
  runs[at + 1] = south;
  runs[at + 2] = east;
  runs[at + 3] = north;
  runs[at + 4] = (writeAxis(vertices, from, to, runs, at + 5) + toleranceM) * LARGEST_Z_SCALE;
}

/** Along the longest edge of the run: lines to and fro are a narrow strip, whatever their direction. */
function writeStrip(
  vertices: Float64Array,
  first: number,
  end: number,
  strips: Float64Array,
  at: number,
): void {
  let [dLng, dLat, longest] = [1, 0, 0];
  for (let i = first * VERTEX_STRIDE; i < end * VERTEX_STRIDE; i += VERTEX_STRIDE) {
    const east = vertices[i + VERTEX_STRIDE]! - vertices[i]!;
    const north = vertices[i + VERTEX_STRIDE + 1]! - vertices[i + 1]!;
    const length = Math.hypot(east, north);
    if (length > longest) [dLng, dLat, longest] = [east / length, north / length, length];
  }
  let least = Number.POSITIVE_INFINITY;
  let largest = Number.NEGATIVE_INFINITY;
  for (let i = first * VERTEX_STRIDE; i <= end * VERTEX_STRIDE; i += VERTEX_STRIDE) {
    const across = vertices[i + 1]! * dLng - vertices[i]! * dLat;
    least = Math.min(least, across);
    largest = Math.max(largest, across);
  }
  strips[at] = -dLat;
  strips[at + 1] = dLng;
  strips[at + 2] = least - STRIP_PAD_DEGREES;
  strips[at + 3] = largest + STRIP_PAD_DEGREES;
}

/** Writes an axis through two vertices far from each other; returns the largest distance of a vertex from it. */
function writeAxis(vertices: Float64Array, from: number, to: number, runs: Float64Array, at: number): number {
  const a = farthestFrom(vertices, from, to, from);
  const b = farthestFrom(vertices, from, to, a);
  for (let k = 0; k < 3; k++) {
    runs[at + k] = vertices[a + 2 + k]!;
    runs[at + 3 + k] = vertices[b + 2 + k]!;
  }
  let farSq = 0;
  const point = { x: 0, y: 0, z: 0, zScale: 1 };
  for (let i = from; i <= to; i += VERTEX_STRIDE) {
    point.x = vertices[i + 2]!;
    point.y = vertices[i + 3]!;
    point.z = vertices[i + 4]!;
    const offSq = chordDistanceSq(runs, at, at + 3, point);
    if (offSq > farSq) farSq = offSq;
  }
  return Math.sqrt(farSq);
}

function farthestFrom(vertices: Float64Array, from: number, to: number, origin: number): number {
  let farthest = origin;
  let farSq = 0;
  for (let i = from; i <= to; i += VERTEX_STRIDE) {
    const dx = vertices[i + 2]! - vertices[origin + 2]!;
    const dy = vertices[i + 3]! - vertices[origin + 3]!;
    const dz = vertices[i + 4]! - vertices[origin + 4]!;
    const sq = dx * dx + dy * dy + dz * dz;
    if (sq > farSq) {
      farSq = sq;
      farthest = i;
    }
  }
  return farthest;
}

/** A query point in space. Its z is multiplied by zScale already, the z of what it is compared with is not. */
export interface SpacePoint {
  x: number;
  y: number;
  z: number;
  zScale: number;
}

/**
 * The squared distance from a point to the straight segment between two points of an array, given by the offsets of
 * their x.
 */
export function chordDistanceSq(points: Float64Array, a: number, b: number, point: SpacePoint): number {
  const { x, y, z, zScale } = point;
  const ex = points[b]! - points[a]!;
  const ey = points[b + 1]! - points[a + 1]!;
  const ez = (points[b + 2]! - points[a + 2]!) * zScale;
  const rx = x - points[a]!;
  const ry = y - points[a + 1]!;
  const rz = z - points[a + 2]! * zScale;
  const ratio = (rx * ex + ry * ey + rz * ez) / (ex * ex + ey * ey + ez * ez + NOT_ZERO);
  // Clamps to 0..1 without a branch, which the processor would predict wrong half of the time.
  const t = (Math.abs(ratio) - Math.abs(ratio - 1) + 1) / 2;
  const dx = rx - t * ex;
  const dy = ry - t * ey;
  const dz = rz - t * ez;
  return dx * dx + dy * dy + dz * dz;
}

/** Makes the ratio 0 on a segment without length. */
const NOT_ZERO = 1e-300;

/** More than the ellipsoid's largest radius of curvature (6 399 594 m), scaled as below. */
const LARGEST_RADIUS_M = 6.43e6;
/** The search may scale z by a / b (nearestEdge.ts); capsules are wide enough for that too. */
const LARGEST_Z_SCALE = 1.0034;
const ROUNDING_M = 1e-7;
const NO_STRIPS = new Float64Array(0);
/** The tolerance of an edge of a hundred kilometres. */
const LONG_TOLERANCE_M = 200;
/** More than the rounding of a thousand turns around the Earth. */
const STRIP_PAD_DEGREES = 1e-9;
