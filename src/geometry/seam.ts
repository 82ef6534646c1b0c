import type { LatLng } from './latLng.ts';
import type { Path } from './path.ts';

// The seam of a GeoJSON map: the antimeridian, under its names 180 (seen from the west) and -180 (from the east).
// A path's map goes on beyond it; panel 0 is -180..180, panel 1 the next turn eastward, and so on.

/** The panel of a vertex. One on the seam belongs to the panel west of it, as if the seam lay a hair further east. */
export function panelOf(path: Path, vertex: number): number {
  return Math.ceil((path.lngs[vertex]! - 180) / 360);
}

/** A vertex as GeoJSON writes it within a panel: as it was given, but for the choice between 180 and -180. */
export function pointInPanel(path: Path, vertex: number, panel: number): LatLng {
  const { points, lngs } = path;
  const point = points[vertex % points.length]!;
  if (Math.abs(point.lng) !== 180) return point;
  const lng = lngs[vertex]! - 360 * panel;
  return lng === point.lng ? point : { lat: point.lat, lng };
}

/**
 * The latitude at which an edge crosses the seam, from its ends as GeoJSON writes them west and east of it. The same
 * number for the same edge always: isSeamCrossing recognizes by it what cutting has put in.
 */
export function seamLat(west: LatLng, east: LatLng): number {
  const westward = 180 - west.lng;
  const eastward = east.lng + 180;
  if (eastward === 0) return east.lat;
  const lat = west.lat + (westward / (westward + eastward)) * (east.lat - west.lat);
  return Math.min(Math.max(lat, Math.min(west.lat, east.lat)), Math.max(west.lat, east.lat));
}

/** Whether a point of the seam is only where the edge from `west` to `east` crosses it, and can be left out. */
export function isSeamCrossing(west: LatLng, lat: number, east: LatLng): boolean {
  // An edge of 180° or more would go the other way.
  return 360 + east.lng - west.lng < 180 && seamLat(west, east) === lat;
}
