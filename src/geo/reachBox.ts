import { type EdgeIndex, RUN_STRIDE, STRIP_STRIDE, VERTEX_STRIDE } from './edgeIndex.ts';
import { EQUATORIAL_RADIUS_M, POLAR_RADIUS_M, RADIANS_PER_DEGREE } from './wgs84.ts';

/**
 * The box in degrees around a query that holds everything within a straight distance. An edge is straight in longitude
 * and latitude, so the part of it that may be that near is found without following the edge: it is what lies in the box.
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

  /** Whether anything of a run of a long index may lie in the box: by its own box, and by its strip. */
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
   * The part of an edge that lies in the box, as two fractions of it in `part`. False when there is none. Where the box
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
/** What is within a larger distance lies in nearly half of the sphere. */
const WIDEST_M = 1.4 * POLAR_RADIUS_M;
const WIDEST_SINE = 0.999;
/** More than the rounding of positions in space, and of fractions of an edge. */
const PAD_M = 0.01;
const PAD_DEGREES = 1e-9;
const NOT_ZERO = 1e-300;
