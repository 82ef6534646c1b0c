import type { LatLng } from '../../geo/wgs84.ts';

/**
 * A town of straight streets crossing at right angles, turned by a seeded angle around its centre. Streets run
 * along columns and rows of a plane in metres; only latLng() knows where on Earth that is. Immutable once made.
 */
export interface Streets {
  /** Streets in each direction; junctions are (column, row) with both from 0 to lines - 1. */
  readonly lines: number;
  /** Where the streets lie: metres from the centre, rising. columnsM are eastings, rowsM northings, before turning. */
  readonly columnsM: Float64Array;
  readonly rowsM: Float64Array;
  readonly columnLimitsKmh: Float64Array;
  readonly rowLimitsKmh: Float64Array;
  /** Degrees clockwise from true north of the direction of the columns. */
  readonly turnDeg: number;
  /** A point of the plane in degrees. The scale is exact at the centre and off by 0.1 % at the edge in middle latitudes. */
  latLng(eastM: number, northM: number): LatLng;
}

const LINES = 48;
const SHORTEST_BLOCK_M = 120;
const LONGEST_BLOCK_M = 250;
/** Every fourth street is an avenue, every second of them a fast one. */
const AVENUE_EVERY = 4;
const STREET_KMH = 30;
const AVENUE_KMH = 50;
const FAST_AVENUE_KMH = 70;

/** The town of a seed around a centre that is not within a degree of a pole: about 9 km wide. */
export function createStreets(seed: number, centre: LatLng): Streets {
  const random = { state: seed };
  const turnDeg = 5 + 35 * nextRandom(random);
  return {
    lines: LINES,
    columnsM: offsets(random),
    rowsM: offsets(random),
    columnLimitsKmh: limits(),
    rowLimitsKmh: limits(),
    turnDeg,
    latLng: turnedProjection(centre, turnDeg),
  };
}

/** A source of random numbers: its whole state is one number, so that it can be copied and kept anywhere. */
export interface RandomState {
  state: number;
}

/** The next number of a source, from 0 up to but not 1 (T. Ettinger's mulberry32). */
export function nextRandom(random: RandomState): number {
  random.state = (random.state + 0x6d2b79f5) | 0;
  let mixed = Math.imul(random.state ^ (random.state >>> 15), random.state | 1);
  mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
  return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
}

/** True for a street that is an avenue; lights stand where two of them cross. */
export function isAvenue(limitKmh: number): boolean {
  return limitKmh > STREET_KMH;
}

function offsets(random: RandomState): Float64Array {
  const offsetsM = new Float64Array(LINES);
  for (let line = 1; line < LINES; line++) {
    const blockM = SHORTEST_BLOCK_M + (LONGEST_BLOCK_M - SHORTEST_BLOCK_M) * nextRandom(random);
    offsetsM[line] = (offsetsM[line - 1] as number) + blockM;
  }
  const middleM = (offsetsM[LINES - 1] as number) / 2;
  return offsetsM.map((offsetM) => offsetM - middleM);
}

function limits(): Float64Array {
  return Float64Array.from({ length: LINES }, (_, line) => {
    if (line % AVENUE_EVERY !== 0) return STREET_KMH;
    return line % (2 * AVENUE_EVERY) === 0 ? FAST_AVENUE_KMH : AVENUE_KMH;
  });
}

/** The plane turned by turnDeg and put on the ellipsoid at the centre (length of a degree there, WGS84). */
function turnedProjection(centre: LatLng, turnDeg: number): Streets['latLng'] {
  const phi = (centre.lat * Math.PI) / 180;
  const turn = (turnDeg * Math.PI) / 180;
  const sin = Math.sin(turn);
  const cos = Math.cos(turn);
  const degreeNorthM = 111_132.954 - 559.822 * Math.cos(2 * phi) + 1.175 * Math.cos(4 * phi);
  const degreeEastM = 111_412.84 * Math.cos(phi) - 93.5 * Math.cos(3 * phi) + 0.118 * Math.cos(5 * phi);
  return (eastM, northM) => {
    const lng = centre.lng + (eastM * cos + northM * sin) / degreeEastM;
    return {
      lat: centre.lat + (northM * cos - eastM * sin) / degreeNorthM,
      lng: lng > 180 ? lng - 360 : lng < -180 ? lng + 360 : lng,
    };
  };
}
