import { scopeMask } from '../../access/scopes.ts';
import type { FieldError } from '../../lib/result.ts';
import { ERRORS, type ErrorCode, errorAnswer, validationAnswer } from '../answer.ts';
import { limitMessage, scopeError } from '../authorize.ts';
import {
  LENGTH_MESSAGE,
  REPEATED_MESSAGE,
  STRICT,
  UNKNOWN_PARAMETERS_HEADER,
  unknownParametersMessage,
} from '../parameters.ts';
import type { ApiVersion, Route } from '../route.ts';
import { bodyOf, type DescribedError, type Operation, type RequestBodyDescription } from './operation.ts';
import { choice, integer, list, nullable, ref, type Schema, shapeOf, text } from './schema.ts';

export const BETA_HEADER = { 'X-API-Status': { $ref: '#/components/headers/X-API-Status' } };
/** The headers of every answer of v3. */
export const V3_HEADERS = {
  ...BETA_HEADER,
  [UNKNOWN_PARAMETERS_HEADER]: { $ref: `#/components/headers/${UNKNOWN_PARAMETERS_HEADER}` },
};

/** Codes that only position ingest and v1 answer, which are not described here. */
const ELSEWHERE: readonly string[] = ['FORBIDDEN', 'INVALID_BODY'] satisfies readonly ErrorCode[];

const CODES = Object.keys(ERRORS).filter((code) => !ELSEWHERE.includes(code));

/** One invalid field of a body, whatever the body. */
const DETAIL = shapeOf<FieldError>({ field: nullable(text()), code: text(), message: text() });

const EVERY_ERROR = shapeOf<{ error: object }>(
  {
    error: shapeOf<{ code: string; message: string; details: readonly object[] }>(
      {
        code: choice(CODES),
        message: text('For a person; it may change.'),
        details: list(DETAIL, { description: 'With VALIDATION_ERROR only.' }),
      },
      { optional: ['details'] },
    ),
  },
  { description: 'The form of every error. Each response names the codes that it can have.' },
);

/** The errors that every route has. */
const COMMON_RESPONSES = {
  Forbidden: {
    ...errorResponse([
      'API_KEY_REQUIRED',
      'API_KEY_INVALID',
      'API_KEY_REVOKED',
      'API_KEY_OWNER_INACTIVE',
      'API_KEY_IP_BLOCKED',
      ['INSUFFICIENT_SCOPE', scopeError(scopeMask('read_areas'))],
    ]),
    headers: V3_HEADERS,
  },
  RequestTimeout: {
    ...errorResponse([['BAD_REQUEST', 'the request was not complete in time']]),
    description: '`BAD_REQUEST`: the request was not complete in time.',
  },
  TooManyRequests: {
    ...errorResponse(
      (['key_minute', 'key_hour', 'ip_minute'] as const).map((limit) => [
        'TOO_MANY_REQUESTS',
        limitMessage(limit),
      ]),
    ),
    headers: V3_HEADERS,
  },
  HeadersTooLarge: errorResponse(['HEADERS_TOO_LARGE']),
  OtherError: {
    description: 'Any other error has the same form, such as 405 `METHOD_NOT_ALLOWED` for another method.',
    headers: { ...V3_HEADERS, Allow: { $ref: '#/components/headers/Allow' } },
    content: {
      'application/json': {
        schema: ref('Error'),
        examples: errorResponse(['METHOD_NOT_ALLOWED']).content['application/json'].examples,
      },
    },
  },
  InternalError: { ...errorResponse(['INTERNAL_ERROR']), headers: V3_HEADERS },
  ServiceUnavailable: {
    ...errorResponse(['SERVICE_UNAVAILABLE']),
    headers: { ...V3_HEADERS, 'Retry-After': { $ref: '#/components/headers/Retry-After' } },
  },
};

