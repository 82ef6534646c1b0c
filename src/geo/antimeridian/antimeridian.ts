import type { LatLng } from '../latLng.ts';
import type { Path } from '../path.ts';

// GeoJSON writes the antimeridian as 180 when it is approached from the west and as -180 from the east. The unwrapped
// longitudes of a Path go on beyond it, so the map repeats itself: world copy 0 is -180..180, world copy 1 the next
// 360° to the east, and so on.

/** The world copy of a vertex. One on the antimeridian belongs to the copy west of it. */
export function worldCopyOf(path: Path, vertex: number): number {
  return Math.ceil((path.lngs[vertex]! - 180) / 360);
}

/** A vertex as GeoJSON writes it within a world copy: as it was given, except for the choice between 180 and -180. */
export function pointInWorldCopy(path: Path, vertex: number, worldCopy: number): LatLng {
  const { points, lngs } = path;
  const point = points[vertex % points.length]!;
  if (Math.abs(point.lng) !== 180) return point;
  const lng = lngs[vertex]! - 360 * worldCopy;
  return lng === point.lng ? point : { lat: point.lat, lng };
}

/**
 * The latitude at which an edge crosses the antimeridian, from its ends west and east of it as GeoJSON writes them. The
 * result for an edge is always the same number, so that crossesAntimeridian can recognize what cutting has added.
 */
export function crossingLat(west: LatLng, east: LatLng): number {
  const westward = 180 - west.lng;
  const eastward = east.lng + 180;
  if (eastward === 0) return east.lat;
  const lat = west.lat + (westward / (westward + eastward)) * (east.lat - west.lat);
  return Math.min(Math.max(lat, Math.min(west.lat, east.lat)), Math.max(west.lat, east.lat));
}

/** Whether a point on the antimeridian is only where the edge from `west` to `east` crosses it, and can be removed. */
export function crossesAntimeridian(west: LatLng, lat: number, east: LatLng): boolean {
  // An edge of 180° or more would go the other way.
  return 360 + east.lng - west.lng < 180 && crossingLat(west, east) === lat;
}
