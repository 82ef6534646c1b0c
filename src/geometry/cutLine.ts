import type { LatLng } from './latLng.ts';
import type { Path } from './path.ts';
import { panelOf, pointInPanel, seamLat } from './seam.ts';

/**
 * A track as GeoJSON lines that do not cross the antimeridian (RFC 7946, 3.1.9): one when it does not either, else a
 * part for each crossing more. A track that only touches the antimeridian is not cut there.
 */
export function cutLine(path: Path): LatLng[][] {
  const count = path.lngs.length;
  let panel = firstPanel(path);
  let part: LatLng[] = [pointInPanel(path, 0, panel)];
  const parts = [part];
  for (let i = 1; i < count; i++) {
    const eastward = path.lngs[i]! > 180 + 360 * panel;
    const westward = path.lngs[i]! < -180 + 360 * panel;
    if (eastward || westward) {
      const next = panel + (eastward ? 1 : -1);
      const from = part[part.length - 1]!;
      const to = pointInPanel(path, i, next);
      const lat = eastward ? seamLat(from, to) : seamLat(to, from);
      const edge = eastward ? 180 : -180;
      if (from.lng !== edge) part.push({ lat, lng: edge });
      part = [{ lat, lng: -edge }];
      parts.push(part);
      panel = next;
    }
    part.push(pointInPanel(path, i, panel));
  }
  return parts;
}

/** The panel of the first vertex that is not on a seam; those before it lie on one of its edges. */
function firstPanel(path: Path): number {
  for (let i = 0; i < path.lngs.length; i++) {
    if ((path.lngs[i]! - 180) % 360 !== 0) return panelOf(path, i);
  }
  return 0;
}