const HEADERS = {
  'X-API-Status': {
    description: 'v3 is a beta. On every answer below /api/v3, on none below /api/webhooks.',
    schema: choice(['beta']),
  },
  [UNKNOWN_PARAMETERS_HEADER]: {
    description:
      'Only where the query has parameters that the operation does not know: their names, ten at most, percent-encoded and cut to 64 characters.',
    schema: text(),
  },
  Location: { description: 'The path of what was created.', schema: text() },
  'Idempotent-Replayed': {
    description: 'Only on the repetition of an answer for the same Idempotency-Key.',
    schema: choice(['true']),
  },
  'Retry-After': {
    description: 'Only when the server is overloaded: the seconds to wait.',
    schema: integer(),
  },
  Allow: { description: 'With 405 only: the methods that the path has.', schema: text() },
  ETag: { description: 'Names this version; send it as If-None-Match.', schema: text() },
};

/** Without what only the code reads of it. */
const { values: _values, errorMessage: _errorMessage, ...DESCRIBED_STRICT } = STRICT;

const SECURITY_SCHEMES = {
  ApiKey: {
    type: 'apiKey',
    in: 'header',
    name: 'X-API-Key',
    description: 'A key from the key settings. Its permissions decide which routes it opens.',
  },
  Session: {
    type: 'http',
    scheme: 'bearer',
    description:
      'A session token of the application. Of what is described here it opens the webhook routes; under `/api/v1` it opens all.',
  },
};

/** The components of the description, with the schemas of the features. */
export const componentsWith = (schemas: Readonly<Record<string, Schema>>) => ({
  schemas: { ...schemas, Error: EVERY_ERROR },
  responses: COMMON_RESPONSES,
  headers: HEADERS,
  parameters: { [STRICT.name]: DESCRIBED_STRICT },
  securitySchemes: SECURITY_SCHEMES,
});

/** A Response Object with an error envelope. */
interface ErrorResponse {
  readonly description: string;
  readonly headers?: object;
  readonly content: { readonly 'application/json': { readonly schema: Schema; readonly examples: object } };
}

const MB = 1024 * 1024;
const PARAMETER_ERRORS: readonly DescribedError[] = [
  ['BAD_REQUEST', REPEATED_MESSAGE],
  ['BAD_REQUEST', LENGTH_MESSAGE],
];
/** The errors that every route of v3 has as well. */
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
function errorResponse(errors: readonly DescribedError[]): ErrorResponse {
  const codes = [...new Set(errors.map(codeOf))];
  const examples: Record<string, object> = {};
  for (const error of errors) {
    const [code, message] = typeof error === 'string' ? [error] : error;
    const body = bodyOf(errorAnswer(code, message));
    examples[code in examples ? `${code} ${Object.keys(examples).length + 1}` : code] = { value: body };
  }
  const bullet = codes.length === 1 ? '' : '- ';
  const description = codes.map((code) => `${bullet}\`${code}\`: ${ERRORS[code][1]}.`).join('\n');
  const schema = shapeOf<{ error: object }>({
    error: shapeOf<{ code: ErrorCode; message: string }>({ code: choice(codes), message: text() }),
  });
  return { description, content: { 'application/json': { schema, examples } } };
}

/** 422: every invalid field of the body at once, or the report on a body none of whose items is valid. */
function validationResponse({ fieldError, errorExamples, report }: RequestBodyDescription): ErrorResponse {
  const error = shapeOf<{ code: ErrorCode; message: string; details: readonly object[] }>({
    code: choice(['VALIDATION_ERROR']),
    message: text(),
    details: list(fieldError, report === undefined ? { minItems: 1 } : {}),
  });
  const schema =
    report === undefined
      ? shapeOf<{ error: object }>({ error })
      : shapeOf<{ error: object; data: object }>({ error, data: report.schema }, { optional: ['data'] });
  const examples: Record<string, object> = {};
  for (const [name, details] of Object.entries(errorExamples))
    examples[name] = { value: bodyOf(validationAnswer(details)) };
  return {
    description: report?.description ?? `\`VALIDATION_ERROR\`: ${ERRORS.VALIDATION_ERROR[1]}.`,
    content: { 'application/json': { schema, examples: { ...examples, ...report?.examples } } },
  };
}

function codeOf(error: DescribedError): ErrorCode {
  return typeof error === 'string' ? error : error[0];
}
