import { corridorBounds } from '../../geo/measure.ts';
import { type Path, unwrapLine } from '../../geo/path.ts';
import { meridianRadiusM, parallelRadiusM, RADIANS_PER_DEGREE } from '../../geo/wgs84.ts';
import type { Steps } from '../../lib/workTurns.ts';
import { type Polyline, toLatLngs } from '../area.ts';
import { type Band, joined, type Slices } from './sliceOverlap.ts';

/** A polyline: all positions within its buffer. Every piece of an edge is a capsule on a plane of its own scale. */
export function polylineSlices({ points, bufferM }: Polyline): Slices {
  return pathSlices(unwrapLine(toLatLngs(points)), bufferM);
}

/** The same for a path whose longitudes are continuous already. */
export function pathSlices(path: Path, bufferM: number): Slices {
  const { south, north } = corridorBounds(path, bufferM);
  const edges = edgesOf(path.lngs, path.lats, bufferM).sort((a, b) => a.south - b.south);
  let next = 0;
  let open: OpenEdge[] = [];
  return {
    south,
    north,
    detailM: bufferM,
    breaks: path.lats.flatMap((lat) => breaksAround(lat, bufferM)),
    at: (lat) => {
      for (; next < edges.length && edges[next]!.south <= lat; next++) {
        const edge = edges[next]!;
        open.push({ edge, pieces: [], next: pieceOf(edge, 0, bufferM), index: 0 });
      }
      const found: [number, number][] = [];
      for (const line of open) {
        raise(line, lat, bufferM);
        for (const piece of line.pieces) {
          const interval = capsuleAt(piece, bufferM, lat);
          if (interval !== null) found.push(interval);
        }
      }
      open = open.filter((line) => line.next !== null || line.pieces.length > 0);
      return joined(found);
    },
  };
}

/** A straight line on the plane of longitude and latitude, in degrees. */
interface Line {
  readonly lngA: number;
  readonly latA: number;
  readonly lngB: number;
  readonly latB: number;
}

/** An edge of the polyline, its southern end first. Its pieces are made when the parallel reaches them. */
interface Edge extends Line {
  readonly count: number;
  /** No position within the buffer is south of this latitude. */
  readonly south: number;
}

/** A piece of an edge, its southern end first. */
interface Piece extends Line {
  /** Metres per degree of latitude. */
  readonly perLatM: number;
  /** All positions within the buffer are between these latitudes. */
  readonly south: number;
  readonly north: number;
}

/** An edge that the parallel has reached: the pieces that it meets, and the next piece with its index from 0. */
interface OpenEdge {
  readonly edge: Edge;
  pieces: Piece[];
  next: Piece | null;
  index: number;
}

/** Where the buffer around a vertex begins and ends: abruptly, if an edge runs along the parallel. */
function breaksAround(lat: number, bufferM: number): number[] {
  const reach = bufferM / (meridianRadiusM(lat) * RADIANS_PER_DEGREE);
  return [lat - reach, lat + reach];
}

/** Takes up the pieces that the parallel `lat` has reached, and drops those below it. */
function raise(line: OpenEdge, lat: number, bufferM: number): void {
  if (line.pieces.some(({ north }) => north <= lat)) {
    line.pieces = line.pieces.filter(({ north }) => north > lat);
  }
  while (line.next !== null && line.next.south <= lat) {
    if (line.next.north > lat) line.pieces.push(line.next);
    line.index++;
    line.next = line.index < line.edge.count ? pieceOf(line.edge, line.index, bufferM) : null;
  }
}

function edgesOf(lngs: readonly number[], lats: readonly number[], bufferM: number): Edge[] {
  return lngs.slice(1).map((_, n) => {
    const [a, b] = lats[n]! <= lats[n + 1]! ? [n, n + 1] : [n + 1, n];
    const count = Math.max(1, Math.ceil((lats[b]! - lats[a]!) / STEADY_DEGREES));
    const edge = { lngA: lngs[a]!, latA: lats[a]!, lngB: lngs[b]!, latB: lats[b]!, count, south: 0 };
    return { ...edge, south: pieceOf(edge, 0, bufferM).south };
  });
}

/** Piece `index` of an edge, counted from its southern end. */
function pieceOf({ lngA, latA, lngB, latB, count }: Edge, index: number, bufferM: number): Piece {
  const [from, to] = [index / count, (index + 1) / count];
  const [south, north] = [latA + from * (latB - latA), latA + to * (latB - latA)];
  const perLatM = meridianRadiusM((south + north) / 2) * RADIANS_PER_DEGREE;
  const reach = bufferM / perLatM;
  return {
    lngA: lngA + from * (lngB - lngA),
    latA: south,
    lngB: lngA + to * (lngB - lngA),
    latB: north,
    perLatM,
    south: south - reach,
    north: north + reach,
  };
}

/**
 * Where a capsule meets a parallel: it is convex, so the ends are the outermost of where its two discs and its two long
 * sides do.
 */
