// Geometries of GeoJSON, sound or not, from their positions [lng, lat].

export const path = <Position>(...positions: Position[]): Position[] => positions;
export const multiPoint = (...coordinates: unknown[]) => ({ type: 'MultiPoint', coordinates });
export const lineString = (...coordinates: unknown[]) => ({ type: 'LineString', coordinates });
export const multiLineString = (...coordinates: unknown[]) => ({ type: 'MultiLineString', coordinates });
export const polygon = (...coordinates: unknown[]) => ({ type: 'Polygon', coordinates });
export const multiPolygon = (...coordinates: unknown[]) => ({ type: 'MultiPolygon', coordinates });

export const POINT = { type: 'Point', coordinates: [12.5, 41.9] };
export const LINE = lineString([12.4, 41.9], [12.5, 42]);
export const RING = path([12.4, 41.9], [12.5, 41.9], [12.5, 42], [12.4, 42], [12.4, 41.9]);
export const FAR_RING = RING.map(([lng, lat]) => [lng! + 1, lat!]);
export const HOLE = path([12.44, 41.94], [12.46, 41.94], [12.46, 41.96], [12.44, 41.94]);
export const BOW_TIE = path([0, 0], [1, 1], [1, 0], [0, 1], [0, 0]);
export const POLYGON = polygon(RING);

export const collection = (...features: unknown[]) => ({ type: 'FeatureCollection', features });
