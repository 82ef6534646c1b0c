import type { LatLng } from '../latLng.ts';
import type { Path } from '../path.ts';
import { crossingLat, pointInWorldCopy, worldCopyOf } from './antimeridian.ts';

/**
 * A track as GeoJSON lines that do not cross the antimeridian (RFC 7946, 3.1.9): one line, plus one for each crossing.
 * A track that only touches the antimeridian is not cut there.
 */
export function cutLine(path: Path): LatLng[][] {
  const count = path.lngs.length;
  let worldCopy = firstWorldCopy(path);
  let part: LatLng[] = [pointInWorldCopy(path, 0, worldCopy)];
  const parts = [part];
  for (let i = 1; i < count; i++) {
    const isEastward = path.lngs[i]! > 180 + 360 * worldCopy;
    const isWestward = path.lngs[i]! < -180 + 360 * worldCopy;
    if (isEastward || isWestward) {
      const next = worldCopy + (isEastward ? 1 : -1);
      const from = part[part.length - 1]!;
      const to = pointInWorldCopy(path, i, next);
      const lat = isEastward ? crossingLat(from, to) : crossingLat(to, from);
      const edge = isEastward ? 180 : -180;
      if (from.lng !== edge) part.push({ lat, lng: edge });
      part = [{ lat, lng: -edge }];
      parts.push(part);
      worldCopy = next;
    }
    part.push(pointInWorldCopy(path, i, worldCopy));
  }
  return parts;
}

/** The world copy of the first vertex that is not on the antimeridian; those before it lie on an edge of that copy. */
function firstWorldCopy(path: Path): number {
  for (let i = 0; i < path.lngs.length; i++) {
    if ((path.lngs[i]! - 180) % 360 !== 0) return worldCopyOf(path, i);
  }
  return 0;
}
