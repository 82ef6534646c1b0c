import { scopeMask } from '../../access/scopes.ts';
import type { FieldError } from '../../lib/fieldError.ts';
import { limitMessage, scopeError } from '../authorize.ts';
import { ERRORS, type ErrorCode } from '../errors.ts';
import { STRICT, UNKNOWN_PARAMETERS_HEADER } from '../parameters/unknownParameters.ts';
import { errorResponse, V3_HEADERS } from './errorResponses.ts';
import { choice, list, nullable, ref, type Schema, shapeOf, text } from './schema.ts';

/** Codes of listeners and versions that are not described here: position ingest, and v1. */
const ELSEWHERE: readonly string[] = ['FORBIDDEN', 'INVALID_BODY'] satisfies readonly ErrorCode[];

const CODES = Object.keys(ERRORS).filter((code) => !ELSEWHERE.includes(code));

/** One invalid field of a body, whatever the body. */
const DETAIL = shapeOf<FieldError>({ field: nullable(text()), code: text(), message: text() });

const ERROR_SCHEMAS: Readonly<Record<string, Schema>> = {
  Error: shapeOf<{ error: object }>(
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
  ),
};

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
    ...errorResponse([
      ['TOO_MANY_REQUESTS', limitMessage('key_minute')],
      ['TOO_MANY_REQUESTS', limitMessage('key_hour')],
      ['TOO_MANY_REQUESTS', limitMessage('ip_minute')],
    ]),
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
  ServiceUnavailable: { ...errorResponse(['SERVICE_UNAVAILABLE']), headers: V3_HEADERS },
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
  schemas: { ...schemas, ...ERROR_SCHEMAS },
  responses: COMMON_RESPONSES,
  headers: HEADERS,
  parameters: { [STRICT.name]: DESCRIBED_STRICT },
  securitySchemes: SECURITY_SCHEMES,
});
