import { meanZoneAreaM2 } from '../../geo/authalic.ts';
import type { Ring } from '../../geo/ring.ts';
import { RADIANS_PER_DEGREE } from '../../geo/wgs84.ts';
import type { Steps } from '../../lib/workTurns.ts';

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
export interface RingEdges {
  readonly edges: readonly Edge[];
  readonly west: number;
  readonly east: number;
  readonly south: number;
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
  // A polygon stands once in every full turn of longitudes.
  const lowest = Math.ceil((a.west - b.east) / 360);
  const highest = Math.floor((a.east - b.west) / 360);
  for (let turn = lowest; turn <= highest; turn++) {
    const shift = turn * 360;
    const west = Math.max(a.west, b.west + shift);
    const east = Math.min(a.east, b.east + shift);
    const edgesA = between(a, west, east);
    const edgesB = between(b, west - shift, east - shift);
    const shifted =
      shift === 0
        ? edgesB
        : edgesB.map((edge) => ({ ...edge, west: edge.west + shift, east: edge.east + shift }));
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
export function ringEdges({ lngs, lats }: PlanarRing): RingEdges {
  const edges: Edge[] = [];
  let [west, east, south] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 90];
  for (let n = 1; n < lngs.length; n++) {
    west = Math.min(west, lngs[n]!);
    east = Math.max(east, lngs[n]!);
    south = Math.min(south, lats[n]!);
    if (lngs[n - 1] === lngs[n]) continue;
    const [from, to] = lngs[n - 1]! < lngs[n]! ? [n - 1, n] : [n, n - 1];
    edges.push({
      west: lngs[from]!,
      east: lngs[to]!,
      westLat: lats[from]!,
      eastLat: lats[to]!,
      sign: to - from,
    });
  }
  edges.sort((a, b) => a.west - b.west);
  return { edges, west, east, south };
}

/** A closed polygon of the plane of longitude and latitude, in degrees, the first vertex repeated at the end. */
export interface PlanarRing {
  readonly lngs: readonly number[];
  readonly lats: readonly number[];
}

/** A ring on the plane. One around a pole is closed along the pole. */
export function planarRing({ lngs, lats, pole }: Ring): PlanarRing {
  if (pole === null) return { lngs, lats };
  const poleLat = pole === 'north' ? 90 : -90;
  return {
    lngs: [...lngs, lngs[lngs.length - 1]!, lngs[0]!, lngs[0]!],
    lats: [...lats, poleLat, poleLat, lats[0]!],
  };
}
