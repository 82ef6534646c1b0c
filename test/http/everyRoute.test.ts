import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { SCOPES, type Scope } from '../../src/access/scopes.ts';
import { CIRCLE } from '../support/http/areas.ts';
import { exchange, type RawReply, type RawRequest, rawRequest } from '../support/http/http.ts';
import { OWNER, ownerPod } from '../support/ownerPod.ts';
import { NO_LIMITS, request } from '../support/pod.ts';

const VAN = '350000000000001';
const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'TRACE', 'PROPFIND', 'QUERY'];

type Version = 'v2' | 'v3' | 'webhooks';
/** The permissions that open each method, any one of them. */
type Methods = Readonly<Record<string, readonly Scope[]>>;

const READ_AREAS = ['read_areas'] as const;
const WRITE_AREAS = ['write_areas'] as const;
const WEBHOOKS = ['manage_webhooks'] as const;
const BOTH: Readonly<Record<string, readonly Scope[]>> = {
  '/devices': ['read_devices'],
  '/devices/nearest?lat=41.9&lng=12.5': ['read_devices', 'read_locations'],
  [`/devices/${VAN}`]: ['read_devices'],
  [`/devices/${VAN}/location`]: ['read_locations'],
  [`/devices/${VAN}/history`]: ['read_history'],
  [`/devices/${VAN}/history/summary?from=2099-01-01&to=2099-01-02`]: ['read_history_summary'],
  [`/devices/${VAN}/commands`]: ['send_commands'],
  '/events': ['read_events'],
};
const PATHS: Readonly<Record<Version, Readonly<Record<string, Methods>>>> = {
  v2: Object.fromEntries(Object.entries(BOTH).map(([path, GET]) => [path, { GET }])),
  v3: {
    ...Object.fromEntries(Object.entries(BOTH).map(([path, GET]) => [path, { GET }])),
    '/devices/count': { GET: ['read_devices'] },
    '/areas': { GET: READ_AREAS, POST: WRITE_AREAS },
    '/areas/:area': { GET: READ_AREAS, PATCH: WRITE_AREAS, DELETE: WRITE_AREAS },
    '/areas/:area/contains?lat=41.9&lng=12.5': { GET: READ_AREAS },
    '/areas/:area/events': { GET: READ_AREAS },
    '/areas/import': { POST: WRITE_AREAS },
    '/areas/by-external-id/x': { PUT: WRITE_AREAS },
  },
  webhooks: {
    '': { GET: WEBHOOKS, POST: WEBHOOKS },
    '/:webhook': { GET: WEBHOOKS, PUT: WEBHOOKS, DELETE: WEBHOOKS },
    '/:webhook/test': { POST: WEBHOOKS },
    '/:webhook/rotate-secret': { POST: WEBHOOKS },
    '/:webhook/deliveries': { GET: WEBHOOKS },
    '/metrics/summary': { GET: WEBHOOKS },
    '/dead-letter/list': { GET: WEBHOOKS },
    [`/deliveries/dlv_${'0'.repeat(32)}/replay`]: { POST: WEBHOOKS },
  },
};
const ROUTES = Object.entries(PATHS).flatMap(([version, paths]) =>
  Object.entries(paths).map(([path, methods]) => ({ version, path: `/api/${version}${path}`, methods })),
);

const ids: Record<string, string> = {};
const keys = new Map<string, string>([['unknown', `fk_${'A'.repeat(43)}`]]);
const env = { ...NO_LIMITS, ROLES: 'api,ingest' }; // nobody delivers
const { pod } = ownerPod({ env, devices: [{ imei: VAN }] }, async ({ pod, admin }) => {
  await admin.run('command:enqueue', '--imei', VAN, '--type', 'reboot');
  for (const scopes of ['all', ...SCOPES]) keys.set(scopes, (await admin.key(OWNER, { scopes })).key);
  await pod.points([{ imei: VAN, recorded_at: Date.now(), latitude: 41.9, longitude: 12.5, ignition: true }]);
  for (const [name, path, body] of [
    ['area', '/v3/areas', CIRCLE],
    ['webhook', '/webhooks', { url: 'https://hooks.example.com/', events: ['*'] }],
  ] as const) {
    const headers = { 'X-API-Key': keys.get('all') ?? '', 'Content-Type': 'application/json' };
    const init = { method: 'POST', headers, body: JSON.stringify(body) };
    ids[name] = String((await request(`${pod.api}/api${path}`, init)).body.data.id);
  }
});

