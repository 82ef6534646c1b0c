import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Answer } from '../../src/http/answer.ts';
import { close } from '../../src/http/server.ts';
import { apiSide, IMEI, KEYS, keyOf, serveSide } from '../support/http/apiSide.ts';
import { bareExchange, bareRequest, exchange } from '../support/http/http.ts';
import { waitFor } from '../support/waitFor.ts';

const side = apiSide();

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
];

const ask = (target: string, key: Parameters<typeof keyOf>[0] = 'now', { url } = side) =>
  bareRequest(url, `/api/v3${target}`, { headers: { 'X-API-Key': keyOf(key) } });

test('a call is answered by what becomes of its key, at once or later', async () => {
  const expected: readonly (readonly [Parameters<typeof keyOf>[0], number, RegExp])[] = [
    ['now', 200, /"data":\[\{/],
    ['later', 200, /"data":\[\{/],
    ['other', 200, /"data":\[\]/],
    ['scopeless', 403, /INSUFFICIENT_SCOPE/],
    ['limited', 429, /requests per key per minute/],
    ['limited later', 429, /requests per IP address per minute/],
    ['by address', 403, /API_KEY_IP_BLOCKED/],
    ['unavailable', 503, /SERVICE_UNAVAILABLE/],
    ['unavailable later', 503, /SERVICE_UNAVAILABLE/],
    ['fault', 500, /INTERNAL_ERROR/],
  ];
  assert.equal(expected.length, KEYS.length);
  for (const [key, status, text] of expected) {
    const reply = await ask('/devices', key);
    assert.deepEqual([reply.status, reply.headers['x-api-status']], [status, 'beta'], key);
    assert.match(reply.text, text);
  }
});

describe('HEAD is answered as GET without the body', () => {
  for (const version of ['v2', 'v3']) {
    for (const target of TARGETS.filter((target) => version === 'v3' || !target.startsWith('/areas'))) {
      test(`for /api/${version}${target}, whoever asks`, async () => {
        for (const key of [undefined, 'fk_', ...KEYS]) {
          const headers: Record<string, string> = key === undefined ? {} : { 'X-API-Key': key };
          const [get, head] = await Promise.all(
            ['GET', 'HEAD'].map(async (method) => {
              const {
                status,
                headers: got,
                text,
              } = await bareRequest(side.url, `/api/${version}${target}`, {
                method,
                headers,
              });
              return { status, text, headers: { ...got, date: '' } };
            }),
          );
          assert.ok(get !== undefined && head !== undefined && head.text === '');
          const { status } = get;
          // A list that is made while it is read has a length only once it was read.
          if (get.headers['content-length'] !== undefined || status === 204)
            assert.deepEqual({ ...head, text: '' }, { ...get, text: '' }, `${key}`);
        }
      });
    }
  }
});

describe('a connection is kept or closed as its client asks', () => {
  const get = (version: string, more = '') =>
    `GET /api/v3/devices?limit=1 HTTP/${version}\r\nHost: x\r\nX-API-Key: ${keyOf('now')}\r\n${more}\r\n`;
  for (const [what, requests] of [
    ['HTTP/1.1', [get('1.1'), get('1.1', 'Connection: close\r\n')]],
    ['HTTP/1.0', [get('1.0')]],
    ['HTTP/1.0 that asks for more', [get('1.0', 'Connection: keep-alive\r\n'), get('1.0')]],
  ] as const) {
    test(`with ${what}`, async () => {
      const text = await bareExchange(side.url, [requests.join('')]);
      assert.equal(text.split('HTTP/1.1 200 OK').length - 1, requests.length);
    });
  }

  test('while the server closes', async () => {
    const { server, url } = await serveSide();
    let closed: Promise<void> | undefined;
    server.once('request', () => {
      closed = close(server, 10_000);
    });
    const text = await bareExchange(url, [get('1.1') + get('1.1')]);
    await closed;
    const said = [...text.matchAll(/^Connection: (.+)\r$/gm)].map((match) => match[1]);
    assert.deepEqual(said, ['keep-alive', 'close']);
  });
});

test('answers of one connection come in the order of its requests, also when an earlier one takes longer', async () => {
  const get = (target: string, key: 'now' | 'later', more = '') =>
    `GET /api/v3${target} HTTP/1.1\r\nHost: x\r\nX-API-Key: ${keyOf(key)}\r\n${more}\r\n`;
  const text = await exchange(side.url, [
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
  await Promise.all(Array.from({ length: 20 }, () => exchange(side.url, [request], { hangUp: true })));
  assert.equal((await ask('/devices')).status, 200);
});

test('a route that takes long can see that its caller has hung up', async () => {
  const began = Promise.withResolvers<() => boolean>();
  const answer = Promise.withResolvers<Answer>();
  const { url, server, logged } = await serveSide(undefined, {
    asked: ({ hasLeft }) => {
      began.resolve(hasLeft ?? (() => false));
      return answer.promise;
    },
  });
  const caller = new AbortController();
  const headers = { 'X-API-Key': keyOf('now') };
  const asked = fetch(`${url}/api/v3/asked`, { headers, signal: caller.signal });
  const hasLeft = await began.promise;
  assert.equal(hasLeft(), false);
  caller.abort();
  await assert.rejects(asked, { name: 'AbortError' });
  await waitFor(hasLeft);
  answer.resolve({ status: 200, body: '{}' });
  await answer.promise;
  assert.deepEqual(logged, []);
  server.close();
});

test('503 is the answer to everything but the probes while the service starts, whatever key is shown', async () => {
  const { url, server, logged } = await serveSide(undefined, { isLoaded: false });
  for (const path of ['/', '/unknown', '/api/v2', '/api/v2/devices', '/api/v3/devices', '/api/v30']) {
    for (const key of ['now', 'scopeless', 'fault'] as const) {
      const reply = await bareRequest(url, path, { headers: { 'X-API-Key': keyOf(key) } });
      assert.deepEqual([reply.status, JSON.parse(reply.text).error.code], [503, 'SERVICE_UNAVAILABLE'], path);
      assert.equal(reply.headers['retry-after'], undefined);
      assert.equal(reply.headers['x-api-status'], path.startsWith('/api/v3/') ? 'beta' : undefined);
    }
  }
  assert.equal((await bareRequest(url, '/healthz', {})).status, 200);
  assert.equal((await bareRequest(url, '/readyz', {})).status, 503);
  assert.deepEqual(logged, []);
  server.close();
});

for (const [target, status, code, message] of [
  ['/throws', 500, 'INTERNAL_ERROR', /of this service/],
  ['/rejects', 500, 'INTERNAL_ERROR', /of this service/],
  ['/away', 503, 'SERVICE_UNAVAILABLE', /could not be asked/],
] as const) {
  test(`${target} is answered with ${status} ${code}, without its reason, and logged once`, async () => {
    side.logged.length = 0;
    const reply = await ask(target);
    assert.deepEqual([reply.status, JSON.parse(reply.text).error.code], [status, code]);
    assert.doesNotMatch(reply.text, /secret|too slow|Error:/);
    assert.equal(side.logged.length, 1);
    assert.match(side.logged[0] as string, message);
  });
}
