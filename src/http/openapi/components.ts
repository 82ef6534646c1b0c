import { scopeMask } from '../../access/scopes.ts';
import { limitRefusal } from '../admission.ts';
import type { FieldFault } from '../answer.ts';
import { scopeRefusal } from '../answerRoute.ts';
import { ERRORS, type ErrorCode } from '../errors.ts';
import { AREA_INPUT_SCHEMAS } from './areaInputSchemas.ts';
import { AREA_SCHEMAS } from './areaSchemas.ts';
import { DELIVERY_SCHEMAS } from './deliverySchemas.ts';
import { DEVICE_SCHEMAS } from './deviceSchemas.ts';
import { BETA_HEADER, errorResponse } from './errorResponses.ts';
import { EVENT_SCHEMAS } from './eventSchemas.ts';
import { GEOJSON_SCHEMAS } from './geojsonSchemas.ts';
import { IMPORT_SCHEMAS } from './importSchemas.ts';
import { choice, list, nullable, type Schema, shapeOf, text } from './schema.ts';
import { WEBHOOK_SCHEMAS } from './webhookSchemas.ts';

/** Codes of listeners and versions that are not described here: position ingest, and v1. */
const ELSEWHERE: readonly string[] = ['FORBIDDEN', 'INVALID_BODY'] satisfies readonly ErrorCode[];

const CODES = Object.keys(ERRORS).filter((code) => !ELSEWHERE.includes(code));

/** One invalid field of a body, whatever the body. */
const DETAIL = shapeOf<FieldFault>({ field: nullable(text()), code: text(), message: text() });

const SCHEMAS: Readonly<Record<string, Schema>> = {
  ...DEVICE_SCHEMAS,
  ...EVENT_SCHEMAS,
  ...AREA_SCHEMAS,
  ...AREA_INPUT_SCHEMAS,
  ...GEOJSON_SCHEMAS,
  ...IMPORT_SCHEMAS,
  ...WEBHOOK_SCHEMAS,
  ...DELIVERY_SCHEMAS,
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
    { description: 'What every error looks like; each answer below says which codes it can have.' },
  ),
};

/** What every route refuses alike. */
const SHARED_RESPONSES = {
  Forbidden: {
    ...errorResponse([
      'API_KEY_REQUIRED',
      'API_KEY_INVALID',
      'API_KEY_REVOKED',
      'API_KEY_OWNER_INACTIVE',
      'API_KEY_IP_BLOCKED',
      ['INSUFFICIENT_SCOPE', scopeRefusal(scopeMask('read_areas'))],
    ]),
    headers: BETA_HEADER,
  },
  RequestTimeout: {
    ...errorResponse([['BAD_REQUEST', 'the request was not complete in time']]),
    description: 'The request was not complete in time.',
  },
  MethodNotAllowed: {
    ...errorResponse(['METHOD_NOT_ALLOWED']),
    headers: { ...BETA_HEADER, Allow: { $ref: '#/components/headers/Allow' } },
  },
  TooManyRequests: {
    ...errorResponse([
      ['TOO_MANY_REQUESTS', limitRefusal('key_minute')],
      ['TOO_MANY_REQUESTS', limitRefusal('key_hour')],
      ['TOO_MANY_REQUESTS', limitRefusal('ip_minute')],
    ]),
    headers: BETA_HEADER,
  },
  HeadersTooLarge: errorResponse(['HEADERS_TOO_LARGE']),
  InternalError: { ...errorResponse(['INTERNAL_ERROR']), headers: BETA_HEADER },
  ServiceUnavailable: { ...errorResponse(['SERVICE_UNAVAILABLE']), headers: BETA_HEADER },
};

const HEADERS = {
  'X-API-Status': {
    description: 'v3 is a beta. On every answer below /api/v3, on none below /api/webhooks.',
    schema: choice(['beta']),
  },
  Location: { description: 'The path of what was created.', schema: text() },
  'Idempotent-Replayed': {
    description: 'Only on the repetition of an answer for the same Idempotency-Key.',
    schema: choice(['true']),
  },
  Allow: { description: 'The methods that the path has.', schema: text() },
  ETag: { description: 'Names this version; send it as If-None-Match.', schema: text() },
};

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
    description: 'A session token of the application. It opens the webhook routes only.',
  },
};

export const COMPONENTS = {
  schemas: SCHEMAS,
  responses: SHARED_RESPONSES,
  headers: HEADERS,
  securitySchemes: SECURITY_SCHEMES,
};
