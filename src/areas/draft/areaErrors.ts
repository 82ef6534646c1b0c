import { BODY_INVALID, type FieldError } from '../../lib/fieldError.ts';
import { AREA_LIMITS as LIMITS } from './areaLimits.ts';

/** Every error that the fields of an area can have. Messages name the field: an import shows them without `field`. */
export const AREA_ERRORS = {
  bodyInvalid: BODY_INVALID,
  dryRunInvalid: { field: 'dry_run', code: 'INVALID', message: 'dry_run must be true or false' },
  nameRequired: { field: 'name', code: 'REQUIRED', message: 'name is required: text that is not blank' },
  nameTooLong: {
    field: 'name',
    code: 'TOO_LONG',
    message: `name has more than ${LIMITS.nameMaxCodePoints} characters`,
  },
  nameInvalid: {
    field: 'name',
    code: 'INVALID',
    message: 'name holds control characters or half a character',
  },
  typeInvalid: {
    field: 'type',
    code: 'INVALID',
    message: 'type must be circle, polygon, polyline or point',
  },
  typeMisfit: { field: 'type', code: 'INVALID', message: 'type does not fit the geometry in geojson' },
  colorInvalid: { field: 'color', code: 'INVALID', message: 'color must be like #3b82f6' },
  centerRequired: { field: 'center', code: 'REQUIRED', message: 'center is required on a circle or point' },
  centerInvalid: {
    field: 'center',
    code: 'INVALID_COORDINATES',
    message: 'center must have a number lat from -90 to 90 and a number lng from -180 to 180',
  },
  radiusRequired: { field: 'radius_m', code: 'REQUIRED', message: 'radius_m is required on a circle' },
  circleRadiusOutOfRange: {
    field: 'radius_m',
    code: 'OUT_OF_RANGE',
    message: `radius_m must be a number from ${LIMITS.circleMinRadiusM} to ${LIMITS.maxRadiusM} on a circle`,
  },
  placeRadiusOutOfRange: {
    field: 'radius_m',
    code: 'OUT_OF_RANGE',
    message: `radius_m must be a number above 0, at most ${LIMITS.maxRadiusM}`,
  },
  bufferOutOfRange: {
    field: 'buffer_m',
    code: 'OUT_OF_RANGE',
    message: `buffer_m must be a number from ${LIMITS.minBufferM} to ${LIMITS.maxBufferM}`,
  },
  pointsInvalid: {
    field: 'points',
    code: 'INVALID_COORDINATES',
    message: 'each of points must have a number lat from -90 to 90 and a number lng from -180 to 180',
  },
  pointsTooFew: {
    field: 'points',
    code: 'TOO_FEW_POINTS',
    message: `points must be at least ${LIMITS.polygonMinPoints} on a polygon, ${LIMITS.polylineMinPoints} on a polyline, not counting coinciding ones`,
  },
  pointsTooMany: {
    field: 'points',
    code: 'TOO_MANY_POINTS',
    message: `points must be at most ${LIMITS.maxPoints}`,
  },
  selfIntersection: {
    field: 'points',
    code: 'SELF_INTERSECTION',
    message: 'points form a polygon whose sides cross, touch or overlap',
  },
  externalIdInvalid: {
    field: 'external_id',
    code: 'INVALID',
    message: 'external_id must be 1 to 100 characters from A-Z a-z 0-9 . _ : / @ # -',
  },
  externalIdMismatch: {
    field: 'external_id',
    code: 'MISMATCH',
    message: 'external_id differs from the one in the path',
  },
  externalIdTaken: {
    field: 'external_id',
    code: 'TAKEN',
    message: 'external_id is used by another area',
  },
  dwellOutOfRange: {
    field: 'dwell_seconds',
    code: 'OUT_OF_RANGE',
    message: `dwell_seconds must be a whole number from 0 to ${LIMITS.maxDwellSeconds}`,
  },
  geojsonInvalid: {
    field: 'geojson',
    code: 'INVALID_GEOJSON',
    message: 'geojson holds no geometry that makes one area',
  },
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
