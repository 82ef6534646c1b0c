/**
 * The speed and heading that points are likely to have, computed from the distance and direction to their neighbours:
 * devices report nearly the same. The prediction is computed again when points are read, and must then be the same to
 * the last bit on every machine: so with nothing but operators and square roots, which IEEE 754 rounds correctly.
 * `Math.sin` and its kind may differ between versions of an engine.
 */

/** Along which way a value is predicted: that to the point, that from it, or both. */
export type WayPart = 'before' | 'after' | 'around';
export const WAY_PARTS: readonly WayPart[] = ['before', 'after', 'around'];

const KMH_PER_M_MS = 3_600;
/** WGS84. */
const EQUATOR_RADIUS_M = 6_378_137;
const ECCENTRICITY_SQ = 0.006_694_379_990_141_3;
const RADIANS_PER_DEGREE = 0.017_453_292_519_943_295;

/** Times in ms, ascending, and positions in degrees, of as many points. */
export class Way {
  /** From each point to the next, in metres to the east and to the north, and in ms. */
  readonly #eastM: Float64Array;
  readonly #northM: Float64Array;
  readonly #tookMs: Float64Array;
  readonly #count: number;

  constructor(timesMs: Float64Array, lats: Float64Array, lngs: Float64Array) {
    this.#count = timesMs.length;
    this.#eastM = new Float64Array(this.#count);
    this.#northM = new Float64Array(this.#count);
    this.#tookMs = new Float64Array(this.#count);
    for (let n = 0; n + 1 < this.#count; n++) {
      const lat = lats[n] as number;
      const northDeg = (lats[n + 1] as number) - lat;
      let eastDeg = (lngs[n + 1] as number) - (lngs[n] as number);
      if (eastDeg > 180) eastDeg -= 360;
      else if (eastDeg < -180) eastDeg += 360;
      const cosine = cosineOf((lat + northDeg / 2) * RADIANS_PER_DEGREE);
      // The radii of curvature in the prime vertical and in the meridian.
      const flat = 1 - ECCENTRICITY_SQ * (1 - cosine * cosine);
      const normalM = EQUATOR_RADIUS_M / Math.sqrt(flat);
      const meridianM = (normalM * (1 - ECCENTRICITY_SQ)) / flat;
      this.#eastM[n] = eastDeg * RADIANS_PER_DEGREE * normalM * cosine;
      this.#northM[n] = northDeg * RADIANS_PER_DEGREE * meridianM;
      this.#tookMs[n] = (timesMs[n + 1] as number) - (timesMs[n] as number);
    }
  }

  /** In km/h. */
  speedsKmh(part: WayPart): Float64Array {
    const speeds = new Float64Array(this.#count);
    for (let n = 0; n + 1 < this.#count; n++) {
      const eastM = this.#eastM[n] as number;
      const northM = this.#northM[n] as number;
      speeds[n] = (Math.sqrt(eastM * eastM + northM * northM) / (this.#tookMs[n] as number)) * KMH_PER_M_MS;
    }
    return this.#combine(part, speeds, 0.5);
  }

  /** In degrees clockwise from north, 0 and 360 included. NaN where the device does not move. */
  headings(part: WayPart): Float64Array {
    const eastM = this.#combine(part, this.#eastM, 1);
    const northM = this.#combine(part, this.#northM, 1);
    return eastM.map((east, n) => bearingOf(east, northM[n] as number));
  }

  /** What each point has of values of the ways to the next one. */
  #combine(part: WayPart, ofNext: Float64Array, share: number): Float64Array {
    if (part === 'after') return ofNext;
    const values = new Float64Array(this.#count);
    if (part === 'before') {
      values.set(ofNext.subarray(0, Math.max(0, this.#count - 1)), 1);
      return values;
    }
    for (let n = 1; n < this.#count; n++)
      values[n] = ((ofNext[n] as number) + (ofNext[n - 1] as number)) * share;
    return values;
  }
}

/** Taylor's series, exact to 10^-8 up to a right angle; a product is faster than a quotient. */
function cosineOf(radians: number): number {
  const sq = radians * radians;
  return (
    1 -
    sq *
      (1 / 2 -
        sq * (1 / 24 - sq * (1 / 720 - sq * (1 / 40_320 - sq * (1 / 3_628_800 - sq * (1 / 479_001_600))))))
  );
}

const DEGREES_PER_RADIAN = 57.295_779_513_082_32;

/** Exact to a thousandth of a degree (Abramowitz and Stegun, 4.4.47). */
function bearingOf(east: number, north: number): number {
  const [x, y] = [Math.abs(east), Math.abs(north)];
  const slope = x < y ? x / y : y / x;
  const sq = slope * slope;
  const angle =
    slope *
    (0.999866 + sq * (-0.3302995 + sq * (0.180141 + sq * (-0.085133 + sq * 0.0208351)))) *
    DEGREES_PER_RADIAN;
  const fromNorth = x < y ? angle : 90 - angle;
  const fromNorthUp = north < 0 ? 180 - fromNorth : fromNorth;
  return east < 0 ? 360 - fromNorthUp : fromNorthUp;
}
