import type { LatLng } from '../types.ts';

/** The line through the points as [lng, lat] pairs; lng continues beyond 180° instead of jumping to the other side. */
export function unwrapped(points: readonly LatLng[]): [number, number][] {
  let before = points[0]?.lng ?? 0;
  return points.map(({ lng, lat }) => {
    before += lng - before - 360 * Math.round((lng - before) / 360);
    return [before, lat];
  });
}

/** West, south, east and north. East is beyond 180° where they go across it. */
export type Bounds = [west: number, south: number, east: number, north: number];

/** Around all points, the short way around the world; null without points. */
export function boundsOf(points: readonly LatLng[]): Bounds | null {
  if (points.length === 0) return null;
  const lngs = Float64Array.from(points, ({ lng }) => lng).sort();
  let west = lngs[0] as number;
  let gap = west + 360 - (lngs.at(-1) as number);
  for (let index = 1; index < lngs.length; index++) {
    const wider = (lngs[index] as number) - (lngs[index - 1] as number);
    if (wider <= gap) continue;
    gap = wider;
    west = lngs[index] as number;
  }
  let south = 90;
  let north = -90;
  for (const { lat } of points) {
    south = Math.min(south, lat);
    north = Math.max(north, lat);
  }
  return [west, south, west + 360 - gap, north];
}
