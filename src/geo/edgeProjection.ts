import { VERTEX_STRIDE } from './edgeIndex.ts';
import type { ReachBox } from './reachBox.ts';
import {
  chordDistanceSq,
  chordFraction,
  ECCENTRICITY_SQUARED,
  type SpacePoint,
  writeSurfacePoint,
} from './surfacePoint.ts';
import { EQUATORIAL_RADIUS_M, RADIANS_PER_DEGREE } from './wgs84.ts';

/** The nearest point of the edges so far: its distance through space, and its position in degrees. */
export interface Projection {
  /** At first the distance within which a point is looked for. */
  distanceM: number;
  isFound: boolean;
  lat: number;
  lng: number;
  /** How many pieces of edges this search has halved; see allowedError. */
  halvings: number;
}

/**
 * Moves the projection to the edge that starts at `edge` (an offset into the vertices) if that is nearer to the point.
 * `box` is the one of this search; it is shrunk to the projection.
 *
 * An edge is a curve in space. When its tolerance is small, the nearest point of its chord is close to the nearest
 * point of the curve, and one Newton step leads there. Of a longer edge only the part in the box matters. That part is
 * halved, which quarters the tolerance, as long as a half may hold something nearer.
 */
export function improveProjection(
  vertices: Float64Array,
  edge: number,
  point: SpacePoint,
  projection: Projection,
  box: ReachBox,
): void {
  const edgeToleranceM = vertices[edge + 5]!;
  fractions[0] = 0;
  fractions[1] = 1;
  partToleranceM[0] = edgeToleranceM;
  if (edgeToleranceM > STRAIGHT_M) {
    box.shrink(projection.distanceM);
    if (!box.clip(vertices, edge, fractions)) return;
    const share = fractions[1]! - fractions[0]!;
    partToleranceM[0] = edgeToleranceM * share * share + ROUNDING_M;
  }
  writeCorner(vertices, edge, 0);
  writeCorner(vertices, edge, 1);
  const toleranceM = partToleranceM[0]!;
  const chordM = Math.sqrt(chordDistanceSq(corners, 0, 3, point));
  if (cannotImprove(chordM, toleranceM, projection)) return;
  if (isStraight(chordM, toleranceM, projection)) improveAt(vertices, edge, 0, 1, point, projection);
  else halve(vertices, edge, 0, 1, 0, point, projection);
}

/** Where the part begins (0) or ends (1). */
function writeCorner(vertices: Float64Array, edge: number, end: number): void {
  const t = fractions[end]!;
  if (t === 0 || t === 1) {
    const at = edge + 2 + t * VERTEX_STRIDE;
    for (let k = 0; k < 3; k++) corners[3 * end + k] = vertices[at + k]!;
  } else {
    writeSurfacePoint(latAt(vertices, edge, t), lngAt(vertices, edge, t), corners, 3 * end);
  }
}

// A piece of an edge is known by its two corners. No fraction or length is passed from function to function: V8 puts
// each number that is passed, unless it is a small integer, into memory of its own.

/** Halves the piece between the corners a and b, which `depth` halvings have led to. */
function halve(
  vertices: Float64Array,
  edge: number,
  a: number,
  b: number,
  depth: number,
  point: SpacePoint,
  projection: Projection,
): void {
  const m = depth + 2;
  const middle = (fractions[a]! + fractions[b]!) / 2;
  fractions[m] = middle;
  writeSurfacePoint(latAt(vertices, edge, middle), lngAt(vertices, edge, middle), corners, 3 * m);
  projection.halvings++;

  const first = 2 * depth;
  const second = first + 1;
  chordsSq[first] = chordDistanceSq(corners, 3 * a, 3 * m, point);
  chordsSq[second] = chordDistanceSq(corners, 3 * m, 3 * b, point);
  if (chordsSq[first]! <= chordsSq[second]!) {
    visitHalf(vertices, edge, a, m, first, point, projection);
    visitHalf(vertices, edge, m, b, second, point, projection);
  } else {
    visitHalf(vertices, edge, m, b, second, point, projection);
    visitHalf(vertices, edge, a, m, first, point, projection);
  }
}

/** `half` is 2 × the depth of the piece that was halved, and 1 more for its second half. */
function visitHalf(
  vertices: Float64Array,
  edge: number,
  a: number,
  b: number,
  half: number,
  point: SpacePoint,
  projection: Projection,
): void {
  const depth = (half >> 1) + 1;
  const chordM = Math.sqrt(chordsSq[half]!);
  const toleranceM = partToleranceM[0]! * TOLERANCE_SHARES[depth]!;
  if (cannotImprove(chordM, toleranceM, projection)) return;
  if (depth === MAX_DEPTH || isStraight(chordM, toleranceM, projection)) {
    improveAt(vertices, edge, a, b, point, projection);
  } else {
    halve(vertices, edge, a, b, depth, point, projection);
  }
}

function cannotImprove(chordM: number, toleranceM: number, projection: Projection): boolean {
  return chordM - toleranceM >= projection.distanceM * (1 - allowedError(projection));
}

