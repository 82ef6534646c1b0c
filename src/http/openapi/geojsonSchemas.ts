import type { AreaFeature, AreaProperties } from '../../areas/geojsonOut.ts';
import { AREA_FACTS } from './areaSchemas.ts';
import { ID } from './commonSchemas.ts';
import { choice, list, nullable, number, ref, type Schema, shapeOf } from './schema.ts';

const POSITION: Schema = {
  type: 'array',
  description: '[longitude, latitude]; more numbers are ignored.',
  items: { type: 'number' },
  minItems: 2,
};

/** A geometry of RFC 7946 whose coordinates are nested so deep: 0 is one position. */
function geometry(type: string, depth: number): Schema {
  let coordinates: Schema = POSITION;
  for (let level = 0; level < depth; level++) coordinates = list(coordinates);
  return shapeOf<{ type: string; coordinates: unknown }>({ type: choice([type]), coordinates });
}

const GEOMETRIES = {
  Point: geometry('Point', 0),
  LineString: geometry('LineString', 1),
  Polygon: geometry('Polygon', 2),
  MultiPoint: geometry('MultiPoint', 1),
  MultiLineString: geometry('MultiLineString', 2),
  MultiPolygon: geometry('MultiPolygon', 3),
};

const { type: _, ...FACTS } = AREA_FACTS;

export const GEOJSON_SCHEMAS = {
  GeoJsonGeometry: { oneOf: Object.values(GEOMETRIES) },
  GeoJsonFeature: {
    type: 'object',
    required: ['type', 'geometry'],
    properties: {
      type: choice(['Feature']),
      geometry: ref('GeoJsonGeometry'),
      properties: {
        type: 'object',
        nullable: true,
        description:
          'Read are name (or title), color (or stroke), type, radius, bufferDistance (or buffer_distance), external_id and dwell_seconds.',
      },
    },
  },
  GeoJsonFeatureCollection: {
    type: 'object',
    required: ['type', 'features'],
    properties: { type: choice(['FeatureCollection']), features: list(ref('GeoJsonFeature')) },
  },
  AreaFeature: shapeOf<AreaFeature>({
    type: choice(['Feature']),
    id: ID,
    geometry: {
      oneOf: [
        GEOMETRIES.Point,
        GEOMETRIES.LineString,
        GEOMETRIES.Polygon,
        GEOMETRIES.MultiLineString,
        GEOMETRIES.MultiPolygon,
      ],
      description: 'A Multi* geometry where the area crosses the antimeridian (RFC 7946, section 3.1.9).',
    },
    properties: shapeOf<AreaProperties>({
      id: ID,
      type: AREA_FACTS.type,
      ...FACTS,
      created_at: AREA_FACTS.created_at,
      radius: nullable(number('Metres, of circles and places.')),
      bufferDistance: nullable(number('Metres, of tracks.')),
    }),
  }),
  AreaFeatureCollection: shapeOf<{ type: string; features: readonly unknown[] }>({
    type: choice(['FeatureCollection']),
    features: list(ref('AreaFeature')),
  }),
} as const satisfies Readonly<Record<string, Schema>>;
