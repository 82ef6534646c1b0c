import { BODY_INVALID, type FieldError } from '../../lib/fieldError.ts';
import { isJsonObject, isMissing, type JsonObject } from '../../lib/parseJson.ts';
import { fail, ok, type Result } from '../../lib/result.ts';
import { type Answer, validationAnswer } from '../answer.ts';
import { ERRORS, type ErrorCode } from '../errors.ts';
import type { RequestBodyDescription } from '../openapi/operation.ts';
import { ref } from '../openapi/schema.ts';
import { jsonBody } from '../requestBody.ts';
import type { RequestBody } from '../route.ts';
import { TOO_MUCH_BULK_WORK } from './bulkLimits.ts';

export const BATCH_LIMITS = { points: 1_000, refMaxChars: 100 } as const;

export const BATCH_ERRORS = {
  pointsRequired: { field: 'points', code: 'REQUIRED', message: 'points is required: a list of points' },
  pointsInvalid: { field: 'points', code: 'INVALID', message: 'points must be a list of at least one point' },
  tooManyPoints: {
    field: 'points',
    code: 'LIMIT_REACHED',
    message: `points has more than ${BATCH_LIMITS.points} points; send them in several calls`,
  },
} as const satisfies Readonly<Record<string, FieldError>>;

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

const NO_OBJECT = 'a point must be a JSON object';
const REF_INVALID = `ref must be text of at most ${BATCH_LIMITS.refMaxChars} characters, or a number`;

/** A point of a batch as it was sent, with the JSON text of its `ref`; or the JSON text of what is wrong with it. */
export type BatchPoint =
  | { readonly refJson: string; readonly sent: JsonObject }
  | { readonly refJson: string; readonly errorJson: string };

/**
 * The points of a batch, in the order sent. A body without a list of 1 to 1 000 points is a 422; an element that is
 * not a point, or whose `ref` cannot be repeated, is an error of that element only.
 */
export function readBatchPoints(body: RequestBody | null): Result<readonly BatchPoint[], Answer> {
  const json = jsonBody(body);
  if (!json.ok) return json;
  if (!isJsonObject(json.value)) return fail(validationAnswer([BODY_INVALID]));
  const { points } = json.value;
  if (isMissing(points)) return fail(validationAnswer([BATCH_ERRORS.pointsRequired]));
  if (!Array.isArray(points) || points.length === 0) {
    return fail(validationAnswer([BATCH_ERRORS.pointsInvalid]));
  }
  if (points.length > BATCH_LIMITS.points) return fail(validationAnswer([BATCH_ERRORS.tooManyPoints]));
  return ok(points.map(readPoint));
}

function readPoint(sent: unknown): BatchPoint {
  if (!isJsonObject(sent)) return { refJson: 'null', errorJson: errorJson('BAD_REQUEST', NO_OBJECT) };
  const { ref } = sent;
  if (isMissing(ref)) return { refJson: 'null', sent };
  const isRef =
    (typeof ref === 'number' && Number.isFinite(ref)) ||
    (typeof ref === 'string' && ref.length <= BATCH_LIMITS.refMaxChars);
  return isRef
    ? { refJson: JSON.stringify(ref), sent }
    : { refJson: 'null', errorJson: errorJson('BAD_REQUEST', REF_INVALID) };
}

/** The JSON text of an error of one point: code and message, as a single call answers them. */
export function errorJson(code: ErrorCode, message: string = ERRORS[code][1]): string {
  return JSON.stringify({ code, message });
}
