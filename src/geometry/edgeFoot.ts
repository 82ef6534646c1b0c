import { VERTEX_STRIDE } from './edgeIndex.ts';
import { chordDistanceSq, chordFraction, ECCENTRICITY_SQUARED, writeSurfacePoint } from './surfacePoint.ts';
import { EQUATORIAL_RADIUS_M, RADIANS_PER_DEGREE } from './wgs84.ts';

/** A query point in space; z has been multiplied by zScale, and the edges' z will be (see nearestEdge.ts). */
export interface SpacePoint {
  x: number;
  y: number;
  z: number;
  zScale: number;
}

/** The nearest point of the edges so far: how far through space, and where it is, in degrees. */
export interface Foot {
  distanceM: number;
  lat: number;
  lng: number;
  /** Work done in one search; see share(). */
  halvings: number;
}

/**
 * Moves the foot to the edge that starts at `edge` (an offset into the vertices) if that comes nearer to the point.
 *
 * An edge is a curve in space. The foot on its chord is close to the foot on the curve when the slack is small, and
 * one Newton step takes it there; a longer edge is halved, which quarters the slack, as long as a half may still
 * hold something nearer.
 */
export function improveFoot(vertices: Float64Array, edge: number, point: SpacePoint, foot: Foot): void {
  const a = edge + 2;
  const b = a + VERTEX_STRIDE;
  const { x, y, z, zScale } = point;
  const slackM = vertices[edge + 5]!;
  const chordM = Math.sqrt(chordDistanceSq(vertices, a, b, x, y, z, zScale));
  if (cannotImprove(chordM, slackM, foot)) return;
  if (isStraight(chordM, slackM, foot)) {
    land(vertices, edge, chordFraction(vertices, a, b, x, y, z, zScale), 0, 1, point, foot);
    return;
  }
  for (let k = 0; k < 3; k++) {
    corners[k] = vertices[a + k]!;
    corners[3 + k] = vertices[b + k]!;
  }
  halve(vertices, edge, { from: 0, to: 1, a: 0, b: 3, slackM, depth: 0 }, point, foot);
}

/** Part of an edge, from one fraction of it to another; a and b are where its ends stand in `corners`. */
interface Piece {
  readonly from: number;
  readonly to: number;
  readonly a: number;
  readonly b: number;
  readonly slackM: number;
  readonly depth: number;
}

function halve(vertices: Float64Array, edge: number, piece: Piece, point: SpacePoint, foot: Foot): void {
  const { a, b, from, to } = piece;
  const depth = piece.depth + 1;
  const slackM = piece.slackM / 4;
  const middle = (from + to) / 2;
  const m = 3 * (depth + 1);
  writeSurfacePoint(latAt(vertices, edge, middle), lngAt(vertices, edge, middle), corners, m);
  foot.halvings++;

  const { x, y, z, zScale } = point;
  const firstM = Math.sqrt(chordDistanceSq(corners, a, m, x, y, z, zScale));
  const secondM = Math.sqrt(chordDistanceSq(corners, m, b, x, y, z, zScale));
  const first: Piece = { from, to: middle, a, b: m, slackM, depth };
  const second: Piece = { from: middle, to, a: m, b, slackM, depth };
  for (const half of firstM <= secondM ? [first, second] : [second, first]) {
    const chordM = half === first ? firstM : secondM;
    if (cannotImprove(chordM, slackM, foot)) continue;
    if (depth === MAX_DEPTH || isStraight(chordM, slackM, foot)) {
      const t = chordFraction(corners, half.a, half.b, x, y, z, zScale);
      land(vertices, edge, half.from + t * (half.to - half.from), half.from, half.to, point, foot);
    } else {
      halve(vertices, edge, half, point, foot);
    }
  }
}

function cannotImprove(chordM: number, slackM: number, foot: Foot): boolean {
  return chordM - slackM >= foot.distanceM * (1 - share(foot));
}

/** Whether a piece can be taken for its chord, but for one Newton step: it strays little, or little for that distance. */
function isStraight(chordM: number, slackM: number, foot: Foot): boolean {
  return slackM <= STRAIGHT_M || slackM <= share(foot) * chordM;
}

/**
 * The relative error that may be made. Thousands of sides round the globe, all equally far, would have to be halved
 * to the end each; past a number that no ordinary area needs, a less fine one has to do.
 */
function share(foot: Foot): number {
  return foot.halvings < FINE_HALVINGS ? FINE_SHARE : COARSE_SHARE;
}

/** One Newton step along the curve from fraction t, kept between two fractions; the foot moves there if it is nearer. */
function land(
  vertices: Float64Array,
  edge: number,
  t: number,
  from: number,
  to: number,
  point: SpacePoint,
  foot: Foot,
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
  const landing = speedSq > 0 ? Math.min(to, Math.max(from, t - slope / speedSq)) : t;
  const step = landing - t;
  const distanceSq = rx * rx + ry * ry + rz * rz + step * (2 * slope + step * speedSq);
  const distanceM = Math.sqrt(Math.max(0, distanceSq));
  if (distanceM >= foot.distanceM) return;
  foot.distanceM = distanceM;
  foot.lat = latAt(vertices, edge, landing);
  foot.lng = lngAt(vertices, edge, landing);
}

/** Both ends are met exactly. */
function latAt(vertices: Float64Array, edge: number, t: number): number {
  const end = vertices[edge + VERTEX_STRIDE + 1]!;
  return t === 1 ? end : vertices[edge + 1]! + t * (end - vertices[edge + 1]!);
}

function lngAt(vertices: Float64Array, edge: number, t: number): number {
  const end = vertices[edge + VERTEX_STRIDE]!;
  return t === 1 ? end : vertices[edge]! + t * (end - vertices[edge]!);
}

/** An edge straying no more than this is some kilometres long: one Newton step is then good to a millimetre. */
const STRAIGHT_M = 0.5;
const FINE_SHARE = 1e-5;
/** Below the 0.05 % that distances are promised to. */
const COARSE_SHARE = 4e-4;
/** About a quarter of a millisecond of work. */
const FINE_HALVINGS = 2000;
/** The longest edge, half the equator, strays by 8000 km; twelve halvings bring that under half a metre. */
const MAX_DEPTH = 16;
const corners = new Float64Array(3 * (MAX_DEPTH + 2));
