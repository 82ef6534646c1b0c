import {
  choice,
  integer,
  LAT_LNG,
  list,
  nullable,
  number,
  ref,
  type Schema,
  shapeOf,
  text,
  time,
} from '../http/openapi/schema.ts';
import { BODY_INVALID, type FieldCode, type FieldError } from '../lib/result.ts';

// The fields of an area as they are sent and answered: their limits, what can be wrong with each, how each is described.

export const AREA_TYPES = ['circle', 'polygon', 'polyline', 'point'] as const;

/** As in the tables Area and Limits of the API document. */
export const AREA_LIMITS = {
  nameMaxCodePoints: 100,
  circleMinRadiusM: 25,
  maxRadiusM: 100_000,
  defaultPointRadiusM: 50,
  minBufferM: 5,
  maxBufferM: 5_000,
  defaultBufferM: 50,
  polygonMinPoints: 3,
  polylineMinPoints: 2,
  maxPoints: 2_000,
  maxDwellSeconds: 86_400,
} as const;

const LIMITS = AREA_LIMITS;

export const DEFAULT_COLOR = '#3b82f6';
export const COLOR = /^#[0-9a-fA-F]{6}$/;

/** Letters are ASCII: an external id then has one spelling in every encoding of a path and every database collation. */
export const EXTERNAL_ID = /^[A-Za-z0-9._:/@#-]{1,100}$/;

/** Compared exactly. */
export function isExternalId(value: unknown): value is string {
  return typeof value === 'string' && EXTERNAL_ID.test(value);
}

/** Every error that the fields of an area can have. Messages name the field: an import shows them without `field`. */
export const AREA_ERRORS = {
  bodyInvalid: BODY_INVALID,
  dryRunInvalid: error('dry_run', 'INVALID', 'must be true or false'),
  nameRequired: error('name', 'REQUIRED', 'is required: text that is not blank'),
  nameTooLong: error('name', 'TOO_LONG', `has more than ${LIMITS.nameMaxCodePoints} characters`),
  nameInvalid: error('name', 'INVALID', 'holds control characters or half a character'),
  typeInvalid: error('type', 'INVALID', 'must be circle, polygon, polyline or point'),
  typeMisfit: error('type', 'INVALID', 'does not fit the geometry in geojson'),
  colorInvalid: error('color', 'INVALID', 'must be like #3b82f6'),
  centerRequired: error('center', 'REQUIRED', 'is required on a circle or point'),
  centerInvalid: error(
    'center',
    'INVALID_COORDINATES',
    'must have a number lat from -90 to 90 and a number lng from -180 to 180',
  ),
  radiusRequired: error('radius_m', 'REQUIRED', 'is required on a circle'),
  circleRadiusOutOfRange: error(
    'radius_m',
    'OUT_OF_RANGE',
    `must be a number from ${LIMITS.circleMinRadiusM} to ${LIMITS.maxRadiusM} on a circle`,
  ),
  pointRadiusOutOfRange: error(
    'radius_m',
    'OUT_OF_RANGE',
    `must be a number above 0, at most ${LIMITS.maxRadiusM}`,
  ),
  bufferOutOfRange: error(
    'buffer_m',
    'OUT_OF_RANGE',
    `must be a number from ${LIMITS.minBufferM} to ${LIMITS.maxBufferM}`,
  ),
  pointsInvalid: {
    field: 'points',
    code: 'INVALID_COORDINATES',
    message: 'each of points must have a number lat from -90 to 90 and a number lng from -180 to 180',
  },
  pointsTooFew: error(
    'points',
    'TOO_FEW_POINTS',
    `must be at least ${LIMITS.polygonMinPoints} on a polygon, ${LIMITS.polylineMinPoints} on a polyline, not counting coinciding ones`,
  ),
  pointsTooMany: error('points', 'TOO_MANY_POINTS', `must be at most ${LIMITS.maxPoints}`),
  selfIntersection: error(
    'points',
    'SELF_INTERSECTION',
    'form a polygon whose sides cross, touch or overlap',
  ),
  externalIdInvalid: error(
    'external_id',
    'INVALID',
    'must be 1 to 100 characters from A-Z a-z 0-9 . _ : / @ # -',
  ),
  externalIdMismatch: error('external_id', 'MISMATCH', 'differs from the one in the path'),
  externalIdTaken: error('external_id', 'TAKEN', 'is used by another area'),
  dwellOutOfRange: error(
    'dwell_seconds',
    'OUT_OF_RANGE',
    `must be a whole number from 0 to ${LIMITS.maxDwellSeconds}`,
  ),
  geojsonInvalid: error('geojson', 'INVALID_GEOJSON', 'holds no geometry that makes one area'),
  importInvalid: {
    field: 'geojson',
    code: 'INVALID_GEOJSON',
    message: 'the body is not a GeoJSON FeatureCollection, Feature or Geometry',
  },
  tooManyAreas: {
    field: null,
    code: 'LIMIT_REACHED',
    message: 'the account has as many areas as its plan allows',
  },
  tooManyVertices: {
    field: null,
    code: 'LIMIT_REACHED',
    message: 'the areas of the account would have more vertices than its plan allows',
  },
} as const satisfies Readonly<Record<string, FieldError>>;

function error(field: string, code: FieldCode, words: string): FieldError {
  return { field, code, message: `${field} ${words}` };
}

/** What is worth knowing about an area that was accepted all the same. `code` is on the wire and fixed. */
export interface AreaWarning {
  readonly code: WarningCode;
  readonly message: string;
}

export const AREA_WARNINGS = {
  warnHolesIgnored: {
    code: 'warnHolesIgnored',
    message: 'interior rings of the polygon are ignored: the area has no holes',
  },
  warnSimplifiedDuplicates: {
    code: 'warnSimplifiedDuplicates',
    message: 'vertices closer than 0.1 m to the one before them were dropped',
  },
  warnVerySmallArea: { code: 'warnVerySmallArea', message: 'the area is smaller than 100 m²' },
  warnVeryLargeArea: { code: 'warnVeryLargeArea', message: 'the area is larger than 10 000 km²' },
} as const;

export type WarningCode = keyof typeof AREA_WARNINGS;

/** How the fields are described wherever they are sent or answered; some have a narrower range on one type. */
export const FIELD_SCHEMAS = {
  name: text('Trimmed; no control characters.', { minLength: 1, maxLength: LIMITS.nameMaxCodePoints }),
  type: choice(AREA_TYPES),
  color: text('#rrggbb', { pattern: COLOR.source }),
  center: LAT_LNG,
  circle_radius_m: number('Metres.', { minimum: LIMITS.circleMinRadiusM, maximum: LIMITS.maxRadiusM }),
  radius_m: number('Metres.', { minimum: 0, exclusiveMinimum: true, maximum: LIMITS.maxRadiusM }),
  buffer_m: number('Metres from the line that are still inside.', {
    minimum: LIMITS.minBufferM,
    maximum: LIMITS.maxBufferM,
  }),
  points: pointsSchema(0, 'Of a polygon or polyline.'),
  polygon_points: pointsSchema(
    LIMITS.polygonMinPoints,
    'The ring, in either direction; a closing repetition is dropped. Its sides must not cross.',
  ),
  polyline_points: pointsSchema(LIMITS.polylineMinPoints, 'The line.'),
  external_id: text("The area's id in the caller's own system, unique in its account.", {
    pattern: EXTERNAL_ID.source,
  }),
  dwell_seconds: integer('Minimum stay before an entry is reported; 0: at once.', {
    minimum: 0,
    maximum: LIMITS.maxDwellSeconds,
  }),
} as const satisfies Readonly<Record<string, Schema>>;

function pointsSchema(minItems: number, description: string): Schema {
  return list(ref('LatLng'), { minItems, maxItems: LIMITS.maxPoints, description });
}

/** What every answer has of an area beside its geometry. */
export const AREA_FACTS = {
  name: FIELD_SCHEMAS.name,
  color: FIELD_SCHEMAS.color,
  type: FIELD_SCHEMAS.type,
  external_id: nullable(FIELD_SCHEMAS.external_id),
  dwell_seconds: FIELD_SCHEMAS.dwell_seconds,
  metrics: shapeOf<{ area_m2: unknown; perimeter_m: unknown; length_m: unknown }>({
    area_m2: nullable(number('Of polygons and circles.')),
    perimeter_m: nullable(number('Of polygons and circles.')),
    length_m: nullable(number('Of polylines.')),
  }),
  created_at: nullable(time()),
};