/** Whether the chord of a piece and one Newton step are enough: its tolerance is small, or small for that distance. */
function isStraight(chordM: number, toleranceM: number, projection: Projection): boolean {
  return toleranceM <= STRAIGHT_M || toleranceM <= allowedError(projection) * chordM;
}

/**
 * The relative error that is allowed. Thousands of sides around the globe, all equally far, would all have to be halved
 * to the end. After more halvings than an ordinary area needs, a larger error is allowed.
 */
function allowedError(projection: Projection): number {
  return projection.halvings < FINE_HALVINGS ? FINE_ERROR : COARSE_ERROR;
}

/**
 * Moves the projection to where one Newton step along the curve leads, if that is nearer. The step begins at the nearest
 * point of the chord between the corners a and b, and stays within their fractions.
 */
function improveAt(
  vertices: Float64Array,
  edge: number,
  a: number,
  b: number,
  point: SpacePoint,
  projection: Projection,
): void {
  const { x, y, z, zScale } = point;
  const from = fractions[a]!;
  const to = fractions[b]!;
  const t = from + chordFraction(corners, 3 * a, 3 * b, point) * (to - from);
  const phi = latAt(vertices, edge, t) * RADIANS_PER_DEGREE;
  const lambda = lngAt(vertices, edge, t) * RADIANS_PER_DEGREE;
  const sinPhi = Math.sin(phi);
  const cosPhi = Math.cos(phi);
  const sinLambda = Math.sin(lambda);
  const cosLambda = Math.cos(lambda);
  const w = 1 - ECCENTRICITY_SQUARED * sinPhi * sinPhi;
  const normal = EQUATORIAL_RADIUS_M / Math.sqrt(w);
  const polar = normal * (1 - ECCENTRICITY_SQUARED);

  // From the query point to the curve, and the curve's derivative by t.
  const rx = normal * cosPhi * cosLambda - x;
  const ry = normal * cosPhi * sinLambda - y;
  const rz = polar * sinPhi * zScale - z;
  const northward =
    (polar / w) * (vertices[edge + VERTEX_STRIDE + 1]! - vertices[edge + 1]!) * RADIANS_PER_DEGREE;
  const eastward = normal * cosPhi * (vertices[edge + VERTEX_STRIDE]! - vertices[edge]!) * RADIANS_PER_DEGREE;
  const tx = -northward * sinPhi * cosLambda - eastward * sinLambda;
  const ty = -northward * sinPhi * sinLambda + eastward * cosLambda;
  const tz = northward * cosPhi * zScale;

  const slope = rx * tx + ry * ty + rz * tz;
  const speedSq = tx * tx + ty * ty + tz * tz;
  const nearest = speedSq > 0 ? Math.min(to, Math.max(from, t - slope / speedSq)) : t;
  const step = nearest - t;
  const distanceSq = rx * rx + ry * ry + rz * rz + step * (2 * slope + step * speedSq);
  const distanceM = Math.sqrt(Math.max(0, distanceSq));
  if (distanceM >= projection.distanceM) return;
  projection.distanceM = distanceM;
  projection.isFound = true;
  projection.lat = latAt(vertices, edge, nearest);
  projection.lng = lngAt(vertices, edge, nearest);
}

/** Exact at both ends. */
function latAt(vertices: Float64Array, edge: number, t: number): number {
  const end = vertices[edge + VERTEX_STRIDE + 1]!;
  return t === 1 ? end : vertices[edge + 1]! + t * (end - vertices[edge + 1]!);
}

function lngAt(vertices: Float64Array, edge: number, t: number): number {
  const end = vertices[edge + VERTEX_STRIDE]!;
  return t === 1 ? end : vertices[edge]! + t * (end - vertices[edge]!);
}

/** An edge with this tolerance is some kilometres long: one Newton step is then accurate to a millimetre. */
const STRAIGHT_M = 0.5;
const FINE_ERROR = 1e-5;
/** Less than the 0.05 % that are promised for distances. */
const COARSE_ERROR = 4e-4;
/** About a quarter of a millisecond of work. */
const FINE_HALVINGS = 2000;
/** The longest edge, half the equator, has a tolerance of 8000 km; twelve halvings bring that under half a metre. */
const MAX_DEPTH = 16;
/** Each halving quarters the tolerance. */
const TOLERANCE_SHARES = Float64Array.from({ length: MAX_DEPTH + 1 }, (_, depth) => 4 ** -depth);

/** Of the ends of a part. */
const ROUNDING_M = 1e-7;

// Scratch memory of one search. The corners are the ends of the part, then the middle of each halving: in space, and as
// a fraction of the edge.
const corners = new Float64Array(3 * (MAX_DEPTH + 2));
const fractions = new Float64Array(MAX_DEPTH + 2);
/** Of the part of the edge that is looked at. */
const partToleranceM = new Float64Array(1);
/** Of both halves of each depth. */
const chordsSq = new Float64Array(2 * MAX_DEPTH);
