import { VERTEX_STRIDE } from '../ring/edgeIndex.ts';
import { chordDistanceSq, chordFraction, ECCENTRICITY_SQUARED, writeSurfacePoint } from './surfacePoint.ts';
import { EQUATORIAL_RADIUS_M, RADIANS_PER_DEGREE } from './wgs84.ts';

/** A query point in space. Its z is multiplied by zScale already, the z of the edges is not (see nearestEdge.ts). */
export interface SpacePoint {
  x: number;
  y: number;
  z: number;
  zScale: number;
}

/** The nearest point of the edges so far: its distance through space, and its position in degrees. */
export interface Projection {
  distanceM: number;
  lat: number;
  lng: number;
  /** How many pieces of edges this search has halved; see allowedError. */
  halvings: number;
}

/**
 * Moves the projection to the edge that starts at `edge` (an offset into the vertices) if that is nearer to the point.
 *
 * An edge is a curve in space. When its tolerance is small, the nearest point of its chord is close to the nearest
 * point of the curve, and one Newton step leads there. A longer edge is halved, which quarters the tolerance, as long
 * as a half may hold something nearer.
 */
export function improveProjection(
  vertices: Float64Array,
  edge: number,
  point: SpacePoint,
  projection: Projection,
): void {
  const a = edge + 2;
  const b = a + VERTEX_STRIDE;
  const { x, y, z, zScale } = point;
  const toleranceM = vertices[edge + 5]!;
  const chordM = Math.sqrt(chordDistanceSq(vertices, a, b, x, y, z, zScale));
  if (cannotImprove(chordM, toleranceM, projection)) return;
  if (isStraight(chordM, toleranceM, projection)) {
    improveAt(vertices, edge, chordFraction(vertices, a, b, x, y, z, zScale), 0, 1, point, projection);
    return;
  }
  for (let k = 0; k < 3; k++) {
    corners[k] = vertices[a + k]!;
    corners[3 + k] = vertices[b + k]!;
  }
  halve(vertices, edge, { from: 0, to: 1, a: 0, b: 3, toleranceM, depth: 0 }, point, projection);
}

/** Part of an edge, from one fraction of it to another; a and b are the offsets of its ends in `corners`. */
interface Piece {
  readonly from: number;
  readonly to: number;
  readonly a: number;
  readonly b: number;
  readonly toleranceM: number;
  readonly depth: number;
}

function halve(
  vertices: Float64Array,
  edge: number,
  piece: Piece,
  point: SpacePoint,
  projection: Projection,
): void {
  const { a, b, from, to } = piece;
  const depth = piece.depth + 1;
  const toleranceM = piece.toleranceM / 4;
  const middle = (from + to) / 2;
  const m = 3 * (depth + 1);
  writeSurfacePoint(latAt(vertices, edge, middle), lngAt(vertices, edge, middle), corners, m);
  projection.halvings++;

  const { x, y, z, zScale } = point;
  const firstM = Math.sqrt(chordDistanceSq(corners, a, m, x, y, z, zScale));
  const secondM = Math.sqrt(chordDistanceSq(corners, m, b, x, y, z, zScale));
  const first: Piece = { from, to: middle, a, b: m, toleranceM, depth };
  const second: Piece = { from: middle, to, a: m, b, toleranceM, depth };
  for (const half of firstM <= secondM ? [first, second] : [second, first]) {
    const chordM = half === first ? firstM : secondM;
    if (cannotImprove(chordM, toleranceM, projection)) continue;
    if (depth === MAX_DEPTH || isStraight(chordM, toleranceM, projection)) {
      const t = chordFraction(corners, half.a, half.b, x, y, z, zScale);
      improveAt(vertices, edge, half.from + t * (half.to - half.from), half.from, half.to, point, projection);
    } else {
      halve(vertices, edge, half, point, projection);
    }
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
 * Moves the projection to where one Newton step along the curve from fraction t leads, within two fractions, if nearer.
 */
function improveAt(
  vertices: Float64Array,
  edge: number,
  t: number,
  from: number,
  to: number,
  point: SpacePoint,
  projection: Projection,
): void {
  const { x, y, z, zScale } = point;
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
const corners = new Float64Array(3 * (MAX_DEPTH + 2));
