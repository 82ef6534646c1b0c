import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { faceOf } from '../../support/http/application.ts';
import {
  type AreaApi,
  areaPod,
  BODIES,
  CIRCLE,
  gist,
  PLACE,
  POLYGON,
  TRACK,
} from '../../support/http/areas.ts';
import type { Reply } from '../../support/pod.ts';
import { assertSameAreas, type WireArea } from '../sameAreas.ts';

const UNKNOWN_ID = Number.MAX_SAFE_INTEGER;
const BAD_REQUEST = '400 BAD_REQUEST';

const service = areaPod();
const { api } = service;

/** Below /api/v3/areas. */
const get = (path: string, by = api): Promise<Reply> => service.pod.get(`/api/v3/areas${path}`, by.key);
const idsOf = ({ body }: Reply): number[] => body.data.map(({ id }: { id: number }) => id);

describe('GET /areas/{id}', () => {
  test('shows every documented field of a circle, and no other', async () => {
    const body = { ...CIRCLE, color: '#ABcdef', external_id: 'a/b', dwell_seconds: 60 };
    const id = await api.make(body);
    const reply = await get(`/${id}`);
    const { metrics, bounds, created_at } = reply.body.data;
    const shown = { id, ...body, buffer_m: null, points: [], metrics, bounds, created_at };
    assert.deepEqual(reply.body, { data: shown, meta: {} });
    assert.equal(new Date(created_at).toISOString(), created_at);
    assert.ok(Math.abs(Date.parse(created_at) - Date.now()) < 60_000);
    assert.ok(Math.abs(metrics.area_m2 / (Math.PI * 500 ** 2) - 1) < 0.001);
    assert.ok(Math.abs(metrics.perimeter_m / (2 * Math.PI * 500) - 1) < 0.001);
    assert.ok(bounds.south < 41.9 && bounds.north > 41.9 && bounds.west < 12.5 && bounds.east > 12.5);
  });

  const shapes: [type: string, body: object, expected: object, metrics: readonly string[]][] = [
    ['place', PLACE, { center: PLACE.center, radius_m: 50, buffer_m: null, points: [] }, []],
    [
      'polygon',
      POLYGON,
      { radius_m: null, buffer_m: null, points: POLYGON.points },
      ['area_m2', 'perimeter_m'],
    ],
    ['track', TRACK, { center: null, radius_m: null, buffer_m: 50, points: TRACK.points }, ['length_m']],
  ];
  for (const [type, body, expected, metrics] of shapes) {
    test(`shows the fields of a ${type}, null for those of other types, and only its own metrics`, async () => {
      const { data } = (await get(`/${await api.make(body)}`)).body;
      const defaults = { color: '#3b82f6', external_id: null, dwell_seconds: 0 };
      assert.deepEqual({ ...data, ...body, ...expected, ...defaults }, data);
      for (const [name, value] of Object.entries(data.metrics)) {
        assert.equal(typeof value, metrics.includes(name) ? 'number' : 'object', name);
      }
    });
  }

  test('gives a Feature with format=geojson', async () => {
    const id = await api.make({ ...TRACK, buffer_m: 70, dwell_seconds: 5, external_id: 'track' });
    const { metrics, created_at } = (await get(`/${id}?format=json`)).body.data;
    const coordinates = TRACK.points.map(({ lat, lng }) => [lng, lat]);
    const own = { id, name: 'Road', color: '#3b82f6', type: 'polyline', radius: null, bufferDistance: 70 };
    const properties = { ...own, external_id: 'track', dwell_seconds: 5, metrics, created_at };
    assert.deepEqual((await get(`/${id}?format=geojson`)).body, {
      data: { type: 'Feature', id, geometry: { type: 'LineString', coordinates }, properties },
      meta: {},
    });
  });

  test('takes an id with leading zeros or percent-encoded', async () => {
    const id = await api.make(CIRCLE);
    for (const path of [`/00${id}`, `/${[...String(id)].map((digit) => `%3${digit}`).join('')}`])
      assert.equal((await get(path)).body.data.id, id, path);
  });

  test('refuses another format with 400', async () => {
    assert.equal(gist(await get(`/${await api.make(CIRCLE)}?format=kml`)), BAD_REQUEST);
  });
});

