import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { type AreaApi, type AreaPod, CIRCLE, gist, startAreaPod } from '../support/areas.ts';
import { exchange, rawRequest } from '../support/http.ts';

const MB = 1024 * 1024;
const LINE = {
  type: 'LineString',
  coordinates: [
    [12.4, 41.9],
    [12.5, 42],
  ],
};

let house: AreaPod;
let api: AreaApi;
before(async () => {
  house = await startAreaPod();
  api = await house.newAccount();
});
after(() => house.pod.stop());

const total = async (): Promise<number> => (await api.get()).body.meta.total;

const ROUTES: readonly (readonly [method: string, path: string])[] = [
  ['POST', ''],
  ['PUT', '/by-external-id/body'],
  ['PATCH', '/1'],
  ['POST', '/import'],
];

describe('422 INVALID_BODY: what is no JSON object, on every route that takes one', () => {
  const json = 'application/json';
  const fine = JSON.stringify(CIRCLE);
  const rows: readonly (readonly [
    title: string,
    contentType: string | null,
    body: string | Buffer | undefined,
  ])[] = [
    ['no body', null, undefined],
    ['an empty body', json, ''],
    ['blanks', json, '  \n'],
    ['half an object', json, '{"name":'],
    ['a list', json, `[${fine}]`],
    ['null', json, 'null'],
    ['a number', json, '5'],
    ['text', json, '"x"'],
    ['a trailing comma', json, '{"name":"A",}'],
    ['NaN', json, '{"radius_m":NaN}'],
    ['a form', 'application/x-www-form-urlencoded', 'name=A&type=circle'],
    ['JSON as text', 'text/plain', fine],
    ['JSON as nothing', null, fine],
    ['JSON as JavaScript', 'application/javascript', fine],
    ['JSON as something like JSON', 'application/jsonx', fine],
    ['JSON lines', 'application/x-ndjson', `${fine}\n${fine}`],
    ['Latin-1', json, Buffer.from('{"name":"caff\xe8"}', 'latin1')],
    ['UTF-16', json, Buffer.from(fine, 'utf16le')],
    [
      'a surrogate in UTF-8',
      json,
      Buffer.concat([Buffer.from('{"name":"'), Buffer.from([0xed, 0xa0, 0x80]), Buffer.from('"}')]),
    ],
    ['65 levels', json, `{"x":${'['.repeat(64)}${']'.repeat(64)}}`],
    ['100 000 levels', json, '['.repeat(100_000)],
    ['100 000 levels of objects', json, '{"a":'.repeat(100_000)],
  ];
  for (const [method, path] of ROUTES) {
    for (const [title, contentType, body] of rows) {
      test(`${method} ${path}: ${title}`, async () => {
        const reply = await rawRequest(house.pod.api, `/api/v3/areas${path}`, {
          method,
          headers: {
            'X-API-Key': api.key,
            ...(contentType === null ? {} : { 'Content-Type': contentType }),
            ...(body === undefined ? {} : { 'Content-Length': String(Buffer.byteLength(body)) }),
          },
          ...(body === undefined ? {} : { body }),
        });
        const { error } = JSON.parse(reply.text);
        assert.deepEqual([reply.status, error.code], [422, 'VALIDATION_ERROR']);
        assert.deepEqual(
          error.details.map(({ field, code }: { field: null; code: string }) => [field, code]),
          [[null, 'INVALID_BODY']],
        );
      });
    }
  }
});

