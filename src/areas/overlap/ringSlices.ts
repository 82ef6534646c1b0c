import type { Ring } from '../../geo/ring.ts';
import type { Slices } from './intervals.ts';
import { planarRing } from './planarRing.ts';

const METRES_PER_DEGREE = 111_000;
/** Slices of a polygon as high as its mean edge, but not countless ones. */
const LEAST_DETAIL_SHARE = 1 / 500;

/** A polygon, its edges straight in longitude and latitude. */
export function ringSlices(ring: Ring): Slices {
  const { lngs, lats } = planarRing(ring);
  const south = Math.min(...lats);
  const north = Math.max(...lats);
  // Edges by their southern ends, to be taken up as the parallel rises.
  const edges = lngs
    .slice(1)
    .map((_, n) => (lats[n]! <= lats[n + 1]! ? [n, n + 1] : [n + 1, n]) as [number, number])
    .filter(([low, high]) => lats[low] !== lats[high])
    .sort(([a], [b]) => lats[a]! - lats[b]!);
  let next = 0;
  let active: [number, number][] = [];
  return {
    south,
    north,
    detailM: (north - south) * METRES_PER_DEGREE * LEAST_DETAIL_SHARE,
    breaks: [],
    at: (lat) => {
      active = active.filter(([, high]) => lats[high]! > lat);
      for (; next < edges.length && lats[edges[next]![0]]! <= lat; next++) {
        if (lats[edges[next]![1]]! > lat) active.push(edges[next]!);
      }
      const crossings = active.map(([low, high]) => {
        const share = (lat - lats[low]!) / (lats[high]! - lats[low]!);
        return lngs[low]! + share * (lngs[high]! - lngs[low]!);
      });
      return crossings.sort((a, b) => a - b);
    },
  };
}
