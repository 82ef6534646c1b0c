import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Validator } from '@seriousme/openapi-schema-validator';
import { scopeNames } from '../../../src/access/scopes.ts';
import { ERRORS } from '../../../src/http/answer.ts';
import { deliveryHeaders } from '../../../src/webhooks/delivery.ts';
import { describedApi, describedRoutes } from '../../support/http/describedApi.ts';
import { StrictApi } from '../../support/http/strictApi.ts';

interface Example {
  readonly value: unknown;
}
interface Media {
  readonly schema: object;
  readonly examples?: Readonly<Record<string, Example>>;
}
interface Operation {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary: string;
  readonly parameters?: readonly {
    readonly name: string;
    readonly in: string;
    readonly schema?: { readonly default?: unknown };
    readonly example?: unknown;
  }[];
  readonly requestBody?: { readonly content: Readonly<Record<string, Media>> };
  readonly responses: Readonly<Record<string, object>>;
  readonly callbacks?: Readonly<Record<string, Readonly<Record<string, { readonly post: Operation }>>>>;
  readonly security?: readonly object[];
  readonly 'x-permissions'?: readonly string[];
}

const document = describedApi();
const strict = new StrictApi(document);
const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({
    path,
    method,
    keys: ['paths', path, method],
    operation: operation as Operation,
  })),
);

/** Every value under this key, anywhere in the description. */
function valuesOf(node: unknown, key: string): unknown[] {
  if (typeof node !== 'object' || node === null) return [];
  return Object.entries(node).flatMap(([name, value]) => [
    ...(name === key ? [value] : []),
    ...valuesOf(value, key),
  ]);
}

/** Every example with the schema that it should be an example of, as keys that lead there. */
function examplesIn(
  node: unknown,
  keys: readonly string[],
): { keys: string[]; name: string; value: unknown }[] {
  if (typeof node !== 'object' || node === null) return [];
  const { schema, examples } = node as Partial<Media>;
  if (schema !== undefined && examples !== undefined) {
    return Object.entries(examples).map(([name, { value }]) => ({ keys: [...keys, 'schema'], name, value }));
  }
  return Object.entries(node).flatMap(([key, value]) => examplesIn(value, [...keys, key]));
}

interface Schema {
  readonly properties?: {
    readonly error?: { readonly properties: { readonly code: { readonly enum: readonly string[] } } };
  };
}
interface Response {
  readonly $ref?: string;
  readonly content?: { readonly 'application/json'?: { readonly schema: Schema } };
}

/** The codes of the errors that a response may carry. */
function codesOf(response: Response): readonly string[] {
  if (response.$ref !== undefined) {
    const name = response.$ref.slice('#/components/responses/'.length);
    return codesOf(document.components['responses']?.[name] as Response);
  }
  return codesIn(response.content?.['application/json']?.schema ?? {});
}

function codesIn({ properties }: Schema): readonly string[] {
  return properties?.error?.properties.code.enum ?? [];
}