test('a malformed id is refused with 400 before the area is looked up, on every route', async () => {
  for (const id of ['0', '-1', '1.0', 'abc', '%20', '1%0A', '9007199254740992', '%D9%A1', '1%2F']) {
    const replies = [
      await get(`/${id}`),
      await get(`/${id}/contains?lat=1&lng=1`),
      await api.get(`/${id}/events`),
      await api.send('PATCH', `/${id}`, { body: { name: '' } }),
      await api.send('DELETE', `/${id}`),
    ];
    assert.deepEqual(replies.map(gist), Array(5).fill(BAD_REQUEST), id);
  }
  assert.equal(gist(await api.get('//contains?lat=1&lng=1')), BAD_REQUEST, 'an empty id');
});

test("another customer's area is answered with the same 404 as a missing one, on every route", async () => {
  const stranger = await service.newAccount();
  const id = await stranger.make({ ...CIRCLE, name: 'Secret' });
  const calls: readonly ((target: number) => Promise<Reply>)[] = [
    (target) => get(`/${target}`),
    (target) => get(`/${target}?format=geojson`),
    (target) => get(`/${target}/contains?lat=41.9&lng=12.5`),
    (target) => api.get(`/${target}/events`),
    (target) => api.patch(target, { name: 'Mine' }),
    (target) => api.patch(target, { external_id: 'x', ...POLYGON }),
    (target) => api.remove(target),
  ];
  for (const call of calls) {
    const foreign = await call(id);
    assert.equal(gist(foreign), '404 NOT_FOUND');
    assert.deepEqual(faceOf(foreign), faceOf(await call(UNKNOWN_ID)));
    assert.doesNotMatch(foreign.text, /Secret/);
  }
  assert.equal((await stranger.get(`/${id}`)).body.data.name, 'Secret');
});

describe('GET /areas', () => {
  // Thirteen areas: a circle, a place, a polygon, a track, and again.
  const TYPES = ['circle', 'point', 'polygon', 'polyline'] as const;
  const ids: number[] = [];
  let owner: AreaApi;
  const list = (query: string) => get(query, owner);

  before(async () => {
    owner = await service.newAccount();
    for (let n = 0; n < 13; n++) {
      ids.push(await owner.make({ ...BODIES[TYPES[n % 4]!], name: `Area ${n}`, external_id: `code-${n}` }));
    }
  });

  test('lists all areas by id, each as its detail shows it, with the page and the total', async () => {
    const reply = await list('');
    assert.deepEqual(idsOf(reply), ids);
    assert.deepEqual(reply.body.meta, { pagination: { limit: 50, offset: 0, count: 13 }, total: 13 });
    for (const area of reply.body.data) assert.deepEqual((await list(`/${area.id}`)).body.data, area);
  });

  test('gives a FeatureCollection of what the details show with format=geojson', async () => {
    const { body } = await list('?format=geojson');
    assert.deepEqual(Object.keys(body.data), ['type', 'features']);
    assert.equal(body.data.type, 'FeatureCollection');
    for (const feature of body.data.features)
      assert.deepEqual((await list(`/${feature.id}?format=geojson`)).body.data, feature);
  });

  test('gives a page with its place in all areas, in both formats', async () => {
    for (const format of ['json', 'geojson']) {
      const { body } = await list(`?limit=5&offset=10&format=${format}`);
      const items: { id: number }[] = format === 'json' ? body.data : body.data.features;
      assert.deepEqual(
        items.map(({ id }) => id),
        ids.slice(10),
      );
      assert.deepEqual(body.meta, { pagination: { limit: 5, offset: 10, count: 3 }, total: 13 });
    }
  });

  const PLACES = Array.from({ length: 13 }, (_, n) => n);
  const ofType = (type: number): number[] => PLACES.filter((place) => place % 4 === type);
  const filters: [query: string, places: number[], total?: number][] = [
    ...TYPES.map((type, n): [string, number[], number] => [
      `type=${type}&limit=2`,
      ofType(n).slice(0, 2),
      ofType(n).length,
    ]),
    ['type=&format=%20&external_id=%20', PLACES],
    ['external_id=code-4', [4]],
    ['external_id=code-4&type=circle', [4]],
    ['external_id=code-4&type=polygon', []],
    ['external_id=code-4&offset=1', [], 1],
    ['external_id=code-', []],
    ['external_id=CODE-4', []],
    ['external_id=code-4%20', []],
    ['external_id=%25', []],
    [`external_id=${'x'.repeat(2_000)}`, []],
  ];
  for (const [query, places, total = places.length] of filters) {
    test(`lists ${places.length} of ${total} areas for ${query.slice(0, 40)}`, async () => {
      const reply = await list(`?${query}`);
      assert.deepEqual(
        idsOf(reply),
        places.map((place) => ids[place]),
      );
      assert.deepEqual([reply.body.meta.pagination.count, reply.body.meta.total], [places.length, total]);
    });
  }

  test('is empty for an account without areas, in both formats', async () => {
    const nobody = await service.newAccount();
    const meta = { pagination: { limit: 50, offset: 0, count: 0 }, total: 0 };
    assert.deepEqual((await get('', nobody)).body, { data: [], meta });
    const data = { type: 'FeatureCollection', features: [] };
    assert.deepEqual((await get('?format=geojson', nobody)).body, { data, meta });
  });

  for (const query of [
    'type=square',
    'format=xml',
    'limit=1&limit=1',
    'external_id=a&external_id=b',
    'x=1&x=2',
  ]) {
    test(`refuses ${query} with 400`, async () => assert.equal(gist(await list(`?${query}`)), BAD_REQUEST));
  }
});

