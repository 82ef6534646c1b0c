import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { FIELD_ERRORS } from '../../src/areas/fieldError.ts';
import { adminOf } from '../support/admin.ts';
import { type AreaApi, areaApi, CIRCLE, gist, PLACE, POLYGON, TRACK } from '../support/areas.ts';
import { exchange, rawRequest } from '../support/http.ts';
import { type Pod, startPod } from '../support/pod.ts';
import { createDatabase } from '../support/postgres.ts';

const MB = 1024 * 1024;
const BOW_TIE = [
  { lat: 0, lng: 0 },
  { lat: 1, lng: 1 },
  { lat: 1, lng: 0 },
  { lat: 0, lng: 1 },
];
const LONG = Array.from({ length: 2_001 }, (_, n) => ({ lat: n / 100, lng: (n % 2) / 100 }));
const LINE = {
  type: 'LineString',
  coordinates: [
    [12.4, 41.9],
    [12.5, 42],
  ],
};

/** What a creation is refused for: [body, details in their order]. */
const TABLE: readonly (readonly [title: string, body: object, details: string])[] = [
  ['no name', { ...CIRCLE, name: undefined }, 'name REQUIRED'],
  ['name null', { ...CIRCLE, name: null }, 'name REQUIRED'],
  ['name empty', { ...CIRCLE, name: '' }, 'name REQUIRED'],
  ['name blank', { ...CIRCLE, name: ' \t\u00a0' }, 'name REQUIRED'],
  ['name a number', { ...CIRCLE, name: 5 }, 'name REQUIRED'],
  ['name a list', { ...CIRCLE, name: ['A'] }, 'name REQUIRED'],
  ['name of 101', { ...CIRCLE, name: 'x'.repeat(101) }, 'name TOO_LONG'],
  ['name of 101 characters of two units', { ...CIRCLE, name: '𝄞'.repeat(101) }, 'name TOO_LONG'],
  ['name with a NUL', { ...CIRCLE, name: 'a\0b' }, 'name INVALID'],
  ['name with a line feed', { ...CIRCLE, name: 'a\nb' }, 'name INVALID'],
  ['name with half a character', { ...CIRCLE, name: 'a\ud800' }, 'name INVALID'],
  ['no type', { ...CIRCLE, type: undefined }, 'type INVALID'],
  ['type unknown', { ...CIRCLE, type: 'square' }, 'type INVALID'],
  ['type in another case', { ...CIRCLE, type: 'Circle' }, 'type INVALID'],
  ['type a number', { ...CIRCLE, type: 1 }, 'type INVALID'],
  ['type of Object.prototype', { ...CIRCLE, type: 'constructor' }, 'type INVALID'],
  ['color a word', { ...CIRCLE, color: 'red' }, 'color INVALID'],
  ['color short', { ...CIRCLE, color: '#fff' }, 'color INVALID'],
  ['color with alpha', { ...CIRCLE, color: '#ff0000ff' }, 'color INVALID'],
  ['color without #', { ...CIRCLE, color: 'ff0000' }, 'color INVALID'],
  ['color with a line feed', { ...CIRCLE, color: '#ff0000\n' }, 'color INVALID'],
  ['color empty', { ...CIRCLE, color: '' }, 'color INVALID'],
  ['color a number', { ...CIRCLE, color: 0xff0000 }, 'color INVALID'],
  ['no center on a circle', { ...CIRCLE, center: undefined }, 'center REQUIRED'],
  ['no center on a place', { ...PLACE, center: null }, 'center REQUIRED'],
  ['center out of range', { ...CIRCLE, center: { lat: 90.1, lng: 0 } }, 'center INVALID_COORDINATES'],
  [
    'center out of range to the west',
    { ...CIRCLE, center: { lat: 0, lng: -180.1 } },
    'center INVALID_COORDINATES',
  ],
  ['center of text', { ...CIRCLE, center: { lat: '1', lng: '2' } }, 'center INVALID_COORDINATES'],
  ['center of half', { ...PLACE, center: { lat: 1 } }, 'center INVALID_COORDINATES'],
  ['center empty', { ...PLACE, center: {} }, 'center INVALID_COORDINATES'],
  ['center a list', { ...PLACE, center: [41, 12] }, 'center INVALID_COORDINATES'],
  ['center text', { ...PLACE, center: '41,12' }, 'center INVALID_COORDINATES'],
  ['no radius on a circle', { ...CIRCLE, radius_m: undefined }, 'radius_m REQUIRED'],
  ['radius null on a circle', { ...CIRCLE, radius_m: null }, 'radius_m REQUIRED'],
  ['radius below 25', { ...CIRCLE, radius_m: 24.999 }, 'radius_m OUT_OF_RANGE'],
  ['radius above 100 km', { ...CIRCLE, radius_m: 100_000.001 }, 'radius_m OUT_OF_RANGE'],
  ['radius of text', { ...CIRCLE, radius_m: '500' }, 'radius_m OUT_OF_RANGE'],
  ['radius false', { ...CIRCLE, radius_m: false }, 'radius_m OUT_OF_RANGE'],
  ['radius 0 on a place', { ...PLACE, radius_m: 0 }, 'radius_m OUT_OF_RANGE'],
  ['radius below 0 on a place', { ...PLACE, radius_m: -1 }, 'radius_m OUT_OF_RANGE'],
  ['radius above 100 km on a place', { ...PLACE, radius_m: 100_001 }, 'radius_m OUT_OF_RANGE'],
  ['margin below 5', { ...TRACK, buffer_m: 4.9 }, 'buffer_m OUT_OF_RANGE'],
  ['margin above 5000', { ...TRACK, buffer_m: 5_000.1 }, 'buffer_m OUT_OF_RANGE'],
  ['margin of text', { ...TRACK, buffer_m: '50' }, 'buffer_m OUT_OF_RANGE'],
  ['no points on a polygon', { ...POLYGON, points: undefined }, 'points TOO_FEW_POINTS'],
  ['points null on a track', { ...TRACK, points: null }, 'points TOO_FEW_POINTS'],
  ['points no list', { ...POLYGON, points: { 0: 1 } }, 'points TOO_FEW_POINTS'],
  ['points empty', { ...TRACK, points: [] }, 'points TOO_FEW_POINTS'],
  ['two points of a polygon', { ...POLYGON, points: POLYGON.points.slice(0, 2) }, 'points TOO_FEW_POINTS'],
  [
    'two points of a polygon, closed',
    { ...POLYGON, points: [...POLYGON.points.slice(0, 2), POLYGON.points[0]] },
    'points TOO_FEW_POINTS',
  ],
  [
    'three points of a polygon, two of them nearly one',
    {
      ...POLYGON,
      points: [
        { lat: 0, lng: 0 },
        { lat: 1e-8, lng: 0 },
        { lat: 1, lng: 1 },
      ],
    },
    'points TOO_FEW_POINTS',
  ],
  [
    'one point of a track, twice',
    {
      ...TRACK,
      points: [
        { lat: 1, lng: 1 },
        { lat: 1, lng: 1 },
      ],
    },
    'points TOO_FEW_POINTS',
  ],
  ['2001 points', { ...TRACK, points: LONG }, 'points TOO_MANY_POINTS'],
  ['2001 points of a polygon', { ...POLYGON, points: LONG }, 'points TOO_MANY_POINTS'],
  [
    'a point out of range',
    { ...POLYGON, points: [...POLYGON.points, { lat: 91, lng: 0 }] },
    'points INVALID_COORDINATES',
  ],
  [
    'a point of text',
    {
      ...TRACK,
      points: [
        { lat: 1, lng: 1 },
        { lat: '1', lng: 1 },
      ],
    },
    'points INVALID_COORDINATES',
  ],
  ['a point null', { ...TRACK, points: [{ lat: 1, lng: 1 }, null] }, 'points INVALID_COORDINATES'],
  [
    'points as in GeoJSON',
    {
      ...TRACK,
      points: [
        [12, 41],
        [13, 42],
      ],
    },
    'points INVALID_COORDINATES',
  ],
  ['a bow tie', { ...POLYGON, points: BOW_TIE }, 'points SELF_INTERSECTION'],
  [
    'a spike',
    {
      ...POLYGON,
      points: [
        { lat: 0, lng: 0 },
        { lat: 0, lng: 1 },
        { lat: 0, lng: 2 },
        { lat: 0, lng: 1.5 },
        { lat: 1, lng: 0 },
      ],
    },
    'points SELF_INTERSECTION',
  ],
  [
    'a line there and back',
    {
      ...POLYGON,
      points: [
        { lat: 0, lng: 0 },
        { lat: 0, lng: 1 },
        { lat: 0, lng: 2 },
      ],
    },
    'points SELF_INTERSECTION',
  ],
  [
    'a figure of eight that touches in a point',
    {
      ...POLYGON,
      points: [
        { lat: 0, lng: 0 },
        { lat: 1, lng: 1 },
        { lat: 2, lng: 0 },
        { lat: 2, lng: 2 },
        { lat: 1, lng: 1 },
        { lat: 0, lng: 2 },
      ],
    },
    'points SELF_INTERSECTION',
  ],
  ['a code with a blank', { ...CIRCLE, external_id: 'a b' }, 'external_id INVALID'],
  ['a code empty', { ...CIRCLE, external_id: '' }, 'external_id INVALID'],
  ['a code of 101', { ...CIRCLE, external_id: 'x'.repeat(101) }, 'external_id INVALID'],
  ['a code with another letter', { ...CIRCLE, external_id: 'è' }, 'external_id INVALID'],
  ['a code with a line feed', { ...CIRCLE, external_id: 'a\n' }, 'external_id INVALID'],
  ['a code a number', { ...CIRCLE, external_id: 5 }, 'external_id INVALID'],
  ['a stay below 0', { ...CIRCLE, dwell_seconds: -1 }, 'dwell_seconds OUT_OF_RANGE'],
  ['a stay above a day', { ...CIRCLE, dwell_seconds: 86_401 }, 'dwell_seconds OUT_OF_RANGE'],
  ['a stay of half a second', { ...CIRCLE, dwell_seconds: 0.5 }, 'dwell_seconds OUT_OF_RANGE'],
  ['a stay of text', { ...CIRCLE, dwell_seconds: '60' }, 'dwell_seconds OUT_OF_RANGE'],
  ['a stay true', { ...CIRCLE, dwell_seconds: true }, 'dwell_seconds OUT_OF_RANGE'],
  ['geojson of text', { name: 'A', geojson: 'x' }, 'geojson INVALID_GEOJSON'],
  ['geojson false', { name: 'A', geojson: false }, 'geojson INVALID_GEOJSON'],
  ['geojson empty', { name: 'A', geojson: {} }, 'geojson INVALID_GEOJSON'],
  ['geojson beside a whole area', { ...CIRCLE, geojson: [] }, 'geojson INVALID_GEOJSON'],
  [
    'a collection',
    { name: 'A', geojson: { type: 'FeatureCollection', features: [] } },
    'geojson INVALID_GEOJSON',
  ],
  [
    'a collection of geometries',
    { name: 'A', geojson: { type: 'GeometryCollection', geometries: [LINE] } },
    'geojson INVALID_GEOJSON',
  ],
  [
    'a Feature without geometry',
    { name: 'A', geojson: { type: 'Feature', properties: {}, geometry: null } },
    'geojson INVALID_GEOJSON',
  ],
  [
    'several areas',
    {
      name: 'A',
      geojson: {
        type: 'MultiPoint',
        coordinates: [
          [1, 2],
          [3, 4],
        ],
      },
    },
    'geojson INVALID_GEOJSON',
  ],
  [
    'a Point out of range',
    { name: 'A', geojson: { type: 'Point', coordinates: [181, 0] } },
    'center INVALID_COORDINATES',
  ],
  [
    'a Point of one number',
    { name: 'A', geojson: { type: 'Point', coordinates: [1] } },
    'center INVALID_COORDINATES',
  ],
  [
    'a line of one position',
    { name: 'A', geojson: { ...LINE, coordinates: [[1, 2]] } },
    'points TOO_FEW_POINTS',
  ],
  [
    'a line with a position out of range',
    {
      name: 'A',
      geojson: {
        ...LINE,
        coordinates: [
          [1, 2],
          [3, 91],
        ],
      },
    },
    'points INVALID_COORDINATES',
  ],
  [
    'a Polygon that crosses itself',
    {
      name: 'A',
      geojson: {
        type: 'Polygon',
        coordinates: [
          [
            [0, 0],
            [1, 1],
            [1, 0],
            [0, 1],
            [0, 0],
          ],
        ],
      },
    },
    'points SELF_INTERSECTION',
  ],
  ['a type that does not fit', { name: 'A', type: 'circle', geojson: LINE }, 'type INVALID'],
  [
    'a Feature with a bad stay',
    { geojson: { type: 'Feature', properties: { name: 'A', dwell_seconds: -1 }, geometry: LINE } },
    'dwell_seconds OUT_OF_RANGE',
  ],
  [
    'a Feature with a small radius',
    {
      geojson: {
        type: 'Feature',
        properties: { name: 'A', radius: 5 },
        geometry: { type: 'Point', coordinates: [1, 2] },
      },
    },
    'radius_m OUT_OF_RANGE',
  ],
  [
    'a Feature without a name',
    { geojson: { type: 'Feature', properties: null, geometry: LINE } },
    'name REQUIRED',
  ],
  ['nothing at all', {}, 'name REQUIRED, type INVALID'],
  [
    'everything of a circle',
    {
      name: ' ',
      color: 'red',
      type: 'circle',
      center: 'x',
      radius_m: 'x',
      external_id: 5,
      dwell_seconds: 'x',
    },
    'name REQUIRED, color INVALID, center INVALID_COORDINATES, radius_m OUT_OF_RANGE, external_id INVALID, dwell_seconds OUT_OF_RANGE',
  ],
  [
    'everything of a track',
    {
      name: 'x'.repeat(101),
      color: 1,
      type: 'polyline',
      points: [{ lat: 1, lng: 1 }],
      buffer_m: 0,
      external_id: '',
      dwell_seconds: 1e9,
    },
    'name TOO_LONG, color INVALID, buffer_m OUT_OF_RANGE, points TOO_FEW_POINTS, external_id INVALID, dwell_seconds OUT_OF_RANGE',
  ],
  ['a list as a body', [], 'null INVALID_BODY'],
];

