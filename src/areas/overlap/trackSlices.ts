import { corridorBounds } from '../../geometry/bounds.ts';
import { meridianRadiusM, parallelRadiusM } from '../../geometry/geodesic/radii.ts';
import { RADIANS_PER_DEGREE } from '../../geometry/geodesic/wgs84.ts';
import { unwrapLine } from '../../geometry/ring/path.ts';
import { type Track, toLatLngs } from '../area.ts';
import { joined, type Slices } from './intervals.ts';

/** A piece of an edge is so short that the length of a degree hardly changes along it. */
const STEADY_DEGREES = 0.25;

/** A straight piece of the line, its southern end first. */
interface Piece {
  readonly lngA: number;
  readonly latA: number;
  readonly lngB: number;
  readonly latB: number;
  /** Metres per degree of latitude. */
  readonly perLatM: number;
  /** No position within the margin lies outside of these latitudes. */
  readonly south: number;
  readonly north: number;
}

/** A track: all positions within its margin of the line. Every piece is a capsule on a plane of its own scale. */
export function trackSlices({ points, bufferM }: Track): Slices {
  const path = unwrapLine(toLatLngs(points));
  const { south, north } = corridorBounds(path, bufferM);
  const pieces = piecesOf(path.lngs, path.lats, bufferM).sort((a, b) => a.south - b.south);
  let next = 0;
  let active: Piece[] = [];
  return {
    south,
    north,
    detailM: bufferM,
    at: (lat) => {
      active = active.filter((piece) => piece.north > lat);
      for (; next < pieces.length && pieces[next]!.south <= lat; next++) {
        if (pieces[next]!.north > lat) active.push(pieces[next]!);
      }
      const found: [number, number][] = [];
      for (const piece of active) {
        const interval = capsuleAt(piece, bufferM, lat);
        if (interval !== null) found.push(interval);
      }
      return joined(found);
    },
  };
}

function piecesOf(lngs: readonly number[], lats: readonly number[], bufferM: number): Piece[] {
  const pieces: Piece[] = [];
  for (let n = 1; n < lngs.length; n++) {
    const dLng = lngs[n]! - lngs[n - 1]!;
    const dLat = lats[n]! - lats[n - 1]!;
    const count = Math.max(1, Math.ceil(Math.abs(dLat) / STEADY_DEGREES));
    for (let k = 0; k < count; k++) {
      const ends = [k / count, (k + 1) / count].map((share) => ({
        lng: lngs[n - 1]! + share * dLng,
        lat: lats[n - 1]! + share * dLat,
      })) as [{ lng: number; lat: number }, { lng: number; lat: number }];
      const [a, b] = ends[0].lat <= ends[1].lat ? ends : [ends[1], ends[0]];
      const perLatM = meridianRadiusM((a.lat + b.lat) / 2) * RADIANS_PER_DEGREE;
      const reach = bufferM / perLatM;
      pieces.push({
        lngA: a.lng,
        latA: a.lat,
        lngB: b.lng,
        latB: b.lat,
        perLatM,
        south: a.lat - reach,
        north: b.lat + reach,
      });
    }
  }
  return pieces;
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
/** Metres per degree of longitude at a pole: not 0, which nothing can be divided by. */
const SMALLEST_M = 1e-6;
