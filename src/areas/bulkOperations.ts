import { EXAMPLE_POINT } from '../devices/deviceExamples.ts';
import { BATCH_ERRORS } from '../http/batchPoints.ts';
import { TOO_MUCH_BULK_WORK } from '../http/bulkLimits.ts';
import type { RequestBodyDescription } from '../http/openapi/operation.ts';
import { ref } from '../http/openapi/schema.ts';
import { EXAMPLE_CIRCLE } from './areaExamples.ts';
import { areaView } from './areaViews.ts';
import { compileShape } from './shape.ts';

export const BATCH_BODY: Pick<RequestBodyDescription, 'fieldError' | 'errorExamples'> = {
  fieldError: ref('BatchFieldError'),
  errorExamples: {
    'no points': [BATCH_ERRORS.pointsRequired],
    'too many points': [BATCH_ERRORS.tooManyPoints],
    'too much work': [TOO_MUCH_BULK_WORK],
  },
};

export const OUT_OF_RANGE = { ref: 'stop 18', lat: 95, lng: 12.5 };

export const READ_PROMPTLY =
  'An account has two batches at a time on a pod, until their answers are read; further ones wait up to 15 seconds, then they are a 503. Each has eight seconds of computing. An answer must be read within a minute.';

const CIRCLE = compileShape(EXAMPLE_CIRCLE.definition);
export const { id, name, type, external_id } = areaView(EXAMPLE_CIRCLE);
export const DISTANCE_M = CIRCLE.signedDistanceM(EXAMPLE_POINT.lat, EXAMPLE_POINT.lng);
