import { BODY_INVALID, type FieldError } from '../lib/fieldError.ts';
import { isJsonObject, isMissing, type JsonObject } from '../lib/parseJson.ts';
import { fail, ok, type Result } from '../lib/result.ts';
import { type Answer, ERRORS, type ErrorCode, validationAnswer } from './answer.ts';
import { TOO_MUCH_BULK_WORK } from './bulkCalls.ts';
import type { RequestBodyDescription } from './openapi/operation.ts';
import { choice, list, nullable, number, ref, type Schema, shapeOf, text } from './openapi/schema.ts';
import { jsonBody } from './requestBody.ts';
import type { RequestBody } from './route.ts';

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

const REF_SENT: Schema = {
  oneOf: [text(undefined, { maxLength: BATCH_LIMITS.refMaxChars }), number()],
  description: 'Your own name of the point; its item repeats it.',
};
const REF: Schema = { oneOf: [nullable(text()), number()], description: 'As it was sent; null without one.' };

/** A batch whose points have these optional fields. A point that is out of range is an error of its own item. */
export function batchInput(optional: Readonly<Record<string, Schema>> = {}): Schema {
  const point = { ref: REF_SENT, lat: number('Degrees north.'), lng: number('Degrees east.'), ...optional };
  const points = shapeOf<Record<string, unknown>>(point, { optional: ['ref', ...Object.keys(optional)] });
  return shapeOf<{ points: unknown }>({
    points: list(points, { minItems: 1, maxItems: BATCH_LIMITS.points }),
  });
}

/** What a batch answers for one point. */
export function batchItem(result: string, schema: Schema, codes: readonly ErrorCode[]): Schema {
  const error = shapeOf<{ code: string; message: string }>({ code: choice(codes), message: text() });
  return {
    ...shapeOf<Record<string, unknown>>(
      { ref: REF, [result]: schema, error },
      { optional: [result, 'error'] },
    ),
    description: `Has \`${result}\`, or \`error\` when this point cannot be answered.`,
  };
}

/** What is wrong with a batch as a whole. */
export const BATCH_FIELD_ERROR = shapeOf<FieldError>(
  {
    field: nullable(choice(['points'], 'null: the body as a whole.')),
    code: choice(['REQUIRED', 'INVALID', 'LIMIT_REACHED', 'INVALID_BODY']),
    message: text(),
  },
  { description: 'What is wrong with a batch as a whole.' },
);

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
