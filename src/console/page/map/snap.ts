import type { Area, LatLng } from '../types.ts';
import type { Box } from './box.ts';

/** A vertex that is so near to another one is meant to be there. */
const SNAP_PX = 10;
/** More cannot be told apart in one view. */
const VERTICES_MAX = 5_000;

/** The vertices in a box that a draft may share; none of the area that is edited. */
export function verticesIn(
  areas: readonly Pick<Area, 'id' | 'type' | 'points'>[],
  edited: number | null,
  { west, south, east, north }: Box,
): LatLng[] {
  const width = east >= west ? east - west : east - west + 360;
  const found: LatLng[] = [];
  for (const { id, type, points } of areas) {
    if (id === edited || (type !== 'polygon' && type !== 'polyline')) continue;
    for (const point of points) {
      const isIn =
        point.lat >= south &&
        point.lat <= north &&
        point.lng - west - 360 * Math.floor((point.lng - west) / 360) <= width;
      if (isIn) found.push(point);
      if (found.length === VERTICES_MAX) return found;
    }
  }
  return found;
}

/** The vertex at most ten pixels away that is nearest, or the place itself. `worldPx` is the width of the world. */
export function snapped(at: LatLng, vertices: readonly LatLng[], worldPx: number): LatLng {
  const pxPerDegree = worldPx / 360;
  const stretch = 1 / Math.cos((at.lat * Math.PI) / 180);
  let nearest = at;
  let leastPx = SNAP_PX;
  for (const vertex of vertices) {
    const turns = Math.round((vertex.lng - at.lng) / 360);
    const px = Math.hypot(vertex.lng - 360 * turns - at.lng, (vertex.lat - at.lat) * stretch) * pxPerDegree;
    if (px > leastPx) continue;
    leastPx = px;
    nearest = vertex;
  }
  return nearest;
}
