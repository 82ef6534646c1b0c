import { distanceM } from './distance.ts';
import type { LatLng } from './latLng.ts';

export interface Simplified {
  readonly points: readonly LatLng[];
  /** Whether anything was dropped. */
  readonly dropped: boolean;
}

/** A polygon's points without the repetition of the first that closes a GeoJSON ring. */
export function openRing(points: readonly LatLng[]): readonly LatLng[] {
  const first = points[0];
  const last = points[points.length - 1];
  if (points.length < 2 || !first || !last) return points;
  return first.lat === last.lat && first.lng === last.lng ? points.slice(0, -1) : points;
}

/**
 * Drops every point closer than 0.1 m to the last one that was kept; in a ring also the last points that are that close
 * to the first. Points at a pole that differ in longitude stay, because they decide where the edges to the pole run.
 */
export function simplify(points: readonly LatLng[], closed: boolean): Simplified {
  const kept: LatLng[] = [];
  for (const point of points) {
    const last = kept[kept.length - 1];
    if (!last || !nearlyCoincident(last, point)) kept.push(point);
  }
  while (closed && kept.length > 1 && nearlyCoincident(kept[kept.length - 1]!, kept[0]!)) kept.pop();
  return { points: kept, dropped: kept.length < points.length };
}

function nearlyCoincident(a: LatLng, b: LatLng): boolean {
  if (Math.abs(a.lat - b.lat) > SURELY_APART_DEGREES) return false;
  if (a.lat === b.lat && Math.abs(a.lat) === 90) return a.lng === b.lng;
  return distanceM(a.lat, a.lng, b.lat, b.lng) < COINCIDENT_M;
}

const COINCIDENT_M = 0.1;
/** A degree of latitude is nowhere shorter than 110.5 km. */
const SURELY_APART_DEGREES = COINCIDENT_M / 110_000;
