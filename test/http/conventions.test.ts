import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { exchange, type RawReply, type RawRequest, rawRequest } from '../support/http/http.ts';
import { ownerPod } from '../support/ownerPod.ts';

const VAN = '350000000000001';
const VERSIONS = ['v2', 'v3'] as const;

const owner = ownerPod({ devices: [{ imei: VAN }] });
const { pod } = owner;

const send = (path: string, options: RawRequest = {}): Promise<RawReply> =>
  rawRequest(pod.api, path, { ...options, headers: { 'X-API-Key': owner.key, ...options.headers } });
const outcome = ({ status, text }: RawReply): string =>
  `${status} ${JSON.parse(text).error?.code ?? ''}`.trim();

test('parameters that are unknown or in another case are passed over', async () => {
  const plain = await send('/api/v2/devices');
  assert.equal((await send('/api/v2/devices?LIMIT=0&Offset=7&x=&=y&&')).text, plain.text);
});

test('a path may come percent-encoded', async () => {
  const encoded = await send(`/api/v2/devices/${VAN.replaceAll('3', '%33')}`);
  assert.equal(encoded.text, (await send(`/api/v2/devices/${VAN}`)).text);
});

test('a bad escape in a path is refused with 400', async () => {
  for (const path of ['/devices/%', '/devices/%zz', '/devices/%E0%A4%A/location', '/devices/%ff/history']) {
    for (const version of VERSIONS) {
      const reply = await send(`/api/${version}${path}`);
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
      const v2 = await send(`/api/v2${path}`, { headers });
      assert.equal(outcome(v2), isTaken ? expected : '400 BAD_REQUEST');
      assert.equal(outcome(await send(`/api/v3${path}`, { headers })), expected);
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
      const reply = await send(path, { method });
      assert.equal(outcome(reply), '404 NOT_FOUND', method);
      assert.equal(reply.headers['x-api-status'], /^\/api\/v3(\/|$)/.test(path) ? 'beta' : undefined);
    }
  });
}

describe('headers', () => {
  const withOthers = (count: number): Promise<string> => {
    const others = Array.from({ length: count }, (_, n) => `X-Other-${n}: ${n}\r\n`).join('');
    return exchange(pod.api, [
      `GET /api/v2/devices HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${others}X-API-Key: ${owner.key}\r\n\r\n`,
    ]);
  };

  test('are all read, up to 16 KB of them, and more are refused with 431', async () => {
    assert.match(await withOthers(700), /^HTTP\/1.1 200 /);
    assert.match(await withOthers(2_000), /^HTTP\/1.1 431 .*"code":"HEADERS_TOO_LARGE"/s);
  });
});