describe('invalid bodies', () => {
  let pod: Pod;
  let api: AreaApi;
  before(async () => {
    const database = await createDatabase();
    const admin = adminOf(database.url);
    await admin.account('owner@example.com');
    pod = await startPod(database.url);
    api = areaApi(pod, (await admin.key('owner@example.com')).key);
  });
  after(() => pod.stop());

  const total = async (): Promise<number> => (await api.get()).body.meta.total;
  const sorted = (details: string): string => details.split(', ').toSorted().join(', ');

  describe('422: every invalid field of a new area is listed, by POST and by PUT alike', () => {
    for (const [title, body, details] of TABLE) {
      test(`${title}: ${details}`, async () => {
        for (const reply of [await api.post(body), await api.put('code', body)]) {
          // Which of two codes is wrong is another matter on PUT.
          assert.equal(sorted(gist(reply).slice('422 '.length)), sorted(details));
          assert.equal(reply.status, 422);
          assert.deepEqual(Object.keys(reply.body.error), ['code', 'message', 'details']);
          for (const detail of reply.body.error.details) {
            assert.deepEqual(Object.keys(detail), ['field', 'code', 'message']);
            assert.ok(detail.message.length > 0);
          }
        }
      });
    }

    test('none of them made an area', async () => assert.equal(await total(), 0));

    test('the table holds every code that there is, but for those of a route of its own', () => {
      const told = new Set(TABLE.flatMap(([, , details]) => details.split(', ')));
      const elsewhere = ['external_id MISMATCH', 'external_id TAKEN'];
      for (const { field, code } of Object.values(FIELD_ERRORS)) {
        assert.ok(told.has(`${field} ${code}`) || elsewhere.includes(`${field} ${code}`), `${field} ${code}`);
      }
    });
  });

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
          const reply = await rawRequest(pod.api, `/api/v3/areas${path}`, {
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
      assert.match(await exchange(pod.api, chunked(MB)), /^HTTP\/1.1 201 /);
      assert.match(await exchange(pod.api, chunked(MB + 1)), /^HTTP\/1.1 413 .*PAYLOAD_TOO_LARGE/s);
    });

    test('the connection goes on after a refusal', async () => {
      for (let n = 0; n < 3; n++) {
        assert.equal(gist(await api.send('POST', '', { body: ofSize(5 * MB) })), '413 PAYLOAD_TOO_LARGE');
        assert.equal((await api.get('?limit=1')).status, 200);
      }
    });

    test('a client that hangs up in the middle of its body leaves nothing', async () => {
      const before = await total();
      const head = `POST /api/v3/areas HTTP/1.1\r\nHost: x\r\nX-API-Key: ${api.key}\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n`;
      await exchange(pod.api, [head, JSON.stringify(CIRCLE)], { hangUp: true });
      assert.equal(await total(), before);
    });
  });
});
