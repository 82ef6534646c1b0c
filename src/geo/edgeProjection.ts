import type { EdgeIndex, SpacePoint } from './edgeIndex.ts';
import { chordDistanceSq, RUN_STRIDE, STRIP_STRIDE, VERTEX_STRIDE } from './edgeIndex.ts';
import {
  ECCENTRICITY_SQUARED,
  EQUATORIAL_RADIUS_M,
  POLAR_RADIUS_M,
  RADIANS_PER_DEGREE,
  writeSurfacePoint,
} from './wgs84.ts';

/** The nearest point of the edges so far: its distance through space, and its position in degrees. */
export interface Projection {
  /** At first the limit of the search. */
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

/** Where the point of a chord that is nearest to `point` is: 0 at a, 1 at b. */
export function chordFraction(points: Float64Array, a: number, b: number, point: SpacePoint): number {
  const { x, y, z, zScale } = point;
  const ex = points[b]! - points[a]!;
  const ey = points[b + 1]! - points[a + 1]!;
  const ez = (points[b + 2]! - points[a + 2]!) * zScale;
  const along = (x - points[a]!) * ex + (y - points[a + 1]!) * ey + (z - points[a + 2]! * zScale) * ez;
  return Math.min(1, Math.max(0, along / (ex * ex + ey * ey + ez * ez + NOT_ZERO)));
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
/** The tolerance of the part of the edge that is inside the box. */
const partToleranceM = new Float64Array(1);
/** Of both halves of each depth. */
const chordsSq = new Float64Array(2 * MAX_DEPTH);

/**
 * The box in degrees around a query that holds everything within a straight distance. An edge is straight in longitude
 * and latitude, so clipping it by the box finds the part that may be that near, without following the edge.
 *
 * Divide x and y by a and z by b: the ellipsoid becomes the unit sphere of reduced latitudes, on which no straight
 * distance is longer than 1 / b of what it was. There the extent of a circle is exact, and a geodetic latitude changes
 * by at most a / b times the reduced one.
 */
export class ReachBox {
  /** lat, lng, the distance in metres that is asked for and the one of the box, half its height and half its width. */
  readonly #state = new Float64Array(6);

  /** Starts over, with what is within `distanceM`. */
  reset(lat: number, lng: number, distanceM: number): void {
    const state = this.#state;
    state[LAT] = lat;
    state[LNG] = lng;
    state[ASKED_M] = distanceM;
    state[DISTANCE_M] = Number.POSITIVE_INFINITY;
    state[HALF_HEIGHT] = Number.POSITIVE_INFINITY;
    state[HALF_WIDTH] = Number.POSITIVE_INFINITY;
  }

  /** From now on only what is within `distanceM` matters, at most what was asked for before. */
  shrink(distanceM: number): void {
    this.#state[ASKED_M] = distanceM;
  }

  /** Whether a run of a long index may meet the box: by its own box, and by its strip. */
  meets({ runs, strips }: EdgeIndex, run: number): boolean {
    const state = this.#fitted();
    const halfHeight = state[HALF_HEIGHT]!;
    const halfWidth = state[HALF_WIDTH]!;
    const lat = state[LAT]!;
    const at = run * RUN_STRIDE;
    if (runs[at + 1]! > lat + halfHeight || runs[at + 3]! < lat - halfHeight) return false;
    const middleLng = (runs[at]! + runs[at + 2]!) / 2;
    const reach = halfWidth + (runs[at + 2]! - runs[at]!) / 2;
    // From half a turn on more than one copy of the query may be near.
    if (reach >= 180) return true;
    const east = toHalfTurn(state[LNG]! - middleLng);
    if (Math.abs(east) > reach) return false;
    const strip = run * STRIP_STRIDE;
    const across = strips[strip]! * (middleLng + east) + strips[strip + 1]! * lat;
    const slack = Math.abs(strips[strip]!) * halfWidth + Math.abs(strips[strip + 1]!) * halfHeight;
    return across >= strips[strip + 2]! - slack && across <= strips[strip + 3]! + slack;
  }

  /**
   * The part of an edge inside the box, as two fractions of it in `part`. False when there is none. Where the box
   * is as wide as a hemisphere, and of an edge along a pole, longitudes leave nothing out.
   */
  clip(vertices: Float64Array, edge: number, part: Float64Array): boolean {
    const state = this.#fitted();
    const dLat = vertices[edge + VERTEX_STRIDE + 1]! - vertices[edge + 1]!;
    const dLng = vertices[edge + VERTEX_STRIDE]! - vertices[edge]!;
    const height = Math.abs(dLat);
    const width = Math.abs(dLng);
    const halfHeight = state[HALF_HEIGHT]!;
    const halfWidth = state[HALF_WIDTH]!;
    // The query, seen from the middle of the edge.
    const north = state[LAT]! - vertices[edge + 1]! - dLat / 2;
    if (Math.abs(north) > halfHeight + height / 2) return false;
    let from = 0;
    let to = 1;
    if (halfWidth <= 90 && width <= 180) {
      const east = toHalfTurn(state[LNG]! - vertices[edge]! - dLng / 2);
      if (Math.abs(east) > halfWidth + width / 2) return false;
      // The line of the edge passes the box: three separating axes exclude most edges without a division.
      if (Math.abs(east * dLat - north * dLng) > halfWidth * height + halfHeight * width) return false;
      if (width > 0) {
        from = Math.max(from, 0.5 + east / dLng - halfWidth / width);
        to = Math.min(to, 0.5 + east / dLng + halfWidth / width);
      }
    }
    if (height > 0) {
      from = Math.max(from, 0.5 + north / dLat - halfHeight / height);
      to = Math.min(to, 0.5 + north / dLat + halfHeight / height);
    }
    part[0] = from;
    part[1] = to;
    return from <= to;
  }

  /**
   * About how far an edge passes the query, squared, in degrees of latitude: on the flat map around the query. Good enough
   * to choose an edge to begin with.
   */
  roughDistanceSq(vertices: Float64Array, edge: number): number {
    const state = this.#state;
    const shrinking = Math.cos(state[LAT]! * RADIANS_PER_DEGREE);
    const dx = (vertices[edge + VERTEX_STRIDE]! - vertices[edge]!) * shrinking;
    const dy = vertices[edge + VERTEX_STRIDE + 1]! - vertices[edge + 1]!;
    const x = toHalfTurn(state[LNG]! - (vertices[edge]! + vertices[edge + VERTEX_STRIDE]!) / 2) * shrinking;
    const y = state[LAT]! - vertices[edge + 1]! - dy / 2;
    const t = Math.max(-0.5, Math.min(0.5, (x * dx + y * dy) / (dx * dx + dy * dy + NOT_ZERO)));
    return (x - t * dx) ** 2 + (y - t * dy) ** 2;
  }

  /** Most searches need no box, so it is computed by those that do. */
  #fitted(): Float64Array {
    const state = this.#state;
    const askedM = state[ASKED_M]!;
    if (askedM > WORTH_SHRINKING * state[DISTANCE_M]! || askedM > WIDEST_M) return state;
    state[DISTANCE_M] = askedM;
    const chord = (askedM + PAD_M) / POLAR_RADIUS_M;
    const angle = 2 * Math.asin(chord / 2);
    state[HALF_HEIGHT] = (angle * EQUATORIAL_RADIUS_M) / POLAR_RADIUS_M / RADIANS_PER_DEGREE;
    const phi = state[LAT]! * RADIANS_PER_DEGREE;
    const z = (POLAR_RADIUS_M / EQUATORIAL_RADIUS_M) * Math.sin(phi);
    const cosine = Math.cos(phi);
    const ratio = (chord * Math.sqrt(1 - (chord * chord) / 4) * Math.sqrt(z * z + cosine * cosine)) / cosine;
    if (ratio >= 0 && ratio < WIDEST_SINE)
      state[HALF_WIDTH] = Math.asin(ratio) / RADIANS_PER_DEGREE + PAD_DEGREES;
    return state;
  }
}

/** The same longitude between -180 and 180. */
function toHalfTurn(lng: number): number {
  return lng >= -180 && lng <= 180 ? lng : lng - 360 * Math.round(lng / 360);
}

const [LAT, LNG, ASKED_M, DISTANCE_M, HALF_HEIGHT, HALF_WIDTH] = [0, 1, 2, 3, 4, 5] as const;
/** A box for hardly less costs more than it excludes. */
const WORTH_SHRINKING = 0.9;
/** A larger distance reaches nearly half of the sphere. */
const WIDEST_M = 1.4 * POLAR_RADIUS_M;
const WIDEST_SINE = 0.999;
/** More than the rounding of positions in space, and of fractions of an edge. */
const PAD_M = 0.01;
const PAD_DEGREES = 1e-9;
const NOT_ZERO = 1e-300;
