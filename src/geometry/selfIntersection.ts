import type { Ring } from './ring.ts';
import { isSimpleChain } from './simpleChain.ts';

/**
 * True when the ring is not a valid exterior ring as OGC Simple Features (06-103r4, 6.1.11.1) and PostGIS'
 * ST_IsValid see it: sides that cross or overlap, a vertex on another side, two vertices in one place (a figure of
 * eight), spikes, no area at all. Winding is free. Judged on the seamless map of ring.ts, in O(n log n) with exact
 * predicates.
 *
 * A ring around a pole has neighbours to its left and right, itself a turn further: it must not touch those either,
 * nor come to the pole inside more than once. Other rings may be 360° wide, as the frame of a world map is, but not wider: that would lap over itself.
 */
export function isSelfIntersecting(ring: Ring): boolean {
  const edgeCount = ring.lngs.length - 1;
  const width = widthDegrees(ring.lngs);
  if (ring.turns === 0) return edgeCount < 3 || width > 360 || !isSimpleChain(ring.lngs, ring.lats, true);
  if (Math.abs(ring.turns) > 1 || width >= 720) return true;
  const poleLat = ring.pole === 'north' ? 90 : -90;
  if (ring.points.filter(({ lat }) => lat === poleLat).length > 1) return true;
  const twice = repeatOnce(ring);
  return !isSimpleChain(twice.lngs, twice.lats, false);
}

function widthDegrees(lngs: readonly number[]): number {
  let west = Number.POSITIVE_INFINITY;
  let east = Number.NEGATIVE_INFINITY;
  for (const lng of lngs) {
    if (lng < west) west = lng;
    if (lng > east) east = lng;
  }
  return east - west;
}

function repeatOnce(ring: Ring): { lngs: number[]; lats: number[] } {
  const n = ring.lngs.length - 1;
  const lngs: number[] = [];
  const lats: number[] = [];
  for (let i = 0; i <= 2 * n; i++) {
    const lap = Math.floor(i / n);
    lngs.push(ring.lngs[i % n]! + 360 * ring.turns * lap);
    lats.push(ring.lats[i % n]!);
  }
  return { lngs, lats };
}
