import { LAT_LNG } from '../../http/openapi/commonSchemas.ts';
import {
  choice,
  defaulting,
  integer,
  list,
  nullable,
  number,
  patternOf,
  ref,
  type Schema,
  text,
} from '../../http/openapi/schema.ts';
import { AREA_TYPES, type AreaType } from '../area.ts';
import { DEFAULT_COLOR, AREA_LIMITS as LIMITS } from './areaLimits.ts';
import { EXTERNAL_ID } from './externalId.ts';
import { COLOR } from './sentFields.ts';

// null acts as not sent, except in external_id, where it removes the code.

const NAME = text('Trimmed; no control characters.', { minLength: 1, maxLength: LIMITS.nameMaxCodePoints });

/** What may be sent beside every geometry. */
const OPTIONAL = {
  color: defaulting(nullable(text('#rrggbb.', { pattern: patternOf(COLOR) })), DEFAULT_COLOR),
  external_id: nullable(
    text("The area's code in the caller's own system, unique in its account.", {
      pattern: patternOf(EXTERNAL_ID),
    }),
  ),
  dwell_seconds: defaulting(
    nullable(
      integer('Minimum stay before an entry is reported; 0: at once.', {
        minimum: 0,
        maximum: LIMITS.maxDwellSeconds,
      }),
    ),
    0,
  ),
};

const CIRCLE_RADIUS = number('Metres.', { minimum: LIMITS.circleMinRadiusM, maximum: LIMITS.maxRadiusM });
const PLACE_RADIUS = number('Metres.', { minimum: 0, exclusiveMinimum: true, maximum: LIMITS.maxRadiusM });
const BUFFER = number('Metres from the line that are still inside.', {
  minimum: LIMITS.minBufferM,
  maximum: LIMITS.maxBufferM,
});

function points(minItems: number, description: string): Schema {
  return list(ref('LatLng'), { minItems, maxItems: LIMITS.maxPoints, description });
}

const POLYGON_POINTS = points(
  LIMITS.polygonMinPoints,
  'The ring, in either direction; a closing repetition is dropped. Its sides must not cross.',
);

/** A new area of this type: `required` must be there and the rest may. */
function inputOf(
  type: AreaType,
  required: Readonly<Record<string, Schema>>,
  optional: Readonly<Record<string, Schema>> = {},
): Schema {
  const own = { name: NAME, type: choice([type]), ...required };
  return {
    type: 'object',
    required: Object.keys(own),
    properties: { ...own, ...optional, ...OPTIONAL },
  };
}

const GEOJSON: Schema = { oneOf: [ref('GeoJsonFeature'), ref('GeoJsonGeometry')] };

/** Bodies that create or change one area. Fields of another type are ignored, so what was read may be sent back. */
export const AREA_INPUT_SCHEMAS = {
  CircleInput: inputOf('circle', { center: LAT_LNG, radius_m: CIRCLE_RADIUS }),
  PlaceInput: inputOf(
    'point',
    { center: LAT_LNG },
    { radius_m: defaulting(nullable(PLACE_RADIUS), LIMITS.defaultPlaceRadiusM) },
  ),
  PolygonInput: inputOf('polygon', { points: POLYGON_POINTS }),
  TrackInput: inputOf(
    'polyline',
    { points: points(LIMITS.polylineMinPoints, 'The line.') },
    { buffer_m: defaulting(nullable(BUFFER), LIMITS.defaultBufferM) },
  ),
  GeoJsonInput: {
    type: 'object',
    description:
      'A Point becomes a place (a circle when properties.radius is there), a LineString a track, a Polygon a polygon. What stands beside `geojson` wins over its properties.',
    required: ['geojson'],
    properties: {
      geojson: GEOJSON,
      name: nullable(NAME),
      type: nullable(choice(AREA_TYPES)),
      radius_m: nullable(PLACE_RADIUS),
      buffer_m: nullable(BUFFER),
      ...OPTIONAL,
    },
  },
  AreaInput: {
    oneOf: [
      ref('CircleInput'),
      ref('PlaceInput'),
      ref('PolygonInput'),
      ref('TrackInput'),
      ref('GeoJsonInput'),
    ],
  },
  AreaChange: {
    type: 'object',
    description:
      'Only what is sent changes. Another type needs its whole geometry. `external_id: null` removes the code; null elsewhere acts as not sent.',
    properties: {
      name: nullable(NAME),
      type: nullable(choice(AREA_TYPES)),
      center: nullable(LAT_LNG),
      radius_m: nullable(PLACE_RADIUS),
      buffer_m: nullable(BUFFER),
      points: nullable(points(0, 'Of a polygon or track.')),
      geojson: { ...GEOJSON, description: 'The geometry as GeoJSON, in place of center or points.' },
      color: OPTIONAL.color,
      external_id: OPTIONAL.external_id,
      dwell_seconds: OPTIONAL.dwell_seconds,
    },
  },
} as const satisfies Readonly<Record<string, Schema>>;
