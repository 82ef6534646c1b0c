import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { type AppPorts, createApp } from '../../src/http/app.ts';
import { pollingListener } from '../../src/http/pollingListener.ts';
import { close } from '../../src/http/server.ts';
import { bareExchange, bareRequest, exchange } from '../support/http/http.ts';
import { IMEI, KEYS, keyOf, pollingSide, routerSide, serveSide } from '../support/http/pollingSides.ts';
import { runs } from '../support/torture.ts';

let leftOver = 0;
const router = routerSide();
const polling = pollingSide(undefined, () => leftOver++);

const TARGETS = [
  ...['/devices', '/devices?limit=1&offset=1', '/devices?limit=1&limit=1', '/devices?offset=99'],
  ...['/devices/nearest?lat=41.9&lng=12.5'],
  ...['/devices/nearest?lat=41.9&lng=12.5&limit=50&max_km=1.50'],
  ...['/devices/nearest?lat=%34%31&lng=+12', '/devices/nearest?lat=-0&lng=-0&max_km=0'],
  ...['/devices/nearest?lat=91&lng=0', '/devices/nearest'],
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

const ask = (target: string, key: Parameters<typeof keyOf>[0] = 'now', side = polling) =>
  bareRequest(side.url, `/api/v3${target}`, { headers: { 'X-API-Key': keyOf(key) } });

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

describe('the polling listener gives the status, headers and bytes of the router', () => {
  for (const version of ['v2', 'v3']) {
    const targets =
      version === 'v3'
        ? TARGETS
        : [...TARGETS.filter((target) => !target.startsWith('/areas')), ...UNDESCRIBED];
    for (const target of targets) {
      test(`for /api/${version}${target}, whoever asks`, async () => {
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

  test('for any method and target, also those that it leaves to the router', async () => {
    const piece = fc.constantFrom(
      ...['/api', '/v2', '/v3', '/devices', '/areas', '/nearest', '/7', `/${IMEI}`, '/', '/location'],
      ...['/contains', '?lat=1', '&lng=2', '%2F', '..', '#'],
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
      { numRuns: runs(75) },
    );
  });
});

describe('the polling listener keeps or closes a connection like the router', () => {
  const get = (version: string, more = '') =>
    `GET /api/v3/devices?limit=1 HTTP/${version}\r\nHost: x\r\nX-API-Key: ${keyOf('now')}\r\n${more}\r\n`;
  for (const [what, requests] of [
    ['HTTP/1.1', [get('1.1'), get('1.1', 'Connection: close\r\n')]],
    ['HTTP/1.0', [get('1.0')]],
    ['HTTP/1.0 that asks for more', [get('1.0', 'Connection: keep-alive\r\n'), get('1.0')]],
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
      const text = await bareExchange(url, [get('1.1') + get('1.1')]);
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

test('what a route fails with is logged once and not answered, a database that cannot be asked as a warning', async () => {
  for (const [target, message] of [
    ['/throws', /of this service/],
    ['/rejects', /of this service/],
    ['/away', /could not be asked/],
  ] as const) {
    polling.logged.length = 0;
    const { text } = await ask(target);
    assert.doesNotMatch(text, /secret|too slow/);
    assert.equal(polling.logged.length, 1);
    assert.match(polling.logged[0] as string, message);
  }
});

test('every answer is observed once, by the pattern of its route', async () => {
  polling.observed.length = 0;
  await ask(`/devices/${IMEI}`);
  await ask('/devices/nearest?lat=1&lng=1', 'later');
  await ask('/devices', 'limited');
  await ask('/throws');
  assert.deepEqual(polling.observed, [
    'GET /api/v3/devices/:imei 200',
    'GET /api/v3/devices/nearest 200',
    'GET /api/v3/devices 429',
    'GET /api/v3/throws 500',
  ]);
});

test('answers of one connection come in the order of its requests, also when an earlier one takes longer', async () => {
  const get = (target: string, key: 'now' | 'later', more = '') =>
    `GET /api/v3${target} HTTP/1.1\r\nHost: x\r\nX-API-Key: ${keyOf(key)}\r\n${more}\r\n`;
  const text = await exchange(polling.url, [
    get('/devices/350000000000099', 'later') +
      get('/devices?limit=1', 'now') +
      get('/areas/x', 'later') +
      get('/empty', 'now', 'Connection: close\r\n'),
  ]);
  assert.deepEqual(
    [...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map((match) => match[1]),
    ['404', '200', '400', '204'],
  );
});

test('others are answered when callers hang up while their answers are made', async () => {
  const request = 'GET /api/v3/devices/nearest?lat=1&lng=1 HTTP/1.1\r\nHost: x\r\nX-API-Key: later\r\n\r\n';
  await Promise.all(Array.from({ length: 20 }, () => exchange(polling.url, [request], { hangUp: true })));
  assert.equal((await ask('/devices')).status, 200);
});

test('the router answers while the service starts', async () => {
  const starting = await serveSide((ports) => {
    const loading = { ...ports, probes: { ...ports.probes, loaded: () => false } };
    return pollingListener(loading, createApp(loading));
  });
  assert.equal((await ask('/devices', 'now', starting)).status, 503);
  starting.server.close();
});
