import type { Ring } from '../../geometry/ring/ring.ts';

/**
 * A ring as a closed polygon of the plane of longitude and latitude, the first vertex repeated at the end. One around a
 * pole is closed along the pole.
 */
export function planarRing({ lngs, lats, pole }: Ring): { lngs: number[]; lats: number[] } {
  if (pole === null) return { lngs: [...lngs], lats: [...lats] };
  const poleLat = pole === 'north' ? 90 : -90;
  return {
    lngs: [...lngs, lngs[lngs.length - 1]!, lngs[0]!, lngs[0]!],
    lats: [...lats, poleLat, poleLat, lats[0]!],
  };
}
