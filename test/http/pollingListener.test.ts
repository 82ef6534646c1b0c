import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import fc from 'fast-check';
import { type AppPorts, createApp } from '../../src/http/app.ts';
import { pollingListener } from '../../src/http/pollingListener.ts';
import { close } from '../../src/http/server.ts';
import { bareExchange, bareRequest, exchange } from '../support/http.ts';
import { IMEI, KEYS, keyOf, type Side, serveSide } from '../support/pollingSides.ts';

/** An app that answers by its router alone, and one with the polling listener in front that may leave nothing to it. */
let router: Side;
let polling: Side;
let leftOver = 0;
before(async () => {
  router = await serveSide(createApp);
  polling = await serveSide((ports) => {
    const app = createApp(ports);
    return pollingListener(ports, (request, response) => {
      leftOver++;
      app(request, response);
    });
  });
});
after(() => {
  router.server.close();
  polling.server.close();
});

const TARGETS = [
  '/devices',
  '/devices?limit=1&offset=1',
  '/devices?limit=1&limit=1',
  '/devices?offset=99',
  '/devices/nearest?lat=41.9&lng=12.5',
  '/devices/nearest?lat=41.9&lng=12.5&limit=50&max_km=1.50',
  '/devices/nearest?lat=%34%31&lng=+12',
  '/devices/nearest?lat=-0&lng=-0&max_km=0',
  '/devices/nearest?lat=91&lng=0',
  '/devices/nearest',
  `/devices/${IMEI}`,
  `/devices/${Number(IMEI) + 1}/location`,
  `/devices/${IMEI}/location?x`,
  '/devices/350000000000099',
  '/devices/12',
  '/areas',
  '/areas/7',
  '/areas/7?format=geojson',
  '/areas/7/contains?lat=41.9&lng=12.5',
  '/areas/7/contains?lat=41.9',
  '/areas/8/contains?lat=41.9&lng=12.5',
  '/areas/x',
  '/throws',
  '/rejects',
  '/away',
  '/crowded',
];

/** Answers of no documented route. */
const UNDESCRIBED = ['/empty', '/moved'];

async function both(method: string, target: string, headers: Readonly<Record<string, string>>) {
  const [expected, actual] = await Promise.all(
    [router, polling].map(async ({ url }) => {
      const { status, headers: got, text } = await bareRequest(url, target, { method, headers });
      const { date, ...rest } = got;
      assert.ok(date);
      return { status, headers: rest, text };
    }),
  );
  return { expected, actual };
}

describe('polled or by the router, an answer is the same: status, headers, bytes', () => {
  for (const version of ['v2', 'v3']) {
    const targets =
      version === 'v3'
        ? TARGETS
        : [...TARGETS.filter((target) => !target.startsWith('/areas')), ...UNDESCRIBED];
    for (const target of targets) {
      test(`/api/${version}${target}, whoever asks`, async () => {
        for (const key of [undefined, 'fk_', ...KEYS]) {
          for (const more of [{}, { 'X-API-Version': 'v9' }, { 'x-forwarded-for': '198.51.100.7' }]) {
            const before = leftOver;
            const headers = { ...more, ...(key === undefined ? {} : { 'X-API-Key': key }) };
            const { expected, actual } = await both('GET', `/api/${version}${target}`, headers);
            assert.deepEqual(actual, expected, `${key} ${JSON.stringify(more)}`);
            assert.equal(leftOver, before, 'the router was not asked');
          }
        }
      });
    }
  }

  test('also for methods and targets that the listener leaves to the router', async () => {
    const piece = fc.constantFrom(
      '/api',
      '/v2',
      '/v3',
      '/devices',
      '/areas',
      '/nearest',
      '/7',
      `/${IMEI}`,
      '/',
      '/location',
      '/contains',
      '?lat=1',
      '&lng=2',
      '%2F',
      '..',
      '#',
    );
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom('GET', 'GET', 'GET', 'HEAD', 'POST', 'OPTIONS', 'DELETE'),
        fc.array(piece, { maxLength: 7 }),
        fc.boolean(),
        async (method, pieces, isApi) => {
          const target = `${isApi ? '/api/v3/devices' : '/'}${pieces.join('')}`;
          const { expected, actual } = await both(method, target, { 'X-API-Key': keyOf('now') });
          assert.deepEqual(actual, expected, `${method} ${target}`);
        },
      ),
      { numRuns: 300 },
    );
  });
});

