import { ID } from '../../http/openapi/commonSchemas.ts';
import {
  choice,
  integer,
  list,
  nullable,
  number,
  patternOf,
  ref,
  type Schema,
  shapeOf,
  text,
} from '../../http/openapi/schema.ts';
import { AREA_FACTS } from '../areaSchemas.ts';
import { AREA_LIMITS as LIMITS } from './areaLimits.ts';
import { EXTERNAL_ID } from './externalId.ts';
import type { AreaFeature, AreaProperties } from './geojsonOut.ts';

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

/** What an import reads of a Feature's properties, which may hold anything else beside it. */
const OWN_PROPERTIES: Schema = {
  type: 'object',
  nullable: true,
  description: 'What becomes of the area. Other properties are ignored, and null acts as not sent.',
  properties: {
    name: nullable(text('The name; an import needs one. Trimmed.')),
    title: nullable(text('The name, where `name` is missing.')),
    color: nullable(text('#rrggbb; any other notation is ignored.')),
    stroke: nullable(text('The color, where `color` is missing.')),
    type: { description: 'circle or point on a Point. Any other value is ignored.' },
    radius: nullable(number('Metres, on a Point: it makes a circle unless `type` is point.')),
    bufferDistance: nullable(number('Metres from a line that are still inside.')),
    buffer_distance: nullable(number('Metres, where `bufferDistance` is missing.')),
    external_id: nullable(text("The area's id in your own system.", { pattern: patternOf(EXTERNAL_ID) })),
    dwell_seconds: nullable(
      integer('Minimum stay before an entry is reported.', { minimum: 0, maximum: LIMITS.maxDwellSeconds }),
    ),
  },
  additionalProperties: true,
};

const BBOX: Schema = { type: 'array', description: 'Ignored.', items: { type: 'number' } };

export const GEOJSON_SCHEMAS = {
  GeoJsonGeometry: { oneOf: Object.values(GEOMETRIES) },
  GeoJsonFeature: {
    type: 'object',
    required: ['type', 'geometry'],
    properties: {
      type: choice(['Feature']),
      geometry: ref('GeoJsonGeometry'),
      properties: OWN_PROPERTIES,
      id: { description: 'Ignored.', oneOf: [text(), number()] },
      bbox: BBOX,
    },
  },
  GeoJsonFeatureCollection: {
    type: 'object',
    required: ['type', 'features'],
    properties: { type: choice(['FeatureCollection']), features: list(ref('GeoJsonFeature')), bbox: BBOX },
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
