import type { Ring } from './ring.ts';
import { isSimpleChain } from './simpleChain.ts';

/**
 * True when the ring is not a valid exterior ring by OGC Simple Features (06-103r4, 6.1.11.1) and PostGIS' ST_IsValid:
 * sides cross or overlap, a vertex lies on another side, two vertices are at one place (a figure of eight), there are
 * spikes or there is no area. Winding is free. Decided on unwrapped longitudes, in O(n log n) with exact predicates.
 *
 * On that map a ring around a pole repeats itself 360° further. It must not touch its repetition, nor reach the pole
 * inside more than once. Other rings may be 360° wide, as the frame of a world map is; a wider one would overlap
 * itself.
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
