import { type AreaGeometry, toVertices } from '../../../src/areas/area.ts';
import { completeDraft, parseDraft } from '../../../src/areas/areaDraft.ts';
import { POLYGON, TRACK, validArea } from '../../support/http/areas.ts';

export const at = (lat: number, lng: number) => ({ lat, lng });
export const SQUARE = POLYGON.points;
export const BOW_TIE = [at(41.9, 12.4), at(42, 12.5), at(41.9, 12.5), at(42, 12.4)];
/** What becomes of the areas above, with other measures. */
export const circleOf = (radiusM = 500, center = at(41.9, 12.5)): AreaGeometry => ({
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

export const geometryOf = (body: unknown): AreaGeometry => validArea(body).definition.geometry;
export const wrapped = (geojson: unknown, fields: object = {}) => ({ name: 'G', ...fields, geojson });
export const feature = (geometry: unknown, properties: unknown) => ({
  type: 'Feature',
  geometry,
  properties,
});
