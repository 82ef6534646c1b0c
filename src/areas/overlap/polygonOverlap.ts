import polygonClipping, { type MultiPolygon, type Pair } from 'polygon-clipping';
import { type Bounds, extentOf } from '../../geo/measure.ts';
import type { Ring } from '../../geo/path.ts';
import { type Edges, meanZoneAreaM2, northwardAreaM2, RADIANS_PER_DEGREE } from '../../geo/wgs84.ts';
import type { Steps } from '../../lib/workTurns.ts';

/**
 * The area in square metres that two polygons have in common, edges straight in longitude and latitude: exact but for
 * rounding. Null where polygon-clipping cannot complete the intersection, which it reports by an exception.
 *
 * Where a vertex of one is almost on the boundary of the other, rounding of the last digit makes polygon-clipping order
 * their edges inconsistently and split the same two edges until it gives up. Both polygons are then first snapped to
 * one grid, where two vertices are equal or clearly apart.
 */
export function clipOverlapM2(a: Edges, b: Edges): number | null {
  const ringA = pairsOf(a, 0);
  let areaM2 = 0;
  for (const shift of shiftsBetween(extentOf(a), extentOf(b))) {
    const ringB = pairsOf(b, shift);
    const [west, south] = ringA[0] as Pair;
    // From the one that is narrower for its length, so a tiny polygon beside a country keeps its shape.
    const grid = { west, south, step: AREA_SHARE * Math.min(meanWidth(ringA), meanWidth(ringB)) };
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
  const { west, south, step } = grid;
  const placed = ([x, y]: Pair): Pair => [west + x * step, south + y * step];
  const common = intersection(snapped(a, grid), snapped(b, grid));
  return common?.map((rings) => rings.map((ring) => ring.map(placed))) ?? null;
}

function pairsOf({ lngs, lats }: Edges, shift: number): Pair[] {
  return lngs.map((lng, n): Pair => [lng + shift, lats[n]!]);
}

/** The area of the outer rings less that of their holes. */
function areaOfM2(polygons: MultiPolygon): number {
  let areaM2 = 0;
  for (const rings of polygons) {
    rings.forEach((ring, n) => {
      const edges = { lngs: ring.map(([lng]) => lng), lats: ring.map(([, lat]) => lat) };
      const ringM2 = Math.abs(northwardAreaM2(edges, edges.lats[0] as number));
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

/** The largest share of its area that a polygon may lose or gain on the grid: far below the accuracy of overlaps. */
const AREA_SHARE = 1e-6;

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

/** The area of a closed ring divided by its length, in degrees. */
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

/** Pairs of edges that are measured in a step: a fraction of a millisecond. */
const PAIRS_PER_STEP = 512;

/** An edge of a polygon. Together with a parallel it bounds a strip. */
interface Edge {
  readonly west: number;
  readonly east: number;
  readonly westLat: number;
  readonly eastLat: number;
  /** 1 where the ring runs east along it, -1 where it runs west: the strips of a ring add up with these signs. */
  readonly sign: number;
}

/** The edges of a polygon, from west to east by their west ends, and its extent in degrees. */
export interface RingEdges extends Bounds {
  readonly edges: readonly Edge[];
}

/**
 * The area in square metres that two polygons have in common, edges straight in longitude and latitude. A polygon is
 * the sum of the strips below its edges, with signs, so the common part is the sum over pairs of edges of what their
 * strips have in common. Nothing is decided by comparing coordinates: an error of rounding in a coordinate changes the
 * sum by as little. It takes time in proportion to the pairs of edges that have longitudes in common.
 */
export function* ringOverlapM2(a: RingEdges, b: RingEdges): Steps<number> {
  const baseLat = Math.max(a.south, b.south);
  let areaM2 = 0;
  for (const shift of shiftsBetween(a, b)) {
    const west = Math.max(a.west, b.west + shift);
    const east = Math.min(a.east, b.east + shift);
    const edgesA = between(a, west, east);
    const edgesB = between(b, west - shift, east - shift);
    const shifted = edgesB.map((edge) => ({ ...edge, west: edge.west + shift, east: edge.east + shift }));
    areaM2 += Math.abs(yield* signedSumM2(edgesA, shifted, baseLat));
  }
  return areaM2;
}

/** The edges that have longitudes between these. */
function between({ edges }: RingEdges, west: number, east: number): Edge[] {
  return edges.filter((edge) => edge.east > west && edge.west < east);
}

/** Sweeps eastward over both, each ordered by its west ends, and takes a pair when its later edge begins. */
function* signedSumM2(a: readonly Edge[], b: readonly Edge[], baseLat: number): Steps<number> {
  let sumM2 = 0;
  let pairs = 0;
  let [nextA, nextB] = [0, 0];
  let [openA, openB]: [Edge[], Edge[]] = [[], []];
  while (nextA < a.length || nextB < b.length) {
    const isOfA = nextB >= b.length || (nextA < a.length && a[nextA]!.west <= b[nextB]!.west);
    const edge = isOfA ? a[nextA++]! : b[nextB++]!;
    const others = (isOfA ? openB : openA).filter(({ east }) => east > edge.west);
    if (isOfA) {
      openA.push(edge);
      openB = others;
    } else {
      openB.push(edge);
      openA = others;
    }
    for (const other of others) {
      sumM2 += edge.sign * other.sign * commonStripM2(edge, other, baseLat);
      if (++pairs % PAIRS_PER_STEP === 0) yield;
    }
  }
  return sumM2;
}

/** The area between the parallel `baseLat` and the lower one of two edges, over the longitudes that both have. */
function commonStripM2(a: Edge, b: Edge, baseLat: number): number {
  const west = Math.max(a.west, b.west);
  const east = Math.min(a.east, b.east);
  const [westA, eastA] = [latAt(a, west), latAt(a, east)];
  const [westB, eastB] = [latAt(b, west), latAt(b, east)];
  const [westGap, eastGap] = [westA - westB, eastA - eastB];
  if (westGap <= 0 && eastGap <= 0) return stripM2(east - west, westA, eastA, baseLat);
  if (westGap >= 0 && eastGap >= 0) return stripM2(east - west, westB, eastB, baseLat);
  const share = westGap / (westGap - eastGap);
  const width = share * (east - west);
  const crossingLat = westA + share * (eastA - westA);
  return (
    stripM2(width, westGap < 0 ? westA : westB, crossingLat, baseLat) +
    stripM2(east - west - width, crossingLat, westGap < 0 ? eastB : eastA, baseLat)
  );
}

/** The area north of the parallel `baseLat` and below a line, over `width` degrees of longitude. */
function stripM2(width: number, westLat: number, eastLat: number, baseLat: number): number {
  const low = Math.min(westLat, eastLat);
  const high = Math.max(westLat, eastLat);
  if (high <= baseLat) return 0;
  const share = low >= baseLat ? 1 : (high - baseLat) / (high - low);
  return share * width * RADIANS_PER_DEGREE * meanZoneAreaM2(Math.max(low, baseLat), high, baseLat);
}

function latAt({ west, east, westLat, eastLat }: Edge, lng: number): number {
  return lng === east ? eastLat : westLat + ((lng - west) / (east - west)) * (eastLat - westLat);
}

/** The edges of a ring. Those along a meridian have nothing below them. */
export function ringEdges(ring: Edges): RingEdges {
  const { lngs, lats } = ring;
  const edges: Edge[] = [];
  for (let n = 1; n < lngs.length; n++) {
    if (lngs[n - 1] === lngs[n]) continue;
    const [from, to] = lngs[n - 1]! < lngs[n]! ? [n - 1, n] : [n, n - 1];
    const [west, east] = [lngs[from]!, lngs[to]!];
    edges.push({ west, east, westLat: lats[from]!, eastLat: lats[to]!, sign: to - from });
  }
  edges.sort((a, b) => a.west - b.west);
  return { edges, ...extentOf(ring) };
}

/** A polygon repeats itself with every full turn: the shifts of longitude by which the second may meet the first. */
export function shiftsBetween(a: Bounds, b: Bounds): number[] {
  const lowest = Math.ceil((a.west - b.east) / 360);
  const highest = Math.floor((a.east - b.west) / 360);
  return Array.from({ length: Math.max(0, highest - lowest + 1) }, (_, n) => (lowest + n) * 360);
}

/** A ring as a closed polygon of the plane of longitude and latitude. One around a pole is closed along the pole. */
export function planarRing({ lngs, lats, pole }: Ring): Edges {
  if (pole === null) return { lngs, lats };
  const poleLat = pole === 'north' ? 90 : -90;
  return {
    lngs: [...lngs, lngs[lngs.length - 1]!, lngs[0]!, lngs[0]!],
    lats: [...lats, poleLat, poleLat, lats[0]!],
  };
}
