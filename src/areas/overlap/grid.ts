import type { Pair } from 'polygon-clipping';

/** Positions `west + x * step`, `south + y * step` in degrees, for all whole numbers x and y. */
export interface Grid {
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
export function gridOf(a: readonly Pair[], b: readonly Pair[]): Grid {
  const [west, south] = a[0] as Pair;
  return { west, south, step: AREA_SHARE * Math.min(meanWidth(a), meanWidth(b)) };
}

/** The ring in steps of the grid, without the vertices that coincide there. */
export function snapped(ring: readonly Pair[], { west, south, step }: Grid): Pair[] {
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
 * are equal do not count, nor does one that lies on an edge along a parallel or meridian: no comparison is rounded there.
 */
export function isNear(a: readonly Pair[], b: readonly Pair[], distance: number): boolean {
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