describe('the description', () => {
  test('is valid OpenAPI 3.0.3, says an independent validator', async () => {
    const { valid, errors } = await new Validator().validate(structuredClone(document) as never);
    assert.ok(valid, JSON.stringify(errors, null, 1));
    assert.equal(document.openapi, '3.0.3');
  });

  test('has every route of v3, of the webhooks and of links, with its permissions, and nothing else but itself', () => {
    const routes = describedRoutes().flatMap((route) =>
      (['v3', 'webhooks', 'share'] as const)
        .filter((version) => route.versions.includes(version))
        .map((version) => {
          const path = `/api/${version}${route.path === '/' ? '' : route.path}`.replace(/[:*](\w+)/g, '{$1}');
          return `${route.method} ${path} ${scopeNames(route.scopes)}`;
        }),
    );
    const described = operations.map(
      ({ method, path, operation }) => `${method.toUpperCase()} ${path} ${operation['x-permissions'] ?? ''}`,
    );
    const itself = ['GET /api/v3/openapi.json ', 'GET /api/v3/docs '];
    assert.deepEqual(described.sort(), [...routes, ...itself].sort());
    assert.ok(routes.length >= 27);
  });

  test('asks for a key on every operation but those about itself and those of links', () => {
    for (const { path, operation } of operations) {
      const schemes = operation.security?.flatMap(Object.keys);
      const isOpen = operation.tags[0] === 'Description' || path.startsWith('/api/share/');
      if (isOpen) assert.deepEqual(schemes, [], path);
      else assert.deepEqual(schemes, path.startsWith('/api/v3') ? ['ApiKey'] : ['ApiKey', 'Session'], path);
    }
  });

  test('has no reference to nothing, and no schema that nothing refers to', () => {
    const used = new Set(valuesOf(document, '$ref') as string[]);
    const there = Object.entries(document.components).flatMap(([kind, parts]) =>
      Object.keys(parts).map((name) => `#/components/${kind}/${name}`),
    );
    assert.deepEqual(
      [...used].filter((reference) => !there.includes(reference)),
      [],
    );
    // Referred to by name, not by $ref.
    const alone = ['#/components/securitySchemes/ApiKey', '#/components/securitySchemes/Session'];
    assert.deepEqual(there.filter((name) => !used.has(name)).sort(), alone.sort());
  });

  test('has every registered code, under its status, and no other', () => {
    const described = operations.flatMap(({ operation }) => Object.entries(operation.responses));
    const responses = described.filter(([status]) => status !== 'default');
    const codes = new Set<string>();
    for (const [status, response] of responses) {
      for (const code of codesOf(response as Response)) {
        codes.add(code);
        const own = ERRORS[code as keyof typeof ERRORS][0];
        assert.ok(
          String(own) === status || (status === '408' && code === 'BAD_REQUEST'),
          `${code}: ${status}`,
        );
      }
    }
    const everyError = document.components['schemas']?.['Error'] as Schema;
    // No operation has another method.
    assert.deepEqual([...codes, 'METHOD_NOT_ALLOWED'].sort(), [...codesIn(everyError)].sort());
    // Of position ingest and of v1, which are not described here.
    assert.deepEqual(
      [...codesIn(everyError), 'FORBIDDEN', 'INVALID_BODY'].sort(),
      Object.keys(ERRORS).sort(),
    );
  });

  test('shows examples that are as described, field by field', () => {
    const examples = examplesIn(document, []);
    assert.ok(examples.length > 150, `${examples.length} examples`);
    const mismatches = examples.flatMap(({ keys, name, value }) => {
      const mismatch = strict.mismatchOf(keys, value);
      return mismatch === null ? [] : [`${keys.join(' ')} ${name}: ${mismatch}`];
    });
    assert.deepEqual(mismatches, []);
  });

  test('shows parameters with examples and defaults that are as described', () => {
    let shown = 0;
    for (const { keys, operation } of operations) {
      for (const [at, { name, example, schema }] of (operation.parameters ?? []).entries()) {
        for (const value of [example, schema?.default]) {
          if (value === undefined) continue;
          shown++;
          assert.equal(strict.mismatchOf([...keys, 'parameters', String(at), 'schema'], value), null, name);
        }
      }
    }
    assert.ok(shown > 20);
  });

  test('shows an example of every answer with a body, and of every body that is sent', () => {
    for (const media of valuesOf(document.paths, 'application/json') as Media[]) {
      const isItself = 'properties' in media.schema && 'openapi' in (media.schema.properties as object);
      if (!isItself) assert.ok(Object.keys(media.examples ?? {}).length > 0, JSON.stringify(media.schema));
    }
  });

  test('names every header of a delivery', () => {
    const create = document.paths['/api/webhooks']?.['post'] as Operation;
    const callback = create.callbacks?.['delivery']?.['{$request.body#/url}']?.post;
    const sent = deliveryHeaders({
      endpointId: 1,
      eventId: 'evt_1',
      deliveryId: 'dlv_1',
      attempt: 1,
      body: '{}',
      secret: 'whsec_AA==',
      previousSecret: null,
      nowMs: 0,
    });
    const named = callback?.parameters?.map(({ name }) => name) ?? [];
    assert.deepEqual([...named, 'Content-Type'].sort(), Object.keys(sent).sort());
  });
});