describe('what is read as JSON', () => {
  const types = [
    'application/json',
    'application/json; charset=utf-8',
    'application/json;charset=UTF-8',
    'Application/JSON',
    'application/geo+json',
    'application/vnd.example.v1+json',
    'application/geo+json; profile="x"',
    'application/json ; x=y',
    'application/a+b+json',
    'model/gltf+json',
  ];
  for (const type of types) {
    test(`${type}`, async () => {
      for (const [method, path, expected] of [
        ['POST', '', 201],
        ['PUT', `/by-external-id/type-${types.indexOf(type)}`, 201],
      ] as const) {
        const reply = await api.send(method, path, { body: CIRCLE, headers: { 'Content-Type': type } });
        assert.equal(reply.status, expected, reply.text);
      }
      const imported = await api.send('POST', '/import', { body: LINE, headers: { 'Content-Type': type } });
      assert.equal(imported.status, 201, imported.text);
    });
  }

  test('a byte order mark, blanks around, members twice (the last counts), numbers of any length', async () => {
    const rows: [text: string, radius: number][] = [
      [`\ufeff${JSON.stringify(CIRCLE)}`, 500],
      [`\r\n\t ${JSON.stringify(CIRCLE)} \n`, 500],
      [JSON.stringify(CIRCLE).replace('{', '{"radius_m":1,"radius_m":2,'), 500],
      [JSON.stringify(CIRCLE).replace('500', `500.${'0'.repeat(1_000)}`), 500],
      [JSON.stringify(CIRCLE).replace('500', '5e2'), 500],
      [
        JSON.stringify(CIRCLE).replace('{', '{"__proto__":{"radius_m":-1},"constructor":{"prototype":{}},'),
        500,
      ],
    ];
    for (const [text, radius] of rows) {
      const reply = await api.post(text);
      assert.deepEqual([reply.status, reply.body.data?.radius_m], [201, radius], text.slice(0, 60));
    }
  });

  test('64 levels of something unknown', async () => {
    const reply = await api.post(
      JSON.stringify(CIRCLE).replace('{', `{"x":${'['.repeat(63)}${']'.repeat(63)},`),
    );
    assert.equal(reply.status, 201);
  });

  test('text of the whole of Unicode in a name', async () => {
    const name = 'Ç‑Ω 車庫 🚚 مستودع';
    const { id } = (await api.post({ ...CIRCLE, name })).body.data;
    assert.equal((await api.get(`/${id}`)).body.data.name, name);
    assert.equal((await api.get(`/${id}?format=geojson`)).body.data.properties.name, name);
  });

  for (const [encoding, compress] of [
    ['gzip', gzipSync],
    ['deflate', deflateSync],
    ['br', brotliCompressSync],
  ] as const) {
    test(`a body in ${encoding}`, async () => {
      const body = compress(Buffer.from(JSON.stringify(CIRCLE)));
      assert.equal(
        (await api.send('POST', '', { body, headers: { 'Content-Encoding': encoding } })).status,
        201,
      );
      const imported = compress(Buffer.from(JSON.stringify(LINE)));
      assert.equal(
        (await api.send('POST', '/import', { body: imported, headers: { 'Content-Encoding': encoding } }))
          .status,
        201,
      );
    });
  }

  test('400: an unknown encoding, and bytes that are not in the one they claim', async () => {
    for (const encoding of ['zip', 'gzip, gzip', 'gzip', 'deflate', 'br']) {
      const reply = await api.send('POST', '', {
        body: JSON.stringify(CIRCLE),
        headers: { 'Content-Encoding': encoding },
      });
      assert.equal(gist(reply), '400 BAD_REQUEST', encoding);
    }
  });
});

describe('413: a body may have a megabyte', () => {
  /** A valid area in exactly so many bytes. */
  const ofSize = (bytes: number): string => {
    const text = JSON.stringify({ ...CIRCLE, padding: '' });
    return text.replace('"padding":""', `"padding":"${'x'.repeat(bytes - text.length)}"`);
  };

  test('1 MB exactly is read, one byte more is not, on POST, PUT and PATCH', async () => {
    const id = await api.make(CIRCLE);
    for (const [method, path, ok] of [
      ['POST', '', 201],
      ['PUT', '/by-external-id/large', 201],
      ['PATCH', `/${id}`, 200],
    ] as const) {
      assert.equal((await api.send(method, path, { body: ofSize(MB) })).status, ok, method);
      assert.equal(
        gist(await api.send(method, path, { body: ofSize(MB + 1) })),
        '413 PAYLOAD_TOO_LARGE',
        method,
      );
    }
  });

  test('decompressed bytes count', async () => {
    const small = gzipSync(Buffer.from(ofSize(MB)));
    const bomb = gzipSync(Buffer.alloc(50 * MB, ' '));
    assert.ok(bomb.length < MB);
    const headers = { 'Content-Encoding': 'gzip' };
    assert.equal((await api.send('POST', '', { body: small, headers })).status, 201);
    assert.equal(gist(await api.send('POST', '', { body: bomb, headers })), '413 PAYLOAD_TOO_LARGE');
  });

  test('without a Content-Length they are counted as they come', async () => {
    const chunked = (bytes: number): string[] => {
      const body = ofSize(bytes);
      return [
        `POST /api/v3/areas HTTP/1.1\r\nHost: x\r\nX-API-Key: ${api.key}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n`,
        `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`,
      ];
    };
    assert.match(await exchange(house.pod.api, chunked(MB)), /^HTTP\/1.1 201 /);
    assert.match(await exchange(house.pod.api, chunked(MB + 1)), /^HTTP\/1.1 413 .*PAYLOAD_TOO_LARGE/s);
  });

  test('the connection goes on after a refusal', async () => {
    for (let n = 0; n < 3; n++) {
      assert.equal(gist(await api.send('POST', '', { body: ofSize(5 * MB) })), '413 PAYLOAD_TOO_LARGE');
      assert.equal((await api.get('?limit=1')).status, 200);
    }
  });

  test('a client that hangs up in the middle of its body leaves nothing', async () => {
    const before = await total();
    for (const [path, bytes] of [
      ['/areas', 1_000],
      ['/areas/import', 2 * MB],
    ] as const) {
      const head = `POST /api/v3${path} HTTP/1.1\r\nHost: x\r\nX-API-Key: ${api.key}\r\nContent-Type: application/json\r\nContent-Length: ${bytes}\r\n\r\n`;
      await exchange(house.pod.api, [head, JSON.stringify(CIRCLE)], { hangUp: true });
    }
    assert.equal(await total(), before);
  });
});
