import type { Ring } from '../../geo/ring.ts';

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
