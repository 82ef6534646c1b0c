import { EXAMPLE_NEAR, EXAMPLE_NOW_MS, EXAMPLE_POINT } from '../devices/deviceExamples.ts';
import { nearestView } from '../devices/deviceViews.ts';
import { BATCH_ERRORS, BATCH_LIMITS } from '../http/batchPoints.ts';
import { BATCH_DEVICES_MAX, CONTAINING_MAX, TOO_MUCH_BULK_WORK } from '../http/bulkLimits.ts';
import { ERRORS } from '../http/errors.ts';
import { answered, dataBody } from '../http/openapi/body.ts';
import { envelope } from '../http/openapi/commonSchemas.ts';
import type { Operation, RequestBodyDescription } from '../http/openapi/operation.ts';
import { choice, integer, list, ref, shapeOf } from '../http/openapi/schema.ts';
import { AREA_TYPE, COORDINATES_MESSAGE, LAT, LNG } from '../http/parameters.ts';
import { EXAMPLE_CIRCLE } from './areaExamples.ts';
import { ONE_AREA } from './areaOperations.ts';
import { areaView } from './areaViews.ts';
import { compileShape } from './shape.ts';

const BATCH_BODY: Pick<RequestBodyDescription, 'fieldError' | 'errorExamples'> = {
  fieldError: ref('BatchFieldError'),
  errorExamples: {
    'no points': [BATCH_ERRORS.pointsRequired],
    'too many points': [BATCH_ERRORS.tooManyPoints],
    'too much work': [TOO_MUCH_BULK_WORK],
  },
};

const OUT_OF_RANGE = { ref: 'stop 18', lat: 95, lng: 12.5 };

const READ_PROMPTLY =
  'An account has two batches at a time on a pod, until their answers are read; further ones wait up to 15 seconds, then they are a 503. Each has eight seconds of computing. An answer must be read within a minute.';

export const NEAREST_BATCH: Operation = {
  id: 'nearestDevicesBatch',
  tag: 'Devices',
  summary: 'Find the devices nearest to each of many coordinates',
  description: `Up to ${BATCH_LIMITS.points} points in one call, which counts as one in the limits. Each item is exactly what the single route answers for its point, or its error. The limits of all points together are at most ${BATCH_DEVICES_MAX} devices. ${READ_PROMPTLY}`,
  body: {
    ...BATCH_BODY,
    schema: ref('NearestBatchInput'),
    examples: {
      stops: { points: [{ ref: 'stop 17', ...EXAMPLE_POINT, limit: 1, max_km: 25 }, OUT_OF_RANGE] },
    },
  },
  answers: [
    answered(
      200,
      'One item for each point, in the order sent.',
      envelope(
        list(ref('NearestBatchItem')),
        shapeOf<{ distance: string }>({ distance: choice(['straight_line_km']) }),
      ),
      {
        stops: dataBody(
          [
            { ref: 'stop 17', devices: [nearestView(EXAMPLE_NEAR, EXAMPLE_NOW_MS)] },
            {
              ref: OUT_OF_RANGE.ref,
              error: { code: 'INVALID_COORDINATES', message: ERRORS.INVALID_COORDINATES[1] },
            },
          ],
          { distance: 'straight_line_km' },
        ),
      },
    ),
  ],
};

const CIRCLE = compileShape(EXAMPLE_CIRCLE.definition);
const { id, name, type, external_id } = areaView(EXAMPLE_CIRCLE);
const DISTANCE_M = CIRCLE.signedDistanceM(EXAMPLE_POINT.lat, EXAMPLE_POINT.lng);

export const AREAS_CONTAINING: Operation = {
  id: 'areasContaining',
  tag: 'Areas',
  summary: 'Find the areas that contain a point',
  description: `Deepest inside first, then by id, at most ${CONTAINING_MAX}; \`meta.total\` counts all. By the same rule that produces entries and exits.`,
  parameters: [LAT, LNG, AREA_TYPE],
  answers: [
    answered(
      200,
      'The areas.',
      envelope(
        list(ref('ContainingArea')),
        shapeOf<{ total: number }>({ total: integer('How many areas contain the point.', { minimum: 0 }) }),
      ),
      {
        one: dataBody([{ area: { id, name, type, external_id }, distance_m: DISTANCE_M }], { total: 1 }),
        none: dataBody([], { total: 0 }),
      },
    ),
  ],
  errors: [['BAD_REQUEST', COORDINATES_MESSAGE], ['BAD_REQUEST', AREA_TYPE.errorMessage], 'TOO_COMPLEX'],
};

export const AREAS_CONTAINING_BATCH: Operation = {
  id: 'areasContainingBatch',
  tag: 'Areas',
  summary: 'Find the areas that contain each of many points',
  description: `Up to ${BATCH_LIMITS.points} points in one call, which counts as one in the limits. Areas are in the order of the single route, at most ${CONTAINING_MAX} for each point. ${READ_PROMPTLY}`,
  body: {
    ...BATCH_BODY,
    schema: ref('ContainingBatchInput'),
    examples: { positions: { points: [{ ref: 'van 12', ...EXAMPLE_POINT }, OUT_OF_RANGE] } },
  },
  answers: [
    answered(200, 'One item for each point, in the order sent.', envelope(list(ref('ContainingBatchItem'))), {
      positions: dataBody([
        { ref: 'van 12', areas: [{ id, external_id, distance_m: DISTANCE_M }] },
        { ref: OUT_OF_RANGE.ref, error: { code: 'BAD_REQUEST', message: COORDINATES_MESSAGE } },
      ]),
    }),
  ],
};

export const AREA_OVERLAPS: Operation = {
  id: 'areaOverlaps',
  tag: 'Areas',
  summary: 'Find the areas that overlap an area',
  description:
    'The areas of the key whose interiors meet this one, largest overlap first. Areas are measured on the ellipsoid; circles, places and tracks within 0.1 %. An account has one of these calls at a time on a pod, further ones wait up to 15 seconds, and each has two seconds of computing: beyond that the answer is 422 `TOO_COMPLEX`, whose message names what to simplify.',
  answers: [
    answered(
      200,
      'The overlaps.',
      envelope(
        list(ref('AreaOverlap')),
        shapeOf<{ total: number }>({ total: integer('How many there are.', { minimum: 0 }) }),
      ),
      {
        one: dataBody(
          [
            {
              area: { id: 43, name: 'City', type: 'polygon', external_id: null },
              overlap_m2: 196_349.54,
              share: 1,
              share_of_other: 0.0021,
            },
          ],
          { total: 1 },
        ),
        none: dataBody([], { total: 0 }),
      },
    ),
  ],
  errors: [...ONE_AREA, 'TOO_COMPLEX'],
};
