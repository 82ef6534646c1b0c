import type { FieldError } from '../../lib/fieldError.ts';
import { errorAnswer, validationAnswer } from '../answer.ts';
import { ERRORS, type ErrorCode } from '../errors.ts';
import { LENGTH_MESSAGE, REPEATED_MESSAGE } from '../parameters/query.ts';
import {
  STRICT,
  UNKNOWN_PARAMETERS_HEADER,
  unknownParametersMessage,
} from '../parameters/unknownParameters.ts';
import type { ApiVersion, Route } from '../route.ts';
import { bodyOf } from './body.ts';
import type { DescribedError, Operation, RequestBodyDescription } from './operation.ts';
import { choice, list, type Schema, shapeOf, text } from './schema.ts';

/** A Response Object with an error envelope. */
export interface ErrorResponse {
  readonly description: string;
  readonly headers?: object;
  readonly content: { readonly 'application/json': { readonly schema: Schema; readonly examples: object } };
}

const MB = 1024 * 1024;
const PARAMETER_ERRORS: readonly DescribedError[] = [
  ['BAD_REQUEST', REPEATED_MESSAGE],
  ['BAD_REQUEST', LENGTH_MESSAGE],
];
/** What every route of v3 answers beside them. */
const STRICT_ERRORS: readonly DescribedError[] = [
  ['BAD_REQUEST', unknownParametersMessage('staus,bbox')],
  ['BAD_REQUEST', STRICT.errorMessage],
];

/**
 * The errors of a route by status: its own, and those that every route has, as references to components.responses.
 */
export function errorResponses(
  version: ApiVersion,
  route: Route,
  { body, errors = [] }: Operation,
): Record<string, ErrorResponse> {
  const own = [...PARAMETER_ERRORS, ...(version === 'v3' ? STRICT_ERRORS : []), ...errors];
  const byStatus = Map.groupBy(own, (error) => ERRORS[codeOf(error)][0]);
  const mark = version === 'v3' ? { headers: V3_HEADERS } : {};
  const responses: Record<string, ErrorResponse> = {};
  for (const [status, group] of byStatus) responses[status] = { ...errorResponse(group), ...mark };
  if (body !== undefined) {
    responses[ERRORS.VALIDATION_ERROR[0]] = { ...validationResponse(body), ...mark };
    const tooLarge = errorResponse(['PAYLOAD_TOO_LARGE']);
    const description = `\`PAYLOAD_TOO_LARGE\`: the body has more than ${(route.maxBodyBytes ?? 0) / MB} MB.`;
    responses[ERRORS.PAYLOAD_TOO_LARGE[0]] = { ...tooLarge, description, ...mark };
  }
  return { ...responses, ...COMMON };
}

export const BETA_HEADER = { 'X-API-Status': { $ref: '#/components/headers/X-API-Status' } };
/** Of every route of v3. */
export const V3_HEADERS = {
  ...BETA_HEADER,
  [UNKNOWN_PARAMETERS_HEADER]: { $ref: `#/components/headers/${UNKNOWN_PARAMETERS_HEADER}` },
};

/** The errors that every route has, by status; see COMMON_RESPONSES. */
const COMMON = Object.fromEntries(
  Object.entries({
    403: 'Forbidden',
    408: 'RequestTimeout',
    429: 'TooManyRequests',
    431: 'HeadersTooLarge',
    500: 'InternalError',
    503: 'ServiceUnavailable',
    default: 'OtherError',
  }).map(([status, name]) => [status, { $ref: `#/components/responses/${name}` }]),
) as unknown as Record<string, ErrorResponse>;

/** One status with these errors. Each is an example as well, written by the code that answers it. */
export function errorResponse(errors: readonly DescribedError[]): ErrorResponse {
  const codes = [...new Set(errors.map(codeOf))];
  const examples: Record<string, object> = {};
  for (const error of errors) {
    const code = codeOf(error);
    const body = bodyOf(errorAnswer(code, messageOf(error)));
    examples[code in examples ? `${code} ${Object.keys(examples).length + 1}` : code] = { value: body };
  }
  const meanings = codes.map((code) => `\`${code}\`: ${ERRORS[code][1]}.`);
  const description =
    meanings.length === 1 ? String(meanings[0]) : meanings.map((line) => `- ${line}`).join('\n');
  return { description, content: { 'application/json': { schema: errorSchema(codes), examples } } };
}

function errorSchema(codes: readonly ErrorCode[]): Schema {
  return shapeOf<{ error: object }>({
    error: shapeOf<{ code: ErrorCode; message: string }>({ code: choice(codes), message: text() }),
  });
}

/** 422: every invalid field of the body at once, or the report on a body none of whose items is valid. */
function validationResponse({ fieldError, errorExamples, report }: RequestBodyDescription): ErrorResponse {
  const schema = shapeOf<{ error: object; data: object }>(
    {
      error: validationError(fieldError, report === undefined ? 1 : 0),
      ...(report === undefined ? {} : { data: report.schema }),
    } as Record<'error' | 'data', Schema>,
    { optional: ['data'] },
  );
  const examples = Object.entries(errorExamples).map(([name, details]) => [name, validationExample(details)]);
  return {
    description: report?.description ?? `\`VALIDATION_ERROR\`: ${ERRORS.VALIDATION_ERROR[1]}.`,
    content: {
      'application/json': {
        schema,
        examples: { ...Object.fromEntries(examples), ...report?.examples },
      },
    },
  };
}

function validationError(fieldError: Schema, minItems: number): Schema {
  return shapeOf<{ code: ErrorCode; message: string; details: readonly object[] }>({
    code: choice(['VALIDATION_ERROR']),
    message: text(),
    details: list(fieldError, minItems === 0 ? {} : { minItems }),
  });
}

function validationExample(details: readonly FieldError[]): object {
  return { value: bodyOf(validationAnswer(details)) };
}

function codeOf(error: DescribedError): ErrorCode {
  return typeof error === 'string' ? error : error[0];
}

function messageOf(error: DescribedError): string {
  return typeof error === 'string' ? ERRORS[error][1] : error[1];
}
