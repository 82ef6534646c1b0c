import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { areaPod, CIRCLE, gist } from '../../support/http/areas.ts';
import { exchange } from '../../support/http/http.ts';
import { LINE } from '../reads/geojson.ts';

const MB = 1024 * 1024;
const JSON_TYPE = 'application/json';
const FINE = JSON.stringify(CIRCLE);

const service = areaPod();
const { api } = service;

const total = async (): Promise<number> => (await api.get()).body.meta.total;

describe('422 INVALID_BODY is the answer of POST, PUT, PATCH and import to', () => {
  const rows: readonly (readonly [title: string, type: string, body: string | Buffer])[] = [
    ['an empty body', JSON_TYPE, ''],
    ['half an object', JSON_TYPE, '{"name":'],
    ['a list', JSON_TYPE, `[${FINE}]`],
    ['null', JSON_TYPE, 'null'],
    ['a form', 'application/x-www-form-urlencoded', 'name=A&type=circle'],
    ['JSON as text', 'text/plain', FINE],
    ['JSON as something like JSON', 'application/jsonx', FINE],
    ['JSON lines', 'application/x-ndjson', `${FINE}\n${FINE}`],
    ['65 levels', JSON_TYPE, `{"x":${'['.repeat(64)}${']'.repeat(64)}}`],
  ];
  for (const [title, type, body] of rows) {
    test(title, async () => {
      for (const [method, path] of [
        ['POST', ''],
        ['PUT', '/by-external-id/body'],
        ['PATCH', '/1'],
        ['POST', '/import'],
      ] as const) {
        const reply = await api.send(method, path, { body, headers: { 'Content-Type': type } });
        assert.equal(gist(reply), '422 null INVALID_BODY', `${method} ${path}`);
      }
    });
  }
});

describe('a body is read', () => {
  test('as any media type that is JSON', async () => {
    for (const [n, type] of [
      ...['application/json; charset=utf-8', 'Application/JSON', 'application/json ; x=y', 'model/gltf+json'],
      ...['application/geo+json; profile="x"', 'application/vnd.example.v1+json', 'application/a+b+json'],
    ].entries()) {
      const headers = { 'Content-Type': type };
      for (const [method, path, body] of [
        ['POST', '', CIRCLE],
        ['PUT', `/by-external-id/type-${n}`, CIRCLE],
        ['POST', '/import', LINE],
      ] as const)
        assert.equal(
          (await api.send(method, path, { body, headers })).status,
          201,
          `${method} ${path} ${type}`,
        );
    }
  });

  test('in gzip, deflate and brotli', async () => {
    for (const [encoding, compress] of Object.entries({
      gzip: gzipSync,
      deflate: deflateSync,
      br: brotliCompressSync,
    })) {
      const headers = { 'Content-Encoding': encoding };
      for (const [path, body] of [
        ['', CIRCLE],
        ['/import', LINE],
      ] as const) {
        const reply = await api.send('POST', path, {
          body: compress(Buffer.from(JSON.stringify(body))),
          headers,
        });
        assert.equal(reply.status, 201, `${encoding} ${path}`);
      }
    }
  });

  test('in no other encoding, and not in one that it is not in: 400', async () => {
    for (const encoding of ['zip', 'gzip, gzip', 'gzip', 'br']) {
      const reply = await api.send('POST', '', { body: FINE, headers: { 'Content-Encoding': encoding } });
      assert.equal(gist(reply), '400 BAD_REQUEST', encoding);
    }
  });
});

describe('a body may have a megabyte', () => {
  /** A valid area whose body has this length. */
  const ofSize = (bytes: number): string => {
    const text = JSON.stringify({ ...CIRCLE, padding: '' });
    return text.replace('"padding":""', `"padding":"${'x'.repeat(bytes - text.length)}"`);
  };
  const TOO_LARGE = '413 PAYLOAD_TOO_LARGE';

  test('and no byte more, on POST, PUT and PATCH', async () => {
    const id = await api.make(CIRCLE);
    for (const [method, path, ok] of [
      ['POST', '', 201],
      ['PUT', '/by-external-id/large', 201],
      ['PATCH', `/${id}`, 200],
    ] as const) {
      assert.equal((await api.send(method, path, { body: ofSize(MB) })).status, ok, method);
      assert.equal(gist(await api.send(method, path, { body: ofSize(MB + 1) })), TOO_LARGE, method);
    }
  });

  test('and its connection goes on when it has more', async () => {
    for (let n = 0; n < 3; n++) {
      assert.equal(gist(await api.send('POST', '', { body: ofSize(5 * MB) })), TOO_LARGE);
      assert.equal((await api.get('?limit=1')).status, 200);
    }
  });

  test('and leaves nothing when its client hangs up in the middle', async () => {
    const before = await total();
    for (const [path, bytes] of [
      ['/areas', 1_000],
      ['/areas/import', 2 * MB],
    ] as const) {
      const head = `POST /api/v3${path} HTTP/1.1\r\nHost: x\r\nX-API-Key: ${api.key}\r\nContent-Type: application/json\r\nContent-Length: ${bytes}\r\n\r\n`;
      await exchange(service.pod.api, [head, FINE], { hangUp: true });
    }
    assert.equal(await total(), before);
  });
});
