import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { adminOf } from '../support/admin.ts';
import { exchange, type RawReply, type RawRequest, rawRequest } from '../support/http.ts';
import { type Pod, startPod } from '../support/pod.ts';
import { createDatabase } from '../support/postgres.ts';

const VAN = '350000000000001';
const VERSIONS = ['v2', 'v3'] as const;

/** Every device and event route, below the prefix of its version. */
const ROUTES = [
  '/devices',
  '/devices/nearest?lat=41.9&lng=12.5',
  `/devices/${VAN}`,
  `/devices/${VAN}/location`,
  `/devices/${VAN}/history`,
  `/devices/${VAN}/commands`,
  '/events',
];
const CASES = VERSIONS.flatMap((version) =>
  ROUTES.map((route) => ({ version, path: `/api/${version}${route}` })),
);

describe('conventions of the read API', () => {
  let pod: Pod;
  let key: string;

  before(async () => {
    const database = await createDatabase();
    const admin = adminOf(database.url);
    await admin.account('owner@example.com');
    ({ key } = await admin.key('owner@example.com'));
    await admin.device('owner@example.com', VAN);
    await admin.run('command:enqueue', '--imei', VAN, '--type', 'reboot');
    pod = await startPod(database.url);
    await pod.points([
      { imei: VAN, recorded_at: Date.now() - 1_000, latitude: 41.9, longitude: 12.5, ignition: false },
      { imei: VAN, recorded_at: Date.now(), latitude: 41.9, longitude: 12.5, ignition: true },
    ]);
  });

  after(() => pod.stop());

  const send = (path: string, options: RawRequest = {}): Promise<RawReply> =>
    rawRequest(pod.api, path, { ...options, headers: { 'X-API-Key': key, ...options.headers } });
  const codeOf = ({ text }: RawReply): string => JSON.parse(text).error.code;

  describe('200', () => {
    for (const { version, path } of CASES) {
      test(`${path} answers { data, meta } as JSON, without limit headers and without the server's name`, async () => {
        const reply = await send(path);
        assert.equal(reply.status, 200);
        assert.equal(reply.headers['content-type'], 'application/json; charset=utf-8');
        assert.deepEqual(Object.keys(JSON.parse(reply.text)), ['data', 'meta']);
        for (const name of Object.keys(reply.headers)) {
          assert.doesNotMatch(
            name,
            /^(x-ratelimit|ratelimit|retry-after|x-powered-by|deprecation|sunset|etag)/,
          );
        }
        assert.equal(reply.headers['x-api-status'], version === 'v3' ? 'beta' : undefined);
        assert.equal(reply.headers['x-content-type-options'], 'nosniff');
      });

      test(`${path} tolerates one trailing slash`, async () => {
        const [plain = '', query] = path.split('?');
        const slashed = query === undefined ? `${plain}/` : `${plain}/?${query}`;
        const reply = await send(slashed);
        assert.deepEqual([reply.status, reply.text], [200, (await send(path)).text]);
      });

      test(`HEAD ${path} has the status and headers of GET and no body`, async () => {
        const { status, headers } = await send(path);
        const raw = await exchange(pod.api, [
          `HEAD ${path} HTTP/1.1\r\nHost: x\r\nX-API-Key: ${key}\r\nConnection: close\r\n\r\n`,
        ]);
        const [head = '', body] = raw.split('\r\n\r\n');
        assert.equal(body, '');
        assert.match(head, new RegExp(`^HTTP/1.1 ${status} `));
        const names = head.split('\r\n').slice(1);
        assert.ok(names.includes(`Content-Length: ${headers['content-length']}`));
        assert.ok(names.includes(`Content-Type: ${headers['content-type']}`));
        assert.equal(names.includes('X-API-Status: beta'), version === 'v3');
      });

      test(`OPTIONS ${path} is 204 with Allow and without CORS`, async () => {
        const reply = await send(path, { method: 'OPTIONS', headers: { Origin: 'https://example.com' } });
        assert.deepEqual([reply.status, reply.text, reply.headers.allow], [204, '', 'GET, HEAD, OPTIONS']);
        assert.deepEqual(
          Object.keys(reply.headers).filter((name) => name.startsWith('access-control')),
          [],
        );
      });
    }

    test('v3 answers what v2 answers, byte for byte', async () => {
      for (const route of ROUTES) {
        const [v2, v3] = [await send(`/api/v2${route}`), await send(`/api/v3${route}`)];
        assert.equal(v2.text, v3.text, route);
      }
    });

    test('unknown parameters are passed over, and so is a known one in another case', async () => {
      const plain = await send('/api/v2/devices');
      assert.equal((await send('/api/v2/devices?LIMIT=0&Offset=7&x=&=y&&')).text, plain.text);
    });

    test('a path may come percent-encoded', async () => {
      const encoded = VAN.replaceAll('3', '%33');
      assert.equal(
        (await send(`/api/v2/devices/${encoded}`)).text,
        (await send(`/api/v2/devices/${VAN}`)).text,
      );
    });
  });

  describe('the absolute form of a request, as proxies may send it', () => {
    for (const { version, path } of CASES) {
      test(`http://somewhere${path} is answered like ${path}`, async () => {
        for (const base of ['http://somewhere', 'HTTPS://user@somewhere:8080', 'http://[::1]']) {
          const reply = await send(`${base}${path}`);
          assert.deepEqual([reply.status, reply.text], [200, (await send(path)).text]);
          assert.equal(reply.headers['x-api-status'], version === 'v3' ? 'beta' : undefined);
        }
      });
    }

    test('without a path it is no route', async () => {
      for (const target of ['http://', 'http://somewhere', 'http://somewhere?limit=1', 'http://[', '*']) {
        const reply = await send(target);
        assert.deepEqual([reply.status, codeOf(reply)], [404, 'NOT_FOUND'], target);
      }
    });
  });

  describe('400', () => {
    for (const { version, path } of CASES) {
      const joint = path.includes('?') ? '&' : '?';
      for (const twice of [
        'limit=1&limit=1',
        'unknown=1&unknown=2',
        'limit&limit',
        'limit=1&li%6Dit=2',
        'a+b=1&a%20b=2',
      ]) {
        test(`${path} refuses a parameter given twice: ${twice}`, async () => {
          const reply = await send(`${path}${joint}${twice}`);
          assert.deepEqual([reply.status, codeOf(reply)], [400, 'BAD_REQUEST']);
          assert.equal(reply.headers['x-api-status'], version === 'v3' ? 'beta' : undefined);
        });
      }
    }

    for (const path of ['/devices/%', '/devices/%zz', '/devices/%E0%A4%A/location', '/devices/%ff/history']) {
      test(`${path} has a bad escape`, async () => {
        for (const version of VERSIONS) {
          const reply = await send(`/api/${version}${path}`);
          assert.deepEqual([reply.status, codeOf(reply)], [400, 'BAD_REQUEST']);
          assert.equal(reply.headers['x-api-status'], version === 'v3' ? 'beta' : undefined);
        }
      });
    }

    for (const [value, status] of [
      ['v1', 200],
      ['v2', 400],
      ['v3', 400],
      ['V1', 400],
      ['1', 400],
      ['', 400],
      ['v1, v1', 400],
    ] as const) {
      test(`v2 answers ${status} to X-API-Version: "${value}", v3 does not look at it`, async () => {
        for (const path of ['/devices', '/events', '/unknown']) {
          const headers = { 'X-API-Version': value };
          const v2 = await send(`/api/v2${path}`, { headers });
          if (status === 400) assert.deepEqual([v2.status, codeOf(v2)], [400, 'BAD_REQUEST']);
          else assert.equal(v2.status, path === '/unknown' ? 404 : 200);
          assert.equal((await send(`/api/v3${path}`, { headers })).status, path === '/unknown' ? 404 : 200);
        }
      });
    }
  });

  describe('404', () => {
    const paths = [
      '/',
      '/api',
      '/api/v2',
      '/api/v3/',
      '/api/v20/devices',
      '/api/v4/devices',
      '/api/v2.0/devices',
      '/API/v2/devices',
      '/api/V3/devices',
      '/api/v2/Devices',
      '/api/v2/device',
      '/api/v2/Events',
      '/api/v3/events/1',
      '//api/v2/devices',
      '/api//v2/devices',
      '/api/v2//devices',
      '/api/v2/devices//',
      '/api/v2/events//',
      '/api/v2/./devices',
      '/api/v2/x/../devices',
      '/api%2Fv2/devices',
      `/api/v2/devices/${VAN}//`,
      `/api/v2/devices/${VAN}/locations`,
      `/api/v3/devices/${VAN}/Location`,
      `/api/v3/devices/${VAN}/location/now`,
      '/api/v2/areas',
      '/metrics',
      '/positions',
      '/healthz/x',
    ];
    for (const path of paths) {
      test(`${path} is no route`, async () => {
        for (const method of ['GET', 'POST', 'OPTIONS']) {
          const reply = await send(path, { method });
          assert.deepEqual([reply.status, codeOf(reply)], [404, 'NOT_FOUND'], method);
          assert.equal(reply.headers['x-api-status'], /^\/api\/v3(\/|$)/.test(path) ? 'beta' : undefined);
        }
      });
    }
  });

  describe('405', () => {
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'TRACE', 'PROPFIND', 'M-SEARCH', 'QUERY']) {
      test(`${method} is allowed nowhere, whatever body it brings`, async () => {
        for (const { version, path } of CASES) {
          const body = '{"type":"reboot"';
          const reply = await send(path, {
            method,
            body,
            headers: { 'Content-Length': String(body.length) },
          });
          assert.deepEqual([reply.status, codeOf(reply)], [405, 'METHOD_NOT_ALLOWED'], path);
          assert.equal(reply.headers.allow, 'GET, HEAD, OPTIONS');
          assert.equal(reply.headers['x-api-status'], version === 'v3' ? 'beta' : undefined);
        }
      });
    }
  });

  describe('headers', () => {
    const withOthers = (count: number): Promise<string> => {
      const others = Array.from({ length: count }, (_, n) => `X-Other-${n}: ${n}\r\n`).join('');
      return exchange(pod.api, [
        `GET /api/v2/devices HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${others}X-API-Key: ${key}\r\n\r\n`,
      ]);
    };

    test('none is passed over, however many stand before it', async () => {
      assert.match(await withOthers(200), /^HTTP\/1.1 200 /);
      assert.match(await withOthers(700), /^HTTP\/1.1 200 /);
    });

    test('431: more than 16 KB of them', async () => {
      assert.match(await withOthers(2_000), /^HTTP\/1.1 431 .*"code":"HEADERS_TOO_LARGE"/s);
    });
  });
});
