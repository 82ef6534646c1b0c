import { POINT } from '../reads/geojson.ts';

export const feature = (properties: object | null, geometry: unknown = POINT) => ({
  type: 'Feature',
  properties,
  geometry,
});
