import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { adminOf } from '../support/admin.ts';
import { type AreaApi, areaApi, CIRCLE, PLACE } from '../support/areas.ts';
import { type RawReply, rawRequest } from '../support/http.ts';
import { type Pod, startPod } from '../support/pod.ts';
import { createDatabase } from '../support/postgres.ts';

const UNKNOWN_ID = Number.MAX_SAFE_INTEGER;

/** Paths and what they answer: [path, methods, scope of each]. */
const PATHS: readonly (readonly [
  path: string,
  methods: Readonly<Record<string, 'read_areas' | 'write_areas'>>,
])[] = [
  ['', { GET: 'read_areas', POST: 'write_areas' }],
  ['/ID', { GET: 'read_areas', PATCH: 'write_areas', DELETE: 'write_areas' }],
  ['/ID/contains?lat=41.9&lng=12.5', { GET: 'read_areas' }],
  ['/import', { POST: 'write_areas' }],
  ['/by-external-id/x', { PUT: 'write_areas' }],
];
const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];
const ROUTES = PATHS.flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, scope]) => ({ method, path, scope })),
);

describe('the area routes', () => {
  const keys = new Map<string, string>();
  let pod: Pod;
  let api: AreaApi;
  let id: number;

  before(async () => {
    const database = await createDatabase();
    const admin = adminOf(database.url);
    await admin.account('owner@example.com');
    const others =
      'read_devices,read_locations,read_history,read_history_summary,send_commands,read_events,manage_webhooks';
    for (const scopes of ['all', 'read_areas', 'write_areas', others]) {
      const name = scopes === others ? 'others' : scopes;
      keys.set(name, (await admin.key('owner@example.com', { scopes })).key);
    }
    pod = await startPod(database.url);
    api = areaApi(pod, keys.get('all') as string);
    id = await api.make(CIRCLE);
  });

  after(() => pod.stop());

  const send = (method: string, path: string, key: string | null = 'all', body = ''): Promise<RawReply> =>
    rawRequest(pod.api, path.startsWith('/api') ? path : `/api/v3/areas${path.replace('ID', String(id))}`, {
      method,
      headers: {
        ...(key === null ? {} : { 'X-API-Key': keys.get(key) ?? key }),
        ...(body === '' ? {} : { 'Content-Type': 'application/json', 'Content-Length': String(body.length) }),
      },
      ...(body === '' ? {} : { body }),
    });
  const gist = ({ status, text }: RawReply): string => `${status} ${JSON.parse(text).error.code}`;
  const total = async (): Promise<number> => (await api.get()).body.meta.total;

  for (const { method, path, scope } of ROUTES) {
    test(`403: ${method} ${path} needs ${scope}, whatever else is wrong with the call`, async () => {
      const other = scope === 'read_areas' ? 'write_areas' : 'read_areas';
      for (const key of [other, 'others']) {
        for (const target of [
          path,
          path.replace('ID', 'x'),
          path.replace('ID', String(UNKNOWN_ID)),
          `${path}${path.includes('?') ? '&' : '?'}a=1&a=2`,
        ]) {
          const reply = await send(method, target, key, method === 'GET' ? '' : '{');
          assert.equal(gist(reply), '403 INSUFFICIENT_SCOPE', `${key} ${target}`);
          assert.match(reply.text, new RegExp(scope));
        }
      }
      const allowed = await send(
        method,
        path.replace('ID', String(UNKNOWN_ID)),
        scope,
        method === 'GET' ? '' : '{',
      );
      assert.notEqual(allowed.status, 403);
    });

    test(`403: ${method} ${path} without a key, or with one that is not known`, async () => {
      assert.equal(gist(await send(method, path, null)), '403 API_KEY_REQUIRED');
      assert.equal(gist(await send(method, path, `fk_${'A'.repeat(43)}`)), '403 API_KEY_INVALID');
    });
  }

  for (const [path, methods] of PATHS) {
    const allow = [
      ...Object.keys(methods).flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method])),
      'OPTIONS',
    ];
    const plain = path.split('?')[0] as string;

    test(`405: any other method on ${plain || '/'}, with Allow, before scope and body`, async () => {
      const before = await total();
      for (const method of [...METHODS, 'TRACE'].filter((one) => !(one in methods))) {
        for (const key of ['all', 'others']) {
          const reply = await send(
            method,
            path,
            key,
            method === 'GET' || method === 'TRACE' ? '' : JSON.stringify(PLACE),
          );
          assert.equal(gist(reply), '405 METHOD_NOT_ALLOWED', method);
          assert.deepEqual(reply.headers.allow?.split(', ').toSorted(), allow.toSorted(), method);
          assert.equal(reply.headers['x-api-status'], 'beta');
        }
      }
      assert.equal(await total(), before);
    });

    test(`204: OPTIONS ${plain || '/'} says what there is`, async () => {
      const reply = await send('OPTIONS', path, 'others');
      assert.deepEqual([reply.status, reply.text], [204, '']);
      assert.deepEqual(reply.headers.allow?.split(', ').toSorted(), allow.toSorted());
    });
  }

  test('HEAD has the status and headers of GET, without the body', async () => {
    for (const path of [
      '',
      '?format=geojson',
      '/ID',
      `/${UNKNOWN_ID}`,
      '/x',
      '/ID/contains?lat=41.9&lng=12.5',
      '/ID/contains',
    ]) {
      const [get, head] = [await send('GET', path), await send('HEAD', path)];
      assert.deepEqual([head.status, head.text], [get.status, ''], path);
      assert.equal(head.headers['content-length'], get.headers['content-length'], path);
      assert.equal(head.headers['content-type'], 'application/json; charset=utf-8');
    }
  });

  test('every answer says that v3 is a beta, and none is kept, limited or signed by the server', async () => {
    const replies = [
      await send('GET', ''),
      await send('GET', '?type=x'),
      await send('GET', '/ID'),
      await send('GET', '/x'),
      await send('GET', `/${UNKNOWN_ID}`),
      await send('POST', '', 'all', JSON.stringify(PLACE)),
      await send('POST', '', 'all', '{}'),
      await send('POST', '', 'others'),
      await send('POST', '', null),
      await send('PUT', '/by-external-id/%', 'all', '{}'),
      await send('PUT', '/by-external-id/headers', 'all', JSON.stringify(PLACE)),
      await send('PATCH', '/ID', 'all', '{}'),
      await send('POST', '/import', 'all', '{}'),
      await send('GET', '/ID/nowhere'),
    ];
    for (const { status, headers } of replies) {
      assert.equal(headers['x-api-status'], 'beta', String(status));
      assert.equal(headers['content-type'], 'application/json; charset=utf-8');
      for (const name of Object.keys(headers))
        assert.doesNotMatch(
          name,
          /^(x-ratelimit|ratelimit|retry-after|x-powered-by|deprecation|sunset|etag)/,
        );
    }
  });

  test('one trailing slash is tolerated', async () => {
    for (const path of ['/', '/?limit=1', '/ID/', '/ID/contains/?lat=41.9&lng=12.5'])
      assert.equal((await send('GET', path)).status, 200, path);
    assert.equal((await send('POST', '/', 'all', JSON.stringify(PLACE))).status, 201);
    assert.equal((await send('PATCH', '/ID/', 'all', '{}')).status, 200);
    assert.equal((await send('POST', '/import/', 'all', '{}')).status, 422);
  });

  test('404: v2 has no areas, and neither version has other paths', async () => {
    for (const { method, path } of ROUTES) {
      const reply = await send(
        method,
        `/api/v2/areas${path.replace('ID', String(id))}`,
        'all',
        method === 'GET' ? '' : '{}',
      );
      assert.equal(gist(reply), '404 NOT_FOUND', `${method} ${path}`);
      assert.equal(reply.headers['x-api-status'], undefined);
    }
    for (const path of ['/ID/nowhere', '/ID/contains/x', '/import/x', '/ID//contains', '//ID', '/x/y/z'])
      assert.equal(gist(await send('GET', path)), '404 NOT_FOUND', path);
    for (const path of ['/api/v3/Areas', '/api/V3/areas', '/api/v3/area', '/api/areas'])
      assert.equal(gist(await send('GET', path)), '404 NOT_FOUND', path);
  });

  test('an absolute request target means its path', async () => {
    assert.equal((await api.put('absolute/form', PLACE)).status, 201);
    const absolute = await rawRequest(
      pod.api,
      `http://example.com:80/api/v3/areas/by-external-id/absolute/form`,
      {
        method: 'PUT',
        headers: { 'X-API-Key': api.key, 'Content-Type': 'application/json' },
        body: JSON.stringify(PLACE),
      },
    );
    assert.equal(absolute.status, 200);
    assert.equal(JSON.parse(absolute.text).data.external_id, 'absolute/form');
  });

  test('400: nothing stands where the id belongs', async () => {
    assert.equal(gist(await send('GET', '//contains?lat=1&lng=1')), '400 BAD_REQUEST');
  });
});
