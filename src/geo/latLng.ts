/**
 * A position in degrees on WGS84: lat -90 to 90, lng -180 to 180. GeoJSON's [lng, lat] order stays in the geojson
 * files.
 */
export interface LatLng {
  readonly lat: number;
  readonly lng: number;
}

/**
 * True when both are finite numbers inside the ranges of the API document (lat -90..90, lng -180..180, ends included).
 */
export function isLatLng(lat: unknown, lng: unknown): boolean {
  return typeof lat === 'number' && typeof lng === 'number' && Math.abs(lat) <= 90 && Math.abs(lng) <= 180;
}