/** `:area` and `:webhook` stand for those that there are, unless `id` says otherwise. */
function send(method: string, path: string, key?: string, options: RawRequest & { id?: string } = {}) {
  const target = path.replace(/:(area|webhook)/, (_, name) => options.id ?? (ids[name] as string));
  const headers = {
    ...(key === undefined ? {} : { 'X-API-Key': keys.get(key) as string }),
    ...options.headers,
  };
  return rawRequest(pod.api, target, { ...options, method, headers });
}

const split = (path: string): [plain: string, query: string] => {
  const [plain = '', query = ''] = path.split('?');
  return [plain, query === '' ? '' : `?${query}`];
};
const slashed = (path: string): string => split(path).join('/');
const withQuery = (path: string, more: string): string => `${path}${path.includes('?') ? '&' : '?'}${more}`;
const outcome = ({ status, text }: RawReply): string =>
  `${status} ${JSON.parse(text).error?.code ?? ''}`.trim();
const betaOf = (version: string): string | undefined => (version === 'v3' ? 'beta' : undefined);
const faceOf = ({ status, text, headers: { date: _, ...headers } }: RawReply) => ({ status, text, headers });

/** A body that is no JSON, for methods that take one: what comes before it is decided without it. */
const badBody = (method: string): RawRequest =>
  ['POST', 'PUT', 'PATCH'].includes(method) ? { body: '{', headers: { 'Content-Length': '1' } } : {};

for (const { version, path, methods } of ROUTES) {
  const allowed = Object.keys(methods).flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : method));
  const allow = [...allowed, 'OPTIONS'].sort();
  const allowOf = ({ headers }: RawReply) => headers.allow?.split(', ').sort();

  describe(path, () => {
    for (const [method, opening] of Object.entries(methods)) {
      test(`${method} opens with ${opening.join(' or ')} and no other permission, whatever else is wrong`, async () => {
        for (const scope of SCOPES) {
          // What else is wrong is tried with one permission that opens and one that does not.
          const isTried = scope === opening[0] || scope === SCOPES.find((one) => !opening.includes(one));
          for (const target of isTried ? [path, slashed(path), withQuery(path, 'a=1&a=2')] : [path]) {
            for (const id of isTried && path.includes(':') ? ['x', '999999999'] : ['x']) {
              const reply = await send(method, target, scope, { id, ...badBody(method) });
              const hint = `${scope} ${target} ${id}: ${reply.text}`;
              assert.equal(reply.status !== 403, opening.includes(scope), hint);
              if (reply.status !== 403) continue;
              const { error } = JSON.parse(reply.text);
              if (version !== 'v2') assert.equal(error.code, 'INSUFFICIENT_SCOPE');
              for (const name of opening) assert.match(error.message ?? error, new RegExp(`\\b${name}\\b`));
              assert.equal(reply.headers['x-api-status'], betaOf(version));
            }
          }
        }
      });
    }

    test('is refused with 403 without a key, and with one that is not known, before its method is looked at', async () => {
      for (const method of ['GET', 'POST', 'PUT']) {
        assert.equal(outcome(await send(method, path)), '403 API_KEY_REQUIRED');
        assert.equal(outcome(await send(method, path, 'unknown')), '403 API_KEY_INVALID');
      }
    });

    test('answers 405 with Allow to any other method, before permission and body, and 204 with it to OPTIONS', async () => {
      for (const [n, method] of METHODS.filter((one) => !(one in methods)).entries()) {
        const reply = await send(method, path, n % 2 === 0 ? 'all' : 'read_history_summary', badBody(method));
        assert.equal(outcome(reply), '405 METHOD_NOT_ALLOWED', method);
        assert.deepEqual([allowOf(reply), reply.headers['x-api-status']], [allow, betaOf(version)]);
      }
      const headers = { Origin: 'https://example.com' };
      const options = await send('OPTIONS', path, 'read_history_summary', { headers });
      assert.deepEqual([options.status, options.text, allowOf(options)], [204, '', allow]);
      for (const name of Object.keys(options.headers)) assert.doesNotMatch(name, /^access-control/);
    });

    if (!('GET' in methods)) return;

    test('answers GET with { data, meta } as JSON, with one trailing slash too, and HEAD with its headers', async () => {
      const reply = await send('GET', path, 'all');
      assert.equal(reply.status, 200, reply.text);
      assert.deepEqual(Object.keys(JSON.parse(reply.text)), ['data', 'meta']);
      const { headers } = reply;
      assert.equal(headers['content-type'], 'application/json; charset=utf-8');
      assert.deepEqual(
        [headers['x-api-status'], headers['x-content-type-options']],
        [betaOf(version), 'nosniff'],
      );
      for (const name of Object.keys(headers))
        assert.doesNotMatch(name, /ratelimit|retry-after|x-powered-by|deprecation|sunset|etag/);
      assert.deepEqual(faceOf(await send('GET', slashed(path), 'all')), faceOf(reply));
      const head = await send('HEAD', path, 'all');
      assert.deepEqual(faceOf(head), { ...faceOf(reply), text: '' });
    });

    test('answers the absolute form of a GET, as proxies may send it', async () => {
      const reply = await send('GET', path, 'all');
      for (const base of ['http://somewhere', 'HTTPS://user@somewhere:8080', 'http://[::1]'])
        assert.deepEqual(faceOf(await send('GET', `${base}${path}`, 'all')), faceOf(reply));
    });

    test('refuses a parameter that is given twice, however it is escaped, with 400', async () => {
      for (const twice of ['limit=1&limit=1', 'x&x', 'limit=1&li%6Dit=2', 'a+b=1&a%20b=2']) {
        const reply = await send('GET', withQuery(path, twice), 'all');
        assert.equal(outcome(reply), '400 BAD_REQUEST', twice);
        assert.equal(reply.headers['x-api-status'], betaOf(version));
      }
    });
  });
}

