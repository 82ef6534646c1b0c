import { openRing, simplify, unwrapRing } from '../geo/path.ts';
import { isSelfIntersecting } from '../geo/selfIntersection.ts';
import { isLatLng, type LatLng } from '../geo/wgs84.ts';
import {
  choice,
  integer,
  LAT_LNG,
  list,
  nullable,
  number,
  patternOf,
  ref,
  type Schema,
  shapeOf,
  text,
  time,
} from '../http/openapi/schema.ts';
import { BODY_INVALID, type FieldCode, type FieldError } from '../lib/fieldError.ts';
import { parseNameText } from '../lib/nameText.ts';
import { isJsonObject, isMissing } from '../lib/parseJson.ts';
import { fail, ok, type Result } from '../lib/result.ts';
import { AREA_TYPES, type AreaType, toVertices, type Vertices } from './area.ts';

// The fields of an area as they are sent: their limits, what can be wrong with each, how each is read and described.

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
const COLOR = /^#[0-9a-fA-F]{6}$/;

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
    message: 'the body is no GeoJSON FeatureCollection, Feature or Geometry',
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

/** A field of a body: undefined when not sent (or null), otherwise its value, or what is wrong with it. */
export type Sent<T> = Result<T, FieldError> | undefined;

/** How the fields are described wherever they are sent or answered; some have a narrower range on one type. */
export const FIELD_SCHEMAS = {
  name: text('Trimmed; no control characters.', { minLength: 1, maxLength: LIMITS.nameMaxCodePoints }),
  type: choice(AREA_TYPES),
  color: text('#rrggbb', { pattern: patternOf(COLOR) }),
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
    pattern: patternOf(EXTERNAL_ID),
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

/** Trimmed text of 1 to 100 code points that Postgres can store: no control characters, no lone surrogates. */
export function readName(value: unknown): Sent<string> {
  if (isMissing(value)) return undefined;
  if (typeof value !== 'string') return fail(AREA_ERRORS.nameRequired);
  const name = parseNameText(value, LIMITS.nameMaxCodePoints);
  return name.ok ? name : fail(NAME_ERRORS[name.error]);
}

const NAME_ERRORS = {
  blank: AREA_ERRORS.nameRequired,
  not_plain: AREA_ERRORS.nameInvalid,
  too_long: AREA_ERRORS.nameTooLong,
};

/** #rrggbb in either case. */
export function readColor(value: unknown): Sent<string> {
  if (isMissing(value)) return undefined;
  return typeof value === 'string' && COLOR.test(value) ? ok(value) : fail(AREA_ERRORS.colorInvalid);
}

export function readType(value: unknown): Sent<AreaType> {
  if (isMissing(value)) return undefined;
  const type = AREA_TYPES.find((known) => known === value);
  return type ? ok(type) : fail(AREA_ERRORS.typeInvalid);
}

/** An external id; here null is sent: it removes the stored one. */
export function readExternalId(value: unknown): Sent<string | null> {
  if (value === undefined) return undefined;
  return value === null || isExternalId(value) ? ok(value) : fail(AREA_ERRORS.externalIdInvalid);
}

export function readDwellSeconds(value: unknown): Sent<number> {
  if (isMissing(value)) return undefined;
  const isSound = Number.isInteger(value) && isWithin(value as number, 0, LIMITS.maxDwellSeconds);
  return isSound ? ok((value as number) + 0) : fail(AREA_ERRORS.dwellOutOfRange);
}

/** A radius or buffer as sent, because its range depends on the type; NaN, which no range has, for anything else. */
export function readNumber(value: unknown): number | undefined {
  if (isMissing(value)) return undefined;
  return typeof value === 'number' ? value : Number.NaN;
}

/** What is wrong with a radius for this type; null: nothing. */
export function radiusError(type: 'circle' | 'point', radiusM: number | undefined): FieldError | null {
  if (radiusM === undefined) return AREA_ERRORS.radiusRequired;
  if (type === 'circle') {
    const isSound = isWithin(radiusM, LIMITS.circleMinRadiusM, LIMITS.maxRadiusM);
    return isSound ? null : AREA_ERRORS.circleRadiusOutOfRange;
  }
  return radiusM > 0 && radiusM <= LIMITS.maxRadiusM ? null : AREA_ERRORS.pointRadiusOutOfRange;
}

export function bufferError(bufferM: number): FieldError | null {
  return isWithin(bufferM, LIMITS.minBufferM, LIMITS.maxBufferM) ? null : AREA_ERRORS.bufferOutOfRange;
}

const isWithin = (value: number, min: number, max: number) => value >= min && value <= max;

export function readCenter(value: unknown): Sent<LatLng> {
  if (isMissing(value)) return undefined;
  const center = readLatLng(value);
  return center ? ok(center) : fail(AREA_ERRORS.centerInvalid);
}

/** The positions as sent; what is not an array holds too few. */
export function readPositions(value: unknown): Sent<LatLng[]> {
  if (isMissing(value)) return undefined;
  if (!Array.isArray(value)) return fail(AREA_ERRORS.pointsTooFew);
  const positions: LatLng[] = [];
  for (const element of value) {
    const position = readLatLng(element);
    if (!position) return fail(AREA_ERRORS.pointsInvalid);
    positions.push(position);
  }
  return ok(positions);
}

/** {lat, lng} with both in range, -0 as 0; null for anything else. */
function readLatLng(value: unknown): LatLng | null {
  if (!isJsonObject(value)) return null;
  const { lat, lng } = value;
  if (typeof lat !== 'number' || typeof lng !== 'number' || !isLatLng(lat, lng)) return null;
  return { lat: lat + 0, lng: lng + 0 };
}

export interface ValidPoints {
  readonly points: Vertices;
  /** Nearly coincident vertices were dropped. */
  readonly simplified: boolean;
}

/**
 * The points as an area of that type stores them, or the first error: too many, too few once nearly coincident ones are
 * dropped, or edges that meet. The repeated last point of a polygon does not count.
 */
export function validatePoints(
  type: 'polygon' | 'polyline',
  positions: readonly LatLng[],
): Result<ValidPoints, FieldError> {
  const isPolygon = type === 'polygon';
  const open = isPolygon ? openRing(positions) : positions;
  if (open.length > LIMITS.maxPoints) return fail(AREA_ERRORS.pointsTooMany);
  const { points, dropped } = simplify(open, isPolygon);
  if (points.length < (isPolygon ? LIMITS.polygonMinPoints : LIMITS.polylineMinPoints)) {
    return fail(AREA_ERRORS.pointsTooFew);
  }
  if (isPolygon && isSelfIntersecting(unwrapRing(points))) return fail(AREA_ERRORS.selfIntersection);
  return ok({ points: toVertices(points), simplified: dropped });
}
