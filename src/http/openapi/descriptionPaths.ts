import { BETA_HEADER } from './errorResponses.ts';

const OWN_HEADERS = { ...BETA_HEADER, ETag: { $ref: '#/components/headers/ETag' } };
const UNAVAILABLE = { $ref: '#/components/responses/ServiceUnavailable' };
const UNREADABLE = {
  408: { $ref: '#/components/responses/RequestTimeout' },
  431: { $ref: '#/components/responses/HeadersTooLarge' },
};

/** The description and its page: for everybody, and counted by no limit. */
export const DESCRIPTION_PATHS = {
  '/api/v3/openapi.json': {
    get: {
      operationId: 'getDescription',
      tags: ['Description'],
      summary: 'Read this description',
      description: 'OpenAPI 3.0.3. No key is needed.',
      responses: {
        200: {
          description: 'The description.',
          headers: OWN_HEADERS,
          content: {
            'application/json': {
              schema: {
                type: 'object',
                required: ['openapi', 'info', 'paths'],
                additionalProperties: true,
                properties: {
                  openapi: { type: 'string', enum: ['3.0.3'] },
                  info: { type: 'object', additionalProperties: true },
                  paths: { type: 'object', additionalProperties: true },
                },
              },
            },
          },
        },
        304: { description: 'The version named by If-None-Match still stands.', headers: OWN_HEADERS },
        ...UNREADABLE,
        503: UNAVAILABLE,
      },
      security: [],
    },
  },
  '/api/v3/docs': {
    get: {
      operationId: 'getDocs',
      tags: ['Description'],
      summary: 'Read this description as a page',
      description: 'No key is needed; with one, every route can be tried.',
      responses: {
        200: {
          description: 'The page.',
          headers: OWN_HEADERS,
          content: { 'text/html': { schema: { type: 'string' } } },
        },
        304: { description: 'The version named by If-None-Match still stands.', headers: OWN_HEADERS },
        ...UNREADABLE,
        503: UNAVAILABLE,
      },
      security: [],
    },
  },
};