describe('GET /areas/{id}/contains', () => {
  const contains = async (id: number, lat: number | string, lng: number | string) =>
    (await get(`/${id}/contains?lat=${lat}&lng=${lng}`)).body;

  test('measures in metres from the edge: negative inside, positive outside, 0 on it', async () => {
    const circle = await api.make({ ...CIRCLE, center: { lat: 0, lng: 0 }, radius_m: 1_000 });
    assert.deepEqual(await contains(circle, 0, 0), { data: { inside: true, distance_m: -1_000 }, meta: {} });
    // 0.01 degrees of longitude on the equator of WGS84
    const { inside, distance_m } = (await contains(circle, 0, 0.01)).data;
    assert.ok(!inside && Math.abs(distance_m - (0.01 * (Math.PI / 180) * 6_378_137 - 1_000)) < 0.1);
    const yard = await api.make(POLYGON);
    for (const [lat, lng] of [
      [41.9, 12.4],
      [41.9, 12.45],
      [41.95, 12.5],
    ] as const)
      assert.deepEqual((await contains(yard, lat, lng)).data, { inside: true, distance_m: 0 });
    for (const [lat, lng] of [
      ['41.8999999999', 12.45],
      [41.95, '12.5000000001'],
    ] as const) {
      const { inside, distance_m } = (await contains(yard, lat, lng)).data;
      assert.ok(!inside && distance_m > 0 && distance_m < 0.001, `${lat} ${lng}: ${distance_m}`);
    }
  });

  const malformed = [
    ...['', 'lat=1', 'lng=1', 'lat=&lng=1', 'lat=1&lng=%20', 'LAT=1&LNG=1', 'lat=1&lat=1&lng=1'],
    ...['lat=abc&lng=1', 'lat=90.0001&lng=1', 'lat=1&lng=-180.0001', 'lat=NaN&lng=1', 'lat=1e1&lng=1'],
  ];
  test(`refuses coordinates that are missing, malformed or out of range with 400, whether there is an area or not`, async () => {
    const id = await api.make(PLACE);
    for (const query of malformed) {
      for (const target of [id, UNKNOWN_ID])
        assert.equal(gist(await get(`/${target}/contains?${query}`)), BAD_REQUEST, query);
    }
  });
});

// What becomes of every kind of geometry at the antimeridian and the poles is proven in geojsonOut.test.ts.

const points = (...spots: (readonly [lat: number, lng: number])[]) =>
  spots.map(([lat, lng]) => ({ lat, lng }));
const FIJI = points([-15.7, 176.9], [-19.2, 176.9], [-19.2, -178.2], [-15.7, -178.2], [-16.4, 179.8]);
const CHUKOTKA = points([64.7, 177.5], [66.3, 179.9], [66.9, -178.1], [67.2, -175], [66.1, -169.7]);

const areasOf = async (by: AreaApi): Promise<WireArea[]> => (await by.get('?limit=200')).body.data;

const CROSSING = [
  { ...POLYGON, points: FIJI },
  { ...TRACK, points: CHUKOTKA, buffer_m: 5_000 },
];

test('a list of areas of every type, exported and imported into another account, is the same list', async () => {
  const [own, other] = [await service.newAccount(), await service.newAccount()];
  for (const [n, body] of [...Object.values(BODIES), ...CROSSING].entries())
    await own.make({ ...body, dwell_seconds: n, external_id: n % 2 === 0 ? `code/${n}` : null });
  const areas = await areasOf(own);
  const exported = (await own.get('?limit=200&format=geojson')).body.data;
  const copied = await other.import(exported);
  assert.deepEqual([copied.status, copied.body.data.errors, copied.body.data.warnings], [201, [], []]);
  assertSameAreas(await areasOf(other), areas);
  const again = await other.import((await other.get('?limit=200&format=geojson')).body.data);
  assert.deepEqual([again.body.data.updated.length, again.body.data.created.length], [3, 3]);
});