/** By list: its greatest limit, the limit when none is sent, and whether it reads an offset. */
const LISTS: readonly (readonly [max: number, fallback: number, hasOffset: boolean, ...paths: string[]])[] = [
  [200, 50, true, '/api/v3/devices', '/api/v3/events', '/api/v3/areas', '/api/v3/areas/:area/events'],
  [200, 50, true, '/api/webhooks', '/api/webhooks/:webhook/deliveries', '/api/webhooks/dead-letter/list'],
  [200, 50, true, '/api/v1/keys'],
  [1000, 500, false, `/api/v3/devices/${VAN}/history`],
  [100, 50, false, `/api/v3/devices/${VAN}/commands`],
];
for (const [max, fallback, hasOffset, ...paths] of LISTS) {
  for (const path of paths) {
    test(`${path} lists ${fallback} by default, and moves a limit into the range from 1 to ${max}`, async () => {
      for (const [query, limit, offset] of [
        ['', fallback, 0],
        ['?limit=0&offset=-5', 1, 0],
        [`?limit=${max + 1}&offset=x`, max, 0],
        ['?limit=x&offset=1.9', fallback, 1],
        ['?limit=2.9&offset=77', 2, 77],
      ] as const) {
        const { data, meta } = JSON.parse((await send('GET', `${path}${query}`, 'all')).text);
        const pagination = { limit, offset: hasOffset ? offset : 0, count: data.length };
        assert.deepEqual(meta.pagination, pagination, query);
        assert.ok(data.length <= limit);
      }
    });
  }
}

test('v3 answers what v2 answers, byte for byte', async () => {
  for (const path of Object.keys(BOTH)) {
    const [v2, v3] = [await send('GET', `/api/v2${path}`, 'all'), await send('GET', `/api/v3${path}`, 'all')];
    assert.equal(v2.text, v3.text, path);
  }
});

test('a write tolerates one trailing slash', async () => {
  const body = JSON.stringify(CIRCLE);
  const headers = { 'Content-Type': 'application/json', 'Content-Length': String(body.length) };
  assert.equal((await send('POST', '/api/v3/areas/', 'all', { body, headers })).status, 201);
  assert.equal((await send('PATCH', '/api/v3/areas/:area/', 'all', { body, headers })).status, 200);
  assert.equal((await send('POST', '/api/v3/areas/import/', 'all', { body, headers })).status, 422);
  const named = 'http://example.com:80/api/v3/areas/by-external-id/absolute/form/';
  const put = await send('PUT', named, 'all', { body, headers });
  assert.deepEqual([put.status, JSON.parse(put.text).data.external_id], [201, 'absolute/form']);
});

/** What holds whichever route is asked. */
const get = (path: string, options: RawRequest = {}) => send('GET', path, 'all', options);

