import { scopeNames } from '../../access/scopes.ts';
import { invariant } from '../../lib/invariant.ts';
import type { Parameter } from '../parameter.ts';
import type { ApiVersion, Route } from '../route.ts';
import { STRICT } from '../unknownParameters.ts';
import { componentsWith } from './components.ts';
import { DESCRIPTION_PATHS } from './descriptionPaths.ts';
import { errorResponses, V3_HEADERS } from './errorResponses.ts';
import { INTRODUCTION } from './introduction.ts';
import type { AnswerDescription, Examples, Operation, RequestBodyDescription } from './operation.ts';
import { TAGS } from './operation.ts';
import { type PathParameter, pathParameters } from './pathParameters.ts';
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
const PREFIXES: readonly ApiVersion[] = ['v3', 'webhooks'];

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
      paths[path] = {
        ...paths[path],
        [route.method.toLowerCase()]: describedOperation(
          version,
          route,
          route.describe,
          shared.pathParameters,
        ),
      };
    }
  }
  return {
    openapi: '3.0.3',
    info: {
      title: 'Fleet Tracking Service',
      version: shared.version,
      description: INTRODUCTION,
      contact: { name: 'The operator of this service' },
      // There is no licence; linters ask for the field and for a page that explains it.
      license: {
        name: 'UNLICENSED: no rights are granted',
        url: 'https://docs.npmjs.com/cli/configuring-npm/package-json#license',
      },
    },
    servers: [{ url: '/', description: 'The service that serves this description.' }],
    tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
    paths: Object.fromEntries(Object.entries({ ...paths, ...DESCRIPTION_PATHS }).sort(byPath)),
    components: componentsWith(shared.schemas),
  };
}

/** Each collection before what is in it. */
function byPath([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  return a < b ? -1 : 1;
}

/** "/devices/:imei" → "/api/v3/devices/{imei}". */
function describedPath(version: ApiVersion, path: string): string {
  return `/api/${version}${path === '/' ? '' : path.replace(/[:*](\w+)/g, '{$1}')}`;
}

const KEY = { ApiKey: [] };
const SESSION = { Session: [] };

function describedOperation(
  version: ApiVersion,
  route: Route,
  operation: Operation,
  inPaths: SharedDescription['pathParameters'],
): object {
  const permissions = scopeNames(route.scopes);
  const permission = `Permission: ${permissions.map((name) => `\`${name}\``).join(route.needsAllScopes === true ? ' and ' : ' or ')}.`;
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
    responses: responsesOf(version, route, operation),
    ...(operation.callbacks === undefined ? {} : { callbacks: operation.callbacks }),
    security: version === 'webhooks' ? [KEY, SESSION] : [KEY],
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

function responsesOf(version: ApiVersion, route: Route, operation: Operation): Record<string, object> {
  const mark = version === 'v3' ? V3_HEADERS : {};
  const responses: Record<string, object> = {};
  for (const answer of operation.answers) responses[answer.status] = describedAnswer(answer, mark);
  return { ...responses, ...errorResponses(version, route, operation) };
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
  mark: Readonly<Record<string, object>>,
): object {
  const all = { ...mark, ...Object.fromEntries(headers.map((name) => [name, headerRef(name)])) };
  return {
    description,
    ...(Object.keys(all).length === 0 ? {} : { headers: all }),
    ...(schema === undefined
      ? {}
      : {
          content: {
            [contentType]: { schema, examples: namedExamples(examples) },
            ...Object.fromEntries(fileTypes.map((type) => [type, { schema }])),
          },
        }),
  };
}

function headerRef(name: string): object {
  return { $ref: `#/components/headers/${name}` };
}

function namedExamples(examples: Examples): object {
  return Object.fromEntries(Object.entries(examples).map(([name, value]) => [name, { value }]));
}
