import type { EdgeIndex, SpacePoint } from './edgeIndex.ts';
import { chordDistanceSq, FANOUT_BITS, MOST_ROOTS, RUN_STRIDE, runsAt, VERTEX_STRIDE } from './edgeIndex.ts';
import { improveProjection, type Projection, ReachBox } from './edgeProjection.ts';
import { distanceM, EQUATORIAL_RADIUS_M, POLAR_RADIUS_M, writeSurfacePoint } from './wgs84.ts';

/**
 * Metres on the WGS84 ellipsoid from a position to the nearest point of the edges, 0 or more; degrees, any finite
 * longitude. Within a millimetre and 1e-5 of the shortest geodesic up to 50 km, 0.1 % up to 8000 km, 0.34 % anywhere.
 *
 * The nearest point is found by straight distance through space. That orders points like geodesics to within 1e-7 at 50
 * km and 1e-3 at 8000 km, but worse towards the antipode. Further out z is scaled by a / b. This makes the ellipsoid a
 * sphere (of reduced latitudes) on which no length is wrong by more than a / b, so the order is within that factor,
 * 1.0034, everywhere. The length itself comes from distanceM.
 */
export function nearestEdgeM(edges: EdgeIndex, lat: number, lng: number): number {
  if (edges.isLong) {
    // Every long edge is near until something nearer is known. These find that without a look at most edges.
    for (const limitM of LIMITS_M) {
      const distanceM = nearestEdgeWithinM(edges, lat, lng, limitM);
      if (distanceM <= limitM) return distanceM;
    }
  }
  begin(lat, lng);
  search(edges, Number.POSITIVE_INFINITY);
  if (projection.distanceM > FAR_M) {
    point.zScale = EQUATORIAL_RADIUS_M / POLAR_RADIUS_M;
    point.z *= point.zScale;
    search(edges, Number.POSITIVE_INFINITY);
  }
  return distanceM(lat, lng, projection.lat, projection.lng);
}

/**
 * The same where an edge is within `limitM`, which is less than 8000 km. Where none is, Infinity or more than `limitM`:
 * most edges are then left out without a look at them, however long they are.
 */
export function nearestEdgeWithinM(edges: EdgeIndex, lat: number, lng: number, limitM: number): number {
  begin(lat, lng);
  // A little more, since the search may leave out what is nearer by less than its error.
  search(edges, limitM * (1 + 1e-3) + 1);
  return projection.isFound ? distanceM(lat, lng, projection.lat, projection.lng) : Number.POSITIVE_INFINITY;
}

function begin(lat: number, lng: number): void {
  writeSurfacePoint(lat, lng, origin, 0);
  point.x = origin[0]!;
  point.y = origin[1]!;
  point.z = origin[2]!;
  point.zScale = 1;
  query[0] = lat;
  query[1] = lng;
}

/** Finds the nearest point of the edges, at most this far away, and writes it to `projection`. */
function search(edges: EdgeIndex, limitM: number): void {
  reach[0] = limitM;
  box.reset(query[0]!, query[1]!, limitM);
  candidateCount = 0;
  if (candidates.length < edges.edgeCount) {
    candidates = new Int32Array(edges.edgeCount);
    candidateLowsM = new Float64Array(edges.edgeCount);
  }
  const top = edges.levels.length;
  let depth = visit(edges, top, 0, runsAt(edges.edgeCount, top), 0);
  while (depth > 0) {
    depth--;
    if (stackLowsM[depth]! > reach[0]!) continue;
    const level = stackLevels[depth]! - 1;
    const first = stackRuns[depth]! << FANOUT_BITS;
    const end = Math.min(first + (1 << FANOUT_BITS), runsAt(edges.edgeCount, level));
    depth = visit(edges, level, first, end, depth);
  }

  projection.distanceM = limitM;
  projection.isFound = false;
  projection.halvings = 0;
  if (edges.isLong) putNearestLast(edges.vertices);
  // The candidates found last are usually the nearest.
  for (let k = candidateCount - 1; k >= 0; k--) {
    if (candidateLowsM[k]! <= reach[0]!) {
      improveProjection(edges.vertices, candidates[k]!, point, projection, box);
    }
  }
}

/**
 * Drops the candidates that do not pass the box, and puts one of the nearest last. Without it, thousands of long edges,
 * each a little nearer than the one before, would all be measured to the end.
 */