test('parameters that are unknown or in another case are passed over', async () => {
  const plain = await get('/api/v2/devices');
  assert.equal((await get('/api/v2/devices?LIMIT=0&Offset=7&x=&=y&&')).text, plain.text);
});

test('a path may come percent-encoded', async () => {
  const encoded = await get(`/api/v2/devices/${VAN.replaceAll('3', '%33')}`);
  assert.equal(encoded.text, (await get(`/api/v2/devices/${VAN}`)).text);
});

test('a bad escape in a path is refused with 400', async () => {
  for (const path of ['/devices/%', '/devices/%zz', '/devices/%E0%A4%A/location', '/devices/%ff/history']) {
    for (const version of ['v2', 'v3'] as const) {
      const reply = await get(`/api/${version}${path}`);
      assert.equal(outcome(reply), '400 BAD_REQUEST', path);
      assert.equal(reply.headers['x-api-status'], version === 'v3' ? 'beta' : undefined);
    }
  }
});

for (const [value, isTaken] of [
  ['v1', true],
  ['v2', false],
  ['V1', false],
  ['', false],
  ['v1, v1', false],
] as const) {
  test(`v2 ${isTaken ? 'takes' : 'refuses'} the X-API-Version "${value}", and v3 does not look at it`, async () => {
    const headers = { 'X-API-Version': value };
    for (const [path, expected] of [
      ['/devices', '200'],
      ['/events', '200'],
      ['/unknown', '404 NOT_FOUND'],
    ] as const) {
      const v2 = await get(`/api/v2${path}`, { headers });
      assert.equal(outcome(v2), isTaken ? expected : '400 BAD_REQUEST');
      assert.equal(outcome(await get(`/api/v3${path}`, { headers })), expected);
    }
  });
}

const nowhere = [
  ...[
    '//',
    '/index.html',
    '/api',
    '/api/v2',
    '/api/v3/',
    '/api/v20/devices',
    '/api/v4/devices',
    '/api/v2.0/devices',
  ],
  ...['/API/v2/devices', '/api/V3/devices', '/api/v2/Devices', '/api/v2/device', '/api/v3/events/1'],
  ...['//api/v2/devices', '/api//v2/devices', '/api/v2//devices', '/api/v2/devices//', '/api/v2/events//'],
  ...['/api/v2/./devices', '/api/v2/x/../devices', '/api%2Fv2/devices', `/api/v2/devices/${VAN}//`],
  ...[
    `/api/v2/devices/${VAN}/locations`,
    `/api/v3/devices/${VAN}/location/now`,
    '/api/areas',
    '/api/v2/areas',
  ],
  ...[
    '/api/v2/areas/1/events',
    '/api/v3/area',
    '/api/v3/Areas',
    '/api/v3/areas/1/nowhere',
    '/api/v3/areas//1',
  ],
  ...['/api/v3/areas/1/contains/x', '/api/v3/areas/import/x', '/api/webhooks//', '/api/webhooks/1/x'],
  ...[
    '/api/v3/__proto__',
    '/api/v3/constructor/x',
    '/api/__proto__/x',
    '/api/v3/devi%63es',
    '/api?/v3/devices',
  ],
  ...['/metrics', '/positions', '/healthz/x', '*', 'http://somewhere//'],
];
for (const path of nowhere) {
  test(`${path} is no route: 404`, async () => {
    for (const method of ['GET', 'POST', 'OPTIONS']) {
      const reply = await send(method, path, 'all');
      assert.equal(outcome(reply), '404 NOT_FOUND', method);
      assert.equal(reply.headers['x-api-status'], /^\/api\/v3(\/|$)/.test(path) ? 'beta' : undefined);
    }
  });
}

describe('headers', () => {
  const withOthers = (count: number): Promise<string> => {
    const others = Array.from({ length: count }, (_, n) => `X-Other-${n}: ${n}\r\n`).join('');
    return exchange(pod.api, [
      `GET /api/v2/devices HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${others}X-API-Key: ${keys.get('all')}\r\n\r\n`,
    ]);
  };

  test('are all read, up to 16 KB of them, and more are refused with 431', async () => {
    assert.match(await withOthers(700), /^HTTP\/1.1 200 /);
    assert.match(await withOthers(2_000), /^HTTP\/1.1 431 .*"code":"HEADERS_TOO_LARGE"/s);
  });
});
