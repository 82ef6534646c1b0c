import { scopeNames } from '../../access/scopes.ts';
import { invariant } from '../../lib/errors.ts';
import { OFFSET_MAX, type Parameter, STRICT } from '../parameters.ts';
import type { ApiVersion, Route } from '../route.ts';
import { BETA_HEADER, componentsWith, errorResponses, V3_HEADERS } from './components.ts';
import type { AnswerDescription, Examples, Operation, RequestBodyDescription } from './operation.ts';
import { TAGS } from './operation.ts';
import type { Schema } from './schema.ts';

/** The parts of an OpenAPI document that other code reads. */
export interface ApiDocument {
  readonly openapi: '3.0.3';
  readonly paths: Readonly<Record<string, Readonly<Record<string, object>>>>;
  readonly components: Readonly<Record<string, Readonly<Record<string, object>>>>;
  readonly [other: string]: unknown;
}

/** What the routes of all features refer to. */
export interface SharedDescription {
  /** Of the service. */
  readonly version: string;
  readonly schemas: Readonly<Record<string, Schema>>;
  readonly pathParameters: Readonly<Record<string, PathParameter>>;
}

/** The prefixes that are described. v2 answers like v3, and v1 belongs to the application. */
const PREFIXES: readonly ApiVersion[] = ['v3', 'webhooks', 'share'];

/**
 * The description of the API in OpenAPI 3.0.3. It is made from the routes: their paths, methods, permissions and sizes,
 * and the objects by which they read parameters and validate bodies.
 */
export function apiDocument(routes: readonly Route[], shared: SharedDescription): ApiDocument {
  const paths: Record<string, Record<string, object>> = {};
  for (const version of PREFIXES) {
    for (const route of routes.filter(({ versions }) => versions.includes(version))) {
      invariant('describe' in route, `${route.method} ${route.path} is described`);
      const path = describedPath(version, route.path);
      const operation = describedOperation(version, route, route.describe, shared.pathParameters);
      paths[path] = { ...paths[path], [route.method.toLowerCase()]: operation };
    }
  }
  return {
    openapi: '3.0.3',
    info: {
      title: 'Fleet Tracking Service',
      version: shared.version,
      description: INTRODUCTION,
      contact: { name: 'The operator of this service' },
      // Linters ask for this field and for a page that explains it, also without a licence.
      license: {
        name: 'UNLICENSED: no rights are granted',
        url: 'https://docs.npmjs.com/cli/configuring-npm/package-json#license',
      },
    },
    servers: [{ url: '/', description: 'The service that serves this description.' }],
    tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
    // Each collection before what is in it.
    paths: Object.fromEntries(
      Object.entries({ ...paths, ...DESCRIPTION_PATHS }).sort(([a], [b]) => (a < b ? -1 : 1)),
    ),
    components: componentsWith(shared.schemas),
  };
}

/** "/devices/:imei" → "/api/v3/devices/{imei}". */
function describedPath(version: ApiVersion, path: string): string {
  return `/api/${version}${path === '/' ? '' : path.replace(/[:*](\w+)/g, '{$1}')}`;
}

function describedOperation(
  version: ApiVersion,
  route: Route,
  operation: Operation,
  inPaths: SharedDescription['pathParameters'],
): object {
  const permissions = scopeNames(route.scopes);
  const joint = route.needsAllScopes === true ? ' and ' : ' or ';
  const permission =
    permissions.length === 0
      ? 'No key is needed.'
      : `Permission: ${permissions.map((name) => `\`${name}\``).join(joint)}.`;
  const parameters = [
    ...pathParameters(route.path, inPaths),
    ...(operation.parameters ?? []).map(describedParameter),
    ...(version === 'v3' ? [{ $ref: `#/components/parameters/${STRICT.name}` }] : []),
  ];
  return {
    operationId: operation.id,
    tags: [operation.tag],
    summary: operation.summary,
    description:
      operation.description === undefined ? permission : `${operation.description}\n\n${permission}`,
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(operation.body === undefined ? {} : { requestBody: describedBody(operation.body) }),
    responses: {
      ...Object.fromEntries(
        operation.answers.map((answer) => [answer.status, describedAnswer(answer, version)]),
      ),
      ...errorResponses(version, route, operation),
    },
    ...(operation.callbacks === undefined ? {} : { callbacks: operation.callbacks }),
    security:
      version === 'share' ? [] : [{ ApiKey: [] }, ...(version === 'webhooks' ? [{ Session: [] }] : [])],
    'x-permissions': permissions,
  };
}

/** Without what only the code reads of it. */
function describedParameter({ name, in: place, required, description, schema, example, explode }: Parameter) {
  return {
    name,
    in: place,
    required,
    description,
    schema,
    ...(example === undefined ? {} : { example }),
    ...(explode === undefined ? {} : { style: 'form', explode }),
  };
}

function describedBody({ description, schema, examples, contentTypes = [] }: RequestBodyDescription): object {
  const content = { schema, examples: namedExamples(examples) };
  const types = ['application/json', ...contentTypes];
  return {
    required: true,
    ...(description === undefined ? {} : { description }),
    content: Object.fromEntries(types.map((type) => [type, content])),
  };
}