describe('polled or by the router, a connection is kept or closed alike', () => {
  const ask = (version: string, more = '') =>
    `GET /api/v3/devices?limit=1 HTTP/${version}\r\nHost: x\r\nX-API-Key: ${keyOf('now')}\r\n${more}\r\n`;
  for (const [what, requests] of [
    ['HTTP/1.1', [ask('1.1'), ask('1.1', 'Connection: close\r\n')]],
    ['HTTP/1.0', [ask('1.0')]],
    ['HTTP/1.0 that asks for more', [ask('1.0', 'Connection: keep-alive\r\n'), ask('1.0')]],
  ] as const) {
    test(`with ${what}`, async () => {
      const [expected, actual] = await Promise.all(
        [router, polling].map(async ({ url }) => linesOf(await bareExchange(url, [requests.join('')]))),
      );
      assert.deepEqual(actual, expected);
      assert.equal(actual?.filter((line) => line.endsWith('HTTP/1.1 200 OK')).length, requests.length);
    });
  }

  test('while the server closes', async () => {
    for (const make of [createApp, (ports: AppPorts) => pollingListener(ports, createApp(ports))]) {
      const { server, url } = await serveSide(make);
      let closed: Promise<void> | undefined;
      server.once('request', () => {
        closed = close(server, 10_000);
      });
      const text = await bareExchange(url, [ask('1.1') + ask('1.1')]);
      await closed;
      const said = [...text.matchAll(/^Connection: (.+)\r$/gm)].map((match) => match[1]);
      assert.deepEqual(said, ['keep-alive', 'close']);
    }
  });
});

/** All lines but the time, each answer's in an order of their own. */
function linesOf(text: string): string[] {
  return text
    .split('\r\n')
    .filter((line) => !line.startsWith('Date: '))
    .sort();
}

test('a fault tells the caller nothing and is logged once, a database that is away is only a warning', async () => {
  for (const [target, message] of [
    ['/throws', /fault of this service/],
    ['/rejects', /fault of this service/],
    ['/away', /could not be asked/],
  ] as const) {
    polling.logged.length = 0;
    const { text } = await bareRequest(polling.url, `/api/v3${target}`, {
      headers: { 'X-API-Key': keyOf('now') },
    });
    assert.doesNotMatch(text, /secret|too slow/);
    assert.equal(polling.logged.length, 1);
    assert.match(polling.logged[0] as string, message);
  }
});

test('every answer is observed once, by the pattern of its route', async () => {
  polling.observed.length = 0;
  for (const [target, key] of [
    [`/api/v2/devices/${IMEI}`, 'now'],
    ['/api/v3/devices/nearest?lat=1&lng=1', 'later'],
    ['/api/v3/devices', 'limited'],
    ['/api/v3/throws', 'now'],
  ] as const) {
    await bareRequest(polling.url, target, { headers: { 'X-API-Key': keyOf(key) } });
  }
  assert.deepEqual(polling.observed, [
    'GET /api/v2/devices/:imei 200',
    'GET /api/v3/devices/nearest 200',
    'GET /api/v3/devices 429',
    'GET /api/v3/throws 500',
  ]);
});

test('answers of one connection come in the order of its requests, also when an earlier one takes longer', async () => {
  const ask = (target: string, key: 'now' | 'later', more = '') =>
    `GET /api/v3${target} HTTP/1.1\r\nHost: x\r\nX-API-Key: ${keyOf(key)}\r\n${more}\r\n`;
  const text = await exchange(polling.url, [
    ask('/devices/350000000000099', 'later') +
      ask('/devices?limit=1', 'now') +
      ask('/areas/x', 'later') +
      ask('/empty', 'now', 'Connection: close\r\n'),
  ]);
  assert.deepEqual(
    [...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map((match) => match[1]),
    ['404', '200', '400', '204'],
  );
});

test('a caller who hangs up while its answer is made harms nobody', async () => {
  const request = 'GET /api/v3/devices/nearest?lat=1&lng=1 HTTP/1.1\r\nHost: x\r\nX-API-Key: later\r\n\r\n';
  await Promise.all(Array.from({ length: 20 }, () => exchange(polling.url, [request], { hangUp: true })));
  const { status } = await bareRequest(polling.url, '/api/v3/devices', {
    headers: { 'X-API-Key': keyOf('now') },
  });
  assert.equal(status, 200);
});

test('until memory is filled the router says that the service is starting', async () => {
  const starting = await serveSide((ports) => {
    const loading = { ...ports, probes: { loaded: () => false, ready: () => false } };
    return pollingListener(loading, createApp(loading));
  });
  const { status } = await bareRequest(starting.url, '/api/v3/devices', {
    headers: { 'X-API-Key': keyOf('now') },
  });
  starting.server.close();
  assert.equal(status, 503);
});
