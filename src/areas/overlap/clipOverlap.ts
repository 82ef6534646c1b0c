import polygonClipping, { type MultiPolygon, type Pair } from 'polygon-clipping';
import { northwardAreaM2 } from '../../geo/authalic.ts';
import type { Ring } from '../../geo/ring.ts';
import { planarRing } from './ringOverlap.ts';

/**
 * The area in square metres that two polygons have in common, edges straight in longitude and latitude: exact but for
 * rounding. Null where polygon-clipping cannot complete the intersection, which it reports by an exception.
 *
 * Where a vertex of one is almost on the boundary of the other, rounding of the last digit makes polygon-clipping order
 * their edges inconsistently and split the same two edges until it gives up. Both polygons are then first snapped to
 * one grid, where two vertices are equal or clearly apart.
 */
export function clipOverlapM2(a: Ring, b: Ring): number | null {
  const ringA = pairsOf(a, 0);
  const [westA, eastA] = rangeOf(ringA);
  const [westB, eastB] = rangeOf(pairsOf(b, 0));
  let areaM2 = 0;
  // A polygon stands once in every full turn of longitudes.
  const lowest = Math.ceil((westA - eastB) / 360);
  const highest = Math.floor((eastA - westB) / 360);
  for (let turn = lowest; turn <= highest; turn++) {
    const ringB = pairsOf(b, turn * 360);
    const grid = gridOf(ringA, ringB);
    const common = isNear(ringA, ringB, grid.step)
      ? intersectionOn(grid, ringA, ringB)
      : intersection(ringA, ringB);
    if (common === null) return null;
    areaM2 += areaOfM2(common);
  }
  return areaM2;
}

function intersection(a: Pair[], b: Pair[]): MultiPolygon | null {
  try {
    return polygonClipping.intersection([a], [b]);
  } catch {
    return null; // "Unable to complete output ring": the caller has another way
  }
}

/** In whole steps of the grid, whose products have no rounding. */
function intersectionOn(grid: Grid, a: Pair[], b: Pair[]): MultiPolygon | null {
  const common = intersection(snapped(a, grid), snapped(b, grid));
  const { west, south, step } = grid;
  return (
    common?.map((rings) =>
      rings.map((ring) => ring.map(([x, y]): Pair => [west + x * step, south + y * step])),
    ) ?? null
  );
}

function pairsOf(ring: Ring, shift: number): Pair[] {
  const { lngs, lats } = planarRing(ring);
  return lngs.map((lng, n): Pair => [lng + shift, lats[n]!]);
}

function rangeOf(pairs: readonly Pair[]): [west: number, east: number] {
  let west = Number.POSITIVE_INFINITY;
  let east = Number.NEGATIVE_INFINITY;
  for (const [lng] of pairs) {
    west = Math.min(west, lng);
    east = Math.max(east, lng);
  }
  return [west, east];
}

/** Outer rings less their holes. */
function areaOfM2(polygons: MultiPolygon): number {
  let areaM2 = 0;
  for (const rings of polygons) {
    rings.forEach((ring, n) => {
      const path = { lngs: ring.map(([lng]) => lng), lats: ring.map(([, lat]) => lat), points: [] };
      const ringM2 = Math.abs(northwardAreaM2(path, path.lats[0] as number));
      areaM2 += n === 0 ? ringM2 : -ringM2;
    });
  }
  return areaM2;
}

/** Positions `west + x * step`, `south + y * step` in degrees, for all whole numbers x and y. */
interface Grid {
  readonly west: number;
  readonly south: number;
  readonly step: number;
}

/** So much of its area a polygon may lose or gain at most on the grid: far below what an overlap has to be exact to. */
const AREA_SHARE = 1e-6;

/**
 * The grid for two closed rings. Its step comes from that of the two which is narrower for its length, so a tiny polygon
 * beside a country keeps its shape.
 */
function gridOf(a: readonly Pair[], b: readonly Pair[]): Grid {
  const [west, south] = a[0] as Pair;
  return { west, south, step: AREA_SHARE * Math.min(meanWidth(a), meanWidth(b)) };
}

/** The ring in steps of the grid, without the vertices that coincide there. */
function snapped(ring: readonly Pair[], { west, south, step }: Grid): Pair[] {
  const pairs: Pair[] = [];
  for (const [lng, lat] of ring) {
    const x = Math.round((lng - west) / step);
    const y = Math.round((lat - south) / step);
    const last = pairs[pairs.length - 1];
    if (last === undefined || last[0] !== x || last[1] !== y) pairs.push([x, y]);
  }
  return pairs;
}

/**
 * Whether a vertex of one of two closed rings is nearer to an edge of the other than `distance` degrees. Vertices that
 * are equal do not count, nor does a vertex on an edge along a parallel or meridian: no comparison is rounded there.
 */
function isNear(a: readonly Pair[], b: readonly Pair[], distance: number): boolean {
  return hasNearVertex(a, b, distance) || hasNearVertex(b, a, distance);
}

function hasNearVertex(vertices: readonly Pair[], ring: readonly Pair[], distance: number): boolean {
  for (let n = 1; n < ring.length; n++) {
    const [[x1, y1], [x2, y2]] = [ring[n - 1] as Pair, ring[n] as Pair];
    const west = Math.min(x1, x2) - distance;
    const east = Math.max(x1, x2) + distance;
    const south = Math.min(y1, y2) - distance;
    const north = Math.max(y1, y2) + distance;
    const lengthSquare = (x2 - x1) ** 2 + (y2 - y1) ** 2;
    for (const [x, y] of vertices) {
      if (x < west || x > east || y < south || y > north) continue;
      if ((x === x1 && y === y1) || (x === x2 && y === y2)) continue;
      if ((x === x1 && x === x2) || (y === y1 && y === y2)) continue;
      const along = ((x - x1) * (x2 - x1) + (y - y1) * (y2 - y1)) / lengthSquare;
      const nearest = Math.max(0, Math.min(1, along));
      const gap = Math.hypot(x1 + nearest * (x2 - x1) - x, y1 + nearest * (y2 - y1) - y);
      if (gap < distance) return true;
    }
  }
  return false;
}

/** The area of a closed ring by its length, in degrees. */
function meanWidth(ring: readonly Pair[]): number {
  const [x0, y0] = ring[0] as Pair;
  let doubleArea = 0;
  let length = 0;
  for (let n = 1; n < ring.length; n++) {
    const [[x1, y1], [x2, y2]] = [ring[n - 1] as Pair, ring[n] as Pair];
    doubleArea += (x1 - x0) * (y2 - y0) - (x2 - x0) * (y1 - y0);
    length += Math.hypot(x2 - x1, y2 - y1);
  }
  return Math.abs(doubleArea) / 2 / length;
}
