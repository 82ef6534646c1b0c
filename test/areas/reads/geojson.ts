// Geometries of GeoJSON, sound or not, from their positions [lng, lat].

export const path = <Position>(...positions: Position[]): Position[] => positions;
export const multiPoint = (...coordinates: unknown[]) => ({ type: 'MultiPoint', coordinates });
export const lineString = (...coordinates: unknown[]) => ({ type: 'LineString', coordinates });
export const multiLineString = (...coordinates: unknown[]) => ({ type: 'MultiLineString', coordinates });
export const polygon = (...coordinates: unknown[]) => ({ type: 'Polygon', coordinates });
export const multiPolygon = (...coordinates: unknown[]) => ({ type: 'MultiPolygon', coordinates });
