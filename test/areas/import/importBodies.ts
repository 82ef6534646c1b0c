import { lineString, path, polygon } from '../reads/geojson.ts';
// GeoJSON of every kind that an import may hold.

export const POINT = { type: 'Point', coordinates: [12.5, 41.9] };
export const LINE = lineString([12.4, 41.9], [12.5, 42]);
export const RING = path([12.4, 41.9], [12.5, 41.9], [12.5, 42], [12.4, 42], [12.4, 41.9]);
export const POLYGON = polygon(RING);
export const BOW_TIE = polygon(path([0, 0], [1, 1], [1, 0], [0, 1], [0, 0]));
export const HOLE = path([12.44, 41.94], [12.46, 41.94], [12.46, 41.96], [12.44, 41.94]);
export const FAR_RING = RING.map(([lng, lat]) => [lng! + 1, lat!]);

export const feature = (properties: object | null, geometry: unknown = POINT) => ({
  type: 'Feature',
  properties,
  geometry,
});
export const collection = (...features: unknown[]) => ({ type: 'FeatureCollection', features });
