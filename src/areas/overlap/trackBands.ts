import { corridorBounds } from '../../geo/bounds.ts';
import { unwrapLine } from '../../geo/path.ts';
import { RADIANS_PER_DEGREE } from '../../geo/wgs84.ts';
import type { Steps } from '../../lib/workTurns.ts';
import { type Track, toLatLngs } from '../area.ts';

/** Latitudes, from south to north. */
export type Band = readonly [south: number, north: number];

/** A straight line on the plane of longitude and latitude, in degrees. */
interface Line {
  readonly lngA: number;
  readonly latA: number;
  readonly lngB: number;
  readonly latB: number;
}

/** Halves of edges are not halved again where they are so short, in margins. */
const SHORT_MARGINS = 4;
/** Tracks that meet in more places run along the same roads, and hardly any latitude would be left out. */
const BANDS_MAX = 10_000;
/** Pairs of edges and of their parts: every edge of the longest tracks with every other one, and a million halves. */
const PAIRS_MAX = 5_000_000;
const PAIRS_PER_STEP = 4_096;
/** Less than a degree of latitude, and of longitude at the equator, has anywhere. */
const METRES_PER_DEGREE = 110_500;

/**
 * The latitudes where two tracks may have something in common: ascending and apart. Two long tracks often meet in a few
 * places, which slices over all of their latitudes would be too thick for. Edges whose boxes meet are halved until they
 * are short or apart.
 */
export function* trackBands(a: Track, b: Track): Steps<readonly Band[]> {
  const linesA = linesOf(a);
  const linesB = linesOf(b);
  const marginLat = (a.bufferM + b.bufferM) / METRES_PER_DEGREE;
  const short = (SHORT_MARGINS * Math.min(a.bufferM, b.bufferM)) / METRES_PER_DEGREE;
  const bands: Band[] = [];
  const waiting: [Line, Line][] = [];
  let pairs = 0;
  for (const lineA of linesA) {
    for (const lineB of linesB) {
      waiting.push([lineA, lineB]);
      for (let pair = waiting.pop(); pair !== undefined; pair = waiting.pop()) {
        if (++pairs % PAIRS_PER_STEP === 0) yield;
        const band = commonBand(...pair, marginLat);
        if (band === null) continue;
        const [first, second] = pair;
        const [lengthA, lengthB] = [lengthOf(first), lengthOf(second)];
        if (Math.max(lengthA, lengthB) <= short) bands.push(band);
        else if (lengthA >= lengthB) for (const half of halvesOf(first)) waiting.push([half, second]);
        else for (const half of halvesOf(second)) waiting.push([first, half]);
        if (bands.length > BANDS_MAX || pairs > PAIRS_MAX) return [wholeBand(a)];
      }
    }
  }
  return merged(bands);
}

/** The latitudes that the margins of two lines have in common; null where their boxes are apart. */
function commonBand(a: Line, b: Line, marginLat: number): Band | null {
  const south = Math.max(Math.min(a.latA, a.latB), Math.min(b.latA, b.latB)) - marginLat;
  const north = Math.min(Math.max(a.latA, a.latB), Math.max(b.latA, b.latB)) + marginLat;
  if (south >= north) return null;
  const halves = (Math.abs(a.lngA - a.lngB) + Math.abs(b.lngA - b.lngB)) / 2;
  const between = (a.lngA + a.lngB - b.lngA - b.lngB) / 2;
  const gap = Math.abs(between - 360 * Math.round(between / 360)) - halves;
  const shrink = Math.cos(Math.max(Math.abs(south), Math.abs(north)) * RADIANS_PER_DEGREE);
  return gap * shrink > marginLat ? null : [south, north];
}

/** The longer side of its box, in degrees. */
function lengthOf({ lngA, latA, lngB, latB }: Line): number {
  return Math.max(Math.abs(lngA - lngB), Math.abs(latA - latB));
}

function halvesOf({ lngA, latA, lngB, latB }: Line): [Line, Line] {
  const [lng, lat] = [(lngA + lngB) / 2, (latA + latB) / 2];
  return [
    { lngA, latA, lngB: lng, latB: lat },
    { lngA: lng, latA: lat, lngB, latB },
  ];
}

function linesOf({ points }: Track): Line[] {
  const { lngs, lats } = unwrapLine(toLatLngs(points));
  return lngs.slice(1).map((lng, n) => ({ lngA: lngs[n]!, latA: lats[n]!, lngB: lng, latB: lats[n + 1]! }));
}

function wholeBand({ points, bufferM }: Track): Band {
  const { south, north } = corridorBounds(unwrapLine(toLatLngs(points)), bufferM);
  return [south, north];
}

function merged(bands: Band[]): Band[] {
  const joined: [number, number][] = [];
  for (const [south, north] of bands.sort((a, b) => a[0] - b[0])) {
    const last = joined[joined.length - 1];
    if (last !== undefined && south <= last[1]) last[1] = Math.max(last[1], north);
    else joined.push([south, north]);
  }
  return joined;
}