function describedAnswer(
  {
    description,
    schema,
    contentType = 'application/json',
    fileTypes = [],
    headers = [],
    examples = {},
  }: AnswerDescription,
  version: ApiVersion,
): object {
  const mark = version === 'v3' ? V3_HEADERS : {};
  const all = { ...mark, ...Object.fromEntries(headers.map((name) => [name, headerRef(name)])) };
  return {
    description,
    ...(Object.keys(all).length === 0 ? {} : { headers: all }),
    ...(schema === undefined
      ? {}
      : {
          content: {
            [contentType]: { schema, examples: namedExamples(examples) },
            ...Object.fromEntries(fileTypes.map((type) => [type, { schema: FILE }])),
          },
        }),
  };
}

const FILE: Schema = { type: 'string', format: 'binary' };

function headerRef(name: string): object {
  return { $ref: `#/components/headers/${name}` };
}

function namedExamples(examples: Examples): object {
  return Object.fromEntries(Object.entries(examples).map(([name, value]) => [name, { value }]));
}

/** The description of a parameter in a path. */
interface PathParameter {
  readonly description: string;
  readonly schema: Schema;
  readonly example?: unknown;
}

/** The Parameter Objects of a route's path. */
function pathParameters(path: string, described: Readonly<Record<string, PathParameter>>): object[] {
  return Array.from(path.matchAll(/[:*](\w+)/g), ([, name = '']) => {
    const parameter = described[name];
    invariant(parameter, `the path parameter ${name} is described`);
    return { name, in: 'path', required: true, ...parameter };
  });
}

/** The text at the head of the description (CommonMark). */
const INTRODUCTION = `
Devices, their positions and history, fleet events, geofence areas, and webhooks.

**Requests.** Send your key in the header \`X-API-Key\`. A key sees the resources of its account and those shared in its
organization. Everything else is answered with 404, as if it did not exist. Each operation names the permission it
needs. The webhook routes also accept a session of the application, for which
\`/api/v1\` carries all routes of v3.

**Responses.** \`{ data, meta }\`; lists have \`meta.pagination\`. Times are ISO 8601 in UTC. Fields may be added to
responses, so ignore those you do not know.

**Errors.** \`{ error: { code, message } }\`. Rely on the code: the message is for people, and may change. 422 adds
\`details\` with every invalid field. These errors are the same for every operation:

- 403: the key is missing, unknown or revoked, its owner is inactive, it may not be used from this address, or it lacks
  the permission.
- 405: the path has other methods, which the header \`Allow\` lists.
- 408, 431: the request was not complete in time, or its headers are too large.
- 429: a limit is exceeded.
- 500, 503: an internal error, or the database cannot be reached or takes too long. A 503 with the header \`Retry-After\`:
  the server is overloaded; call again after that many seconds.

**Parameters.** \`limit\` and \`offset\` are moved into their range. Numbers are in decimal notation. A blank parameter
counts as missing. A parameter that is given twice is 400, and so is an id in the path that is malformed. Parameters that
an operation of v3 does not know are ignored, and the header \`X-Unknown-Parameters\` names them; with \`strict=true\` they
are 400.

**Long lists.** Events and deliveries can be paged through to an offset of ${OFFSET_MAX}. Narrow longer lists with
\`from\` and \`to\`.

**Methods.** HEAD answers like GET without a body. OPTIONS lists the methods of a path.

**Limits.** Unless the operator has set others: 120 requests a minute and 1000 an hour per key, 120 a minute per IP
address.

**Versions.** v3 is a beta: every response says so in \`X-API-Status: beta\`. The device and event routes also exist
under \`/api/v2\`, with the same responses but for two things: some errors there are plain strings, and a geofence event
names its area \`geofenceId\`.
`.trim();

/** An operation of the description itself: for everybody, and counted by no limit. */
function ownOperation(
  operationId: string,
  summary: string,
  description: string,
  answer: { readonly description: string; readonly content: object },
): { readonly get: object } {
  const headers = { ...BETA_HEADER, ETag: headerRef('ETag') };
  const responses = {
    200: { ...answer, headers },
    304: { description: 'The version named by If-None-Match still stands.', headers },
    408: { $ref: '#/components/responses/RequestTimeout' },
    431: { $ref: '#/components/responses/HeadersTooLarge' },
    503: { $ref: '#/components/responses/ServiceUnavailable' },
  };
  return { get: { operationId, tags: ['Description'], summary, description, responses, security: [] } };
}

const ANY_OBJECT = { type: 'object', additionalProperties: true };

const DESCRIPTION_PATHS = {
  '/api/v3/openapi.json': ownOperation(
    'getDescription',
    'Read this description',
    'OpenAPI 3.0.3. No key is needed.',
    {
      description: 'The description.',
      content: {
        'application/json': {
          schema: {
            ...ANY_OBJECT,
            required: ['openapi', 'info', 'paths'],
            properties: {
              openapi: { type: 'string', enum: ['3.0.3'] },
              info: ANY_OBJECT,
              paths: ANY_OBJECT,
            },
          },
        },
      },
    },
  ),
  '/api/v3/docs': ownOperation(
    'getDocs',
    'Read this description as a page',
    'No key is needed; with one, every route can be tried.',
    { description: 'The page.', content: { 'text/html': { schema: { type: 'string' } } } },
  ),
};
