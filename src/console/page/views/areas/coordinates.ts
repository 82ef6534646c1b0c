import type { AreaBody } from '../../areaDraft.ts';
import type { LatLng } from '../../types.ts';

export type Coordinates =
  | {
      readonly ok: true;
      readonly change: Partial<AreaBody> & { readonly points: readonly LatLng[] };
      /** What of the text an area cannot have. */
      readonly note?: string;
    }
  | { readonly ok: false; readonly message: string };

/** One place a line, as `lat, lng`. */
export function formatCoordinates(points: readonly LatLng[]): string {
  return points.map(({ lat, lng }) => `${lat}, ${lng}`).join('\n');
}

/** What formatCoordinates gives, or GeoJSON: a Point, LineString or Polygon, alone or as a Feature. */
export function parseCoordinates(text: string): Coordinates {
  if (text.trim().startsWith('{')) return parseGeojson(text);
  const points: LatLng[] = [];
  for (const [index, line] of text.split('\n').entries()) {
    if (line.trim() === '') continue;
    const words = line.trim().split(/\s*[,;\s]\s*/);
    const [lat = Number.NaN, lng = Number.NaN] = words.map((word) =>
      word === '' ? Number.NaN : Number(word),
    );
    if (words.length !== 2 || !Number.isFinite(lat) || !Number.isFinite(lng))
      return { ok: false, message: `line ${index + 1} must be a latitude and a longitude, like 41.9, 12.5` };
    points.push({ lat, lng });
  }
  return { ok: true, change: { points } };
}

const NO_GEOJSON = {
  ok: false,
  message: 'this is no GeoJSON of a Point, a LineString or a Polygon, alone or as a Feature',
} as const;

function parseGeojson(text: string): Coordinates {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    return NO_GEOJSON;
  }
  const { geometry = json, properties } = json as { geometry?: unknown; properties?: unknown };
  const { type, coordinates } = (geometry ?? {}) as { type?: unknown; coordinates?: unknown };
  const { radius } = (properties ?? {}) as { radius?: unknown };
  if (type === 'Point') {
    const points = positions([coordinates]);
    if (points === null) return NO_GEOJSON;
    if (typeof radius !== 'number') return { ok: true, change: { type: 'point', points } };
    return { ok: true, change: { type: 'circle', radius_m: radius, points } };
  }
  if (type !== 'LineString' && type !== 'Polygon') return NO_GEOJSON;
  if (type === 'LineString') {
    const points = positions(coordinates);
    return points === null ? NO_GEOJSON : { ok: true, change: { type: 'polyline', points } };
  }
  const [outer, ...holes] = Array.isArray(coordinates) ? (coordinates as unknown[]) : [];
  const points = positions(outer);
  if (points === null) return NO_GEOJSON;
  const change = { type: 'polygon', points } as const;
  return holes.length === 0 ? { ok: true, change } : { ok: true, change, note: HOLES };
}

const HOLES = 'The holes of this polygon are left out: an area has none.';

/** GeoJSON has the longitude first. */
function positions(list: unknown): LatLng[] | null {
  if (!Array.isArray(list)) return null;
  const points = list.map((position) => {
    const [lng, lat] = Array.isArray(position) ? (position as unknown[]) : [];
    return typeof lng === 'number' && typeof lat === 'number' ? { lat, lng } : null;
  });
  return points.includes(null) ? null : (points as LatLng[]);
}