function putNearestLast(vertices: Float64Array): void {
  let kept = 0;
  let least = 0;
  let leastSq = Number.POSITIVE_INFINITY;
  for (let k = 0; k < candidateCount; k++) {
    const edge = candidates[k]!;
    if (!box.clip(vertices, edge, part)) continue;
    const distanceSq = box.roughDistanceSq(vertices, edge);
    if (distanceSq < leastSq) {
      leastSq = distanceSq;
      least = kept;
    }
    candidates[kept] = edge;
    candidateLowsM[kept++] = candidateLowsM[k]!;
  }
  candidateCount = kept;
  if (kept === 0) return;
  const last = kept - 1;
  const [edge, lowM] = [candidates[least]!, candidateLowsM[least]!];
  candidates[least] = candidates[last]!;
  candidateLowsM[least] = candidateLowsM[last]!;
  candidates[last] = edge;
  candidateLowsM[last] = lowM;
}

function visit(edges: EdgeIndex, level: number, from: number, to: number, depth: number): number {
  if (level > 0) return pushRuns(edges, level, from, to, depth);
  scanEdges(edges.vertices, from, to);
  return depth;
}

/** Pushes the runs that may hold something within reach onto the stack, the nearest on top; returns the new depth. */
function pushRuns(edges: EdgeIndex, level: number, from: number, to: number, depth: number): number {
  const { runs, isLong } = edges;
  const firstRun = edges.levels[level - 1]! + from;
  const start = firstRun * RUN_STRIDE;
  const count = to - from;
  const reachM = reach[0]!;
  measure(runs, start + 5, RUN_STRIDE, start + 8, count);
  let top = depth;
  for (let k = 0; k < count; k++) {
    const distanceSq = distancesSq[k]!;
    const radiusM = runs[start + k * RUN_STRIDE + 4]!;
    const limitM = reachM + radiusM;
    if (distanceSq > limitM * limitM) continue;
    if (isLong && radiusM > WIDE_M && !box.meets(edges, firstRun + k)) continue;
    const lowM = Math.sqrt(distanceSq) - radiusM;
    let slot = top++;
    for (; slot > depth && stackLowsM[slot - 1]! < lowM; slot--) {
      stackLowsM[slot] = stackLowsM[slot - 1]!;
      stackRuns[slot] = stackRuns[slot - 1]!;
    }
    stackLowsM[slot] = lowM;
    stackRuns[slot] = from + k;
  }
  for (let slot = depth; slot < top; slot++) stackLevels[slot] = level;
  return top;
}

/** Adds the edges within reach to the candidates, and reduces the reach. */
function scanEdges(vertices: Float64Array, from: number, to: number): void {
  const start = from * VERTEX_STRIDE;
  const count = to - from;
  let reachM = reach[0]!;
  measure(vertices, start + 2, VERTEX_STRIDE, start + 2 + VERTEX_STRIDE, count);
  for (let k = 0, at = start; k < count; k++, at += VERTEX_STRIDE) {
    const toleranceM = vertices[at + 5]!;
    const limitM = reachM + toleranceM;
    if (distancesSq[k]! > limitM * limitM) continue;
    const chordM = Math.sqrt(distancesSq[k]!);
    candidates[candidateCount] = at;
    candidateLowsM[candidateCount++] = chordM - toleranceM;
    if (chordM + toleranceM < reachM) reachM = chordM + toleranceM;
  }
  reach[0] = reachM;
}

/** Squared distances to consecutive segments. Without branches between them the processor computes them in parallel. */
function measure(points: Float64Array, a: number, stride: number, b: number, count: number): void {
  for (let k = 0, at = 0; k < count; k++, at += stride) {
    distancesSq[k] = chordDistanceSq(points, a + at, b + at, point);
  }
}

/** From this distance on, scaling z gives the better order. */
const FAR_M = 8e6;
/** Each costs a small part of a search without a limit. */
const LIMITS_M = [10_000, 100_000, 1_000_000];
/** A run with a wider capsule has edges of some hundred kilometres. */
const WIDE_M = 10_000;

// Scratch memory of one search: no allocation per query, and no two searches run at once.
const origin = new Float64Array(3);
const point: SpacePoint = { x: 0, y: 0, z: 0, zScale: 1 };
const projection: Projection = { distanceM: 0, isFound: false, lat: 0, lng: 0, halvings: 0 };
const box = new ReachBox();
const part = new Float64Array(2);
/** Latitude and longitude of the query. */
const query = new Float64Array(2);
/** Metres: an upper bound of the distance to the nearest point, since some edge has a point within it. */
const reach = new Float64Array(1);
let candidateCount = 0;
let candidates = new Int32Array(2048);
let candidateLowsM = new Float64Array(2048);
const distancesSq = new Float64Array(MOST_ROOTS);
/** A level leaves at most three siblings behind; 31 bits of edges have 15 levels below the roots. */
const STACK_SIZE = 64;
const stackRuns = new Int32Array(STACK_SIZE);
const stackLevels = new Int32Array(STACK_SIZE);
const stackLowsM = new Float64Array(STACK_SIZE);
