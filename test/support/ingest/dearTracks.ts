import type { LatLng } from '../../../src/geo/wgs84.ts';

/** Metres of a degree of latitude, and of longitude on the equator. */
const LAT_DEGREE_M = 110_574;
const LNG_DEGREE_M = 111_320;
/** So far beyond the buffer that near the equator only exact distances tell that the place is outside. */
const BEYOND_M = 0.02;

/**
 * The body of a track that takes as long to evaluate at `place` as a track can, and for distances anywhere: it goes to and
 * fro beside the place, all its edges are nearly the same, and each passes a hair's breadth beyond the buffer.
 */
export function dearTrack(place: LatLng, points = 2_000, bufferM = 50) {
  const northDeg = (metres: number) => place.lat + metres / LAT_DEGREE_M;
  const eastDeg = (metres: number) => place.lng + metres / LNG_DEGREE_M;
  return {
    name: 'Dear',
    type: 'polyline',
    buffer_m: bufferM,
    points: Array.from({ length: points }, (_, n) => ({
      // The first edge passes on the other side, far away, so the place is in the box of the track.
      lat: northDeg(n === 0 ? -10 * bufferM : bufferM + BEYOND_M + (n * 0.01) / points),
      lng: eastDeg(n % 2 === 0 ? -900 : 900),
    })),
  } as const;
}
