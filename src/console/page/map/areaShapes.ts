import type { Feature, Geometry, Position } from 'geojson';
import type { Area, LatLng } from '../types.ts';

const EARTH_M = 6_371_008.8;
const EQUATOR_M = 40_075_017;
const CIRCLE_POINTS = 72;

/** The geometry of an area or of a draft of one. */
export type Shape = Pick<Area, 'type' | 'center' | 'radius_m' | 'buffer_m' | 'points'>;

/** The feature that is drawn; null while a draft has too few points. `widthPx` is that of a track at zoom 0. */
export function areaFeature(shape: Shape, properties: Readonly<Record<string, unknown>>): Feature | null {
  const geometry = geometryOf(shape);
  if (geometry === null) return null;
  return { type: 'Feature', properties: { ...properties, widthPx: trackWidthPx(shape) }, geometry };
}

/** West, south, east and north of an area; null while a draft has no place. */
export function areaBounds({ type, center, radius_m, points }: Shape): Bounds | null {
  if (type === 'polygon' || type === 'polyline') return boundsOf(points);
  if (center === null) return null;
  return boundsOf([0, 90, 180, 270].map((bearing) => destination(center, radius_m ?? 0, bearing)));
}

function geometryOf({ type, center, radius_m, points }: Shape): Geometry | null {
  if (type === 'circle' || type === 'point') {
    if (center === null || radius_m === null) return null;
    return { type: 'Polygon', coordinates: [circleRing(center, radius_m)] };
  }
  const way = unwrapped(points);
  if (way.length < 2) return null;
  if (type === 'polyline' || way.length < 3) return { type: 'LineString', coordinates: way };
  return { type: 'Polygon', coordinates: [[...way, way[0] as Position]] };
}

/** On a sphere: within half a per cent of the circle that counts. */
function circleRing(center: LatLng, radiusM: number): Position[] {
  const places = Array.from({ length: CIRCLE_POINTS }, (_, index) =>
    destination(center, radiusM, (index / CIRCLE_POINTS) * 360),
  );
  const ring = unwrapped(places);
  return [...ring, ring[0] as Position];
}

/** The place in a distance and direction, clockwise from north. */
export function destination({ lng, lat }: LatLng, distanceM: number, bearingDeg: number): LatLng {
  const angle = distanceM / EARTH_M;
  const bearing = rad(bearingDeg);
  const sinLat =
    Math.sin(rad(lat)) * Math.cos(angle) + Math.cos(rad(lat)) * Math.sin(angle) * Math.cos(bearing);
  const turn = Math.atan2(
    Math.sin(bearing) * Math.sin(angle) * Math.cos(rad(lat)),
    Math.cos(angle) - Math.sin(rad(lat)) * sinLat,
  );
  return { lng: lng + deg(turn), lat: deg(Math.asin(sinLat)) };
}

/** Metres between two places. */
export function distanceM(a: LatLng, b: LatLng): number {
  const half = (to: number, from: number): number => Math.sin(rad(to - from) / 2) ** 2;
  const squared = half(b.lat, a.lat) + Math.cos(rad(a.lat)) * Math.cos(rad(b.lat)) * half(b.lng, a.lng);
  return 2 * EARTH_M * Math.asin(Math.sqrt(Math.min(1, squared)));
}

function trackWidthPx({ type, buffer_m, points }: Shape): number {
  const lat = points[0]?.lat ?? 0;
  return type === 'polyline' ? (2 * (buffer_m ?? 0) * 512) / (EQUATOR_M * Math.cos(rad(lat))) : 0;
}

function rad(degrees: number): number {
  return (degrees * Math.PI) / 180;
}

function deg(radians: number): number {
  return (radians * 180) / Math.PI;
}

/** The line through the points as [lng, lat] pairs; lng continues beyond 180° instead of jumping to the other side. */
export function unwrapped(points: readonly LatLng[]): [number, number][] {
  let before = points[0]?.lng ?? 0;
  return points.map(({ lng, lat }) => {
    before += lng - before - 360 * Math.round((lng - before) / 360);
    return [before, lat];
  });
}

/** West, south, east and north. East is beyond 180° where they go across it. */
type Bounds = [west: number, south: number, east: number, north: number];

/** Around all points, the short way around the world; null without points. */
export function boundsOf(points: readonly LatLng[]): Bounds | null {
  if (points.length === 0) return null;
  const lngs = Float64Array.from(points, ({ lng }) => lng).sort();
  let west = lngs[0] as number;
  let east = lngs.at(-1) as number;
  let gap = west + 360 - east;
  for (let index = 1; index < lngs.length; index++) {
    const wider = (lngs[index] as number) - (lngs[index - 1] as number);
    if (wider <= gap) continue;
    gap = wider;
    west = lngs[index] as number;
    east = (lngs[index - 1] as number) + 360;
  }
  let south = 90;
  let north = -90;
  for (const { lat } of points) {
    south = Math.min(south, lat);
    north = Math.max(north, lat);
  }
  return [west, south, east, north];
}
