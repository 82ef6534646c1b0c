import polygonClipping, { type MultiPolygon, type Pair } from 'polygon-clipping';
import { northwardAreaM2 } from '../../geo/authalic.ts';
import type { Ring } from '../../geo/ring.ts';
import { type Grid, gridOf, isNear, snapped } from './grid.ts';
import { planarRing } from './planarRing.ts';

/**
 * The area in square metres that two polygons have in common, edges straight in longitude and latitude: exact but for
 * rounding. Null where polygon-clipping cannot complete the intersection, which it reports by an exception.
 *
 * Where a vertex of one nearly lies on the boundary of the other, polygon-clipping orders their edges by the rounding
 * of the last digit, now one way and now the other, and splits the same two edges until it gives up. Both polygons are
 * then brought to one grid first, where two vertices are equal or clearly apart.
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
