import assert from 'node:assert/strict';
import { type AreaGeometry, toVertices } from '../../../src/areas/area.ts';
import { completeDraft, parseDraft, type ValidArea } from '../../../src/areas/areaDraft.ts';
import { lineString, path } from '../reads/geojson.ts';

export const at = (lat: number, lng: number) => ({ lat, lng });
export const SQUARE = [at(41.9, 12.4), at(41.9, 12.5), at(42, 12.5), at(42, 12.4)];
export const BOW_TIE = [at(41.9, 12.4), at(42, 12.5), at(41.9, 12.5), at(42, 12.4)];
export const CIRCLE = { name: 'Depot', type: 'circle', center: at(41.9, 12.5), radius_m: 200 };
export const PLACE = { name: 'Stop', type: 'point', center: at(41.9, 12.5) };
export const POLYGON = { name: 'Zone', type: 'polygon', points: SQUARE };
export const TRACK = { name: 'Route', type: 'polyline', points: [at(41.9, 12.4), at(42, 12.5)] };
export const LINE = lineString([12.4, 41.9], [12.5, 42]);
export const RING = path([12.4, 41.9], [12.5, 41.9], [12.5, 42], [12.4, 42], [12.4, 41.9]);
/** What becomes of the areas above, with other measures. */
export const circleOf = (radiusM = 200, center = at(41.9, 12.5)): AreaGeometry => ({
  type: 'circle',
  center,
  radiusM,
});
export const placeOf = (radiusM = 50): AreaGeometry =>
  ({ ...circleOf(radiusM), type: 'point' }) as AreaGeometry;
export const polygonOf = (points = SQUARE): AreaGeometry => ({ type: 'polygon', points: toVertices(points) });
export const trackOf = (bufferM = 50, points = TRACK.points): AreaGeometry => ({
  type: 'polyline',
  points: toVertices(points),
  bufferM,
});
export const SPIRAL = Array.from({ length: 2_002 }, (_, i) => at(i / 100, (i % 2) / 100));

/** "field code" of every error, or what is not in the area as it was expected. */
export function errorsOf(body: unknown): string[] {
  const draft = parseDraft(body);
  const completed = draft.ok ? completeDraft(draft.value) : draft;
  return completed.ok ? [] : completed.error.map(({ field, code }) => `${field} ${code}`);
}

export function create(body: unknown): ValidArea {
  const draft = parseDraft(body);
  assert.ok(draft.ok);
  const completed = completeDraft(draft.value);
  assert.ok(completed.ok, JSON.stringify(completed));
  return completed.value;
}

export const geometryOf = (body: unknown): AreaGeometry => create(body).definition.geometry;
export const wrapped = (geojson: unknown, fields: object = {}) => ({ name: 'G', ...fields, geojson });
export const feature = (geometry: unknown, properties: unknown) => ({
  type: 'Feature',
  geometry,
  properties,
});