function capsuleAt(piece: Piece, radiusM: number, lat: number): [number, number] | null {
  const { lngA, latA, lngB, latB, perLatM } = piece;
  const nearest = Math.min(latB, Math.max(latA, lat));
  const perLngM = Math.max(parallelRadiusM((lat + nearest) / 2) * RADIANS_PER_DEGREE, SMALLEST_M);
  const ax = lngA * perLngM;
  const ay = (latA - lat) * perLatM;
  const bx = lngB * perLngM;
  const by = (latB - lat) * perLatM;
  let west = Number.POSITIVE_INFINITY;
  let east = Number.NEGATIVE_INFINITY;
  const meet = (x: number): void => {
    if (x < west) west = x;
    if (x > east) east = x;
  };
  const disc = (x: number, y: number): void => {
    const square = radiusM * radiusM - y * y;
    if (square < 0) return;
    const half = Math.sqrt(square);
    meet(x - half);
    meet(x + half);
  };
  disc(ax, ay);
  disc(bx, by);
  const lengthM = Math.hypot(bx - ax, by - ay);
  if (lengthM > 0) {
    const normalX = (-(by - ay) / lengthM) * radiusM;
    const normalY = ((bx - ax) / lengthM) * radiusM;
    for (const side of SIDES) {
      const startY = ay + side * normalY;
      const share = by === ay ? Number.NaN : -startY / (by - ay);
      if (share >= 0 && share <= 1) meet(ax + side * normalX + share * (bx - ax));
    }
  }
  if (west > east) return null;
  const [westLng, eastLng] = [west / perLngM, east / perLngM];
  return eastLng - westLng >= 360 ? [westLng, westLng + 360] : [westLng, eastLng];
}

const SIDES = [-1, 1] as const;
/** A piece of an edge is so short that the length of a degree hardly changes along it. */
const STEADY_DEGREES = 0.25;
/** Metres per degree of longitude at a pole: not 0, because it is a divisor. */
const SMALLEST_M = 1e-6;

/** In buffers: edges up to this length are not halved. */
const SHORT_BUFFERS = 4;
/** Polylines that meet more often run along the same roads, and hardly any latitude would be left out. */
const BANDS_MAX = 10_000;
/** Pairs of edges and of their parts: every edge of the longest polylines with every other one, and a million halves. */
const PAIRS_MAX = 5_000_000;
const PAIRS_PER_STEP = 4_096;
/** Less than the length of any degree of latitude, and of longitude at the equator. */
const METRES_PER_DEGREE = 110_500;

/**
 * The latitudes where two polylines may have something in common: ascending and apart. Two long ones often meet only a
 * few times, and slices over all of their latitudes would be too thick there. Edges whose boxes meet are halved until
 * they are short or apart.
 */
export function* commonBands(a: Polyline, b: Polyline): Steps<readonly Band[]> {
  const linesA = linesOf(a);
  const linesB = linesOf(b);
  const bufferLat = (a.bufferM + b.bufferM) / METRES_PER_DEGREE;
  const short = (SHORT_BUFFERS * Math.min(a.bufferM, b.bufferM)) / METRES_PER_DEGREE;
  const bands: Band[] = [];
  const waiting: [Line, Line][] = [];
  let pairs = 0;
  for (const lineA of linesA) {
    for (const lineB of linesB) {
      waiting.push([lineA, lineB]);
      for (let pair = waiting.pop(); pair !== undefined; pair = waiting.pop()) {
        if (++pairs % PAIRS_PER_STEP === 0) yield;
        const band = commonBand(...pair, bufferLat);
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

/** The latitudes that the buffers of two lines have in common; null where their boxes are apart. */
function commonBand(a: Line, b: Line, bufferLat: number): Band | null {
  const south = Math.max(Math.min(a.latA, a.latB), Math.min(b.latA, b.latB)) - bufferLat;
  const north = Math.min(Math.max(a.latA, a.latB), Math.max(b.latA, b.latB)) + bufferLat;
  if (south >= north) return null;
  const halves = (Math.abs(a.lngA - a.lngB) + Math.abs(b.lngA - b.lngB)) / 2;
  const between = (a.lngA + a.lngB - b.lngA - b.lngB) / 2;
  const gap = Math.abs(between - 360 * Math.round(between / 360)) - halves;
  const shrink = Math.cos(Math.max(Math.abs(south), Math.abs(north)) * RADIANS_PER_DEGREE);
  return gap * shrink > bufferLat ? null : [south, north];
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

function linesOf({ points }: Polyline): Line[] {
  const { lngs, lats } = unwrapLine(toLatLngs(points));
  return lngs.slice(1).map((lng, n) => ({ lngA: lngs[n]!, latA: lats[n]!, lngB: lng, latB: lats[n + 1]! }));
}

function wholeBand({ points, bufferM }: Polyline): Band {
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
