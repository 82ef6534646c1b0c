import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { adminOf } from '../support/admin.ts';
import { type AreaApi, areaApi, BODIES, CIRCLE, gist, PLACE, POLYGON, TRACK } from '../support/areas.ts';
import { type Pod, type Reply, startPod } from '../support/pod.ts';
import { createDatabase } from '../support/postgres.ts';

const UNKNOWN_ID = 9_007_199_254_740_991;
const MALFORMED_IDS = [
  '0',
  '-1',
  '+1',
  '1.0',
  '1e3',
  '0x1',
  'abc',
  '1a',
  '%20',
  '1%20',
  '%201',
  '1%0A',
  '9007199254740992',
  '99999999999999999999',
  '%D9%A1',
  'null',
  '1%2F',
  '1,2',
];

describe('areas', () => {
  let pod: Pod;
  let api: AreaApi;
  let stranger: AreaApi;

  before(async () => {
    const database = await createDatabase();
    const admin = adminOf(database.url);
    for (const email of ['owner@example.com', 'stranger@example.com']) await admin.account(email);
    pod = await startPod(database.url);
    api = areaApi(pod, (await admin.key('owner@example.com')).key);
    stranger = areaApi(pod, (await admin.key('stranger@example.com')).key);
  });

  after(() => pod.stop());

  const idsOf = ({ body }: Reply): number[] => body.data.map((area: { id: number }) => area.id);

  describe('list, 200', () => {
    // Thirteen areas: a circle, a place, a polygon, a track, and again.
    const TYPES = ['circle', 'point', 'polygon', 'polyline'] as const;
    let listed: AreaApi;
    const ids: number[] = [];

    before(async () => {
      const database = await createDatabase();
      const admin = adminOf(database.url);
      await admin.account('owner@example.com');
      const listPod = await startPod(database.url);
      listed = areaApi(listPod, (await admin.key('owner@example.com')).key);
      for (let n = 0; n < 13; n++) {
        ids.push(
          await listed.make({ ...BODIES[TYPES[n % 4]!], name: `Area ${n}`, external_id: `code-${n}` }),
        );
      }
    });
    after(() => listed.pod.stop());

    test('all areas by id, each as its detail shows it, with page and total', async () => {
      const reply = await listed.get();
      assert.equal(reply.status, 200);
      assert.deepEqual(idsOf(reply), ids);
      assert.deepEqual(reply.body.meta, { pagination: { limit: 50, offset: 0, count: 13 }, total: 13 });
      for (const area of reply.body.data) assert.deepEqual((await listed.get(`/${area.id}`)).body.data, area);
    });

    const pages: [query: string, limit: number, offset: number][] = [
      ['limit=2', 2, 0],
      ['limit=2&offset=3', 2, 3],
      ['limit=5&offset=12', 5, 12],
      ['offset=13', 50, 13],
      ['limit=0', 1, 0],
      ['limit=-7', 1, 0],
      ['limit=200', 200, 0],
      ['limit=201', 200, 0],
      [`limit=${'9'.repeat(400)}`, 200, 0],
      ['limit=', 50, 0],
      ['limit=abc', 50, 0],
      ['limit=1e2', 50, 0],
      ['limit=2.9', 2, 0],
      ['offset=-1', 50, 0],
      ['offset=abc', 50, 0],
      ['offset=1.9', 50, 1],
      ['offset=9007199254740993', 50, Number.MAX_SAFE_INTEGER],
    ];
    for (const [query, limit, offset] of pages) {
      test(`${query.slice(0, 40)} is the page of ${limit} from ${offset}, in both formats`, async () => {
        const expected = ids.slice(offset, offset + limit);
        for (const format of ['json', 'geojson']) {
          const { status, body } = await listed.get(`?${query}&format=${format}`);
          const items: { id: number }[] = format === 'json' ? body.data : body.data.features;
          assert.equal(status, 200);
          assert.deepEqual(
            items.map(({ id }) => id),
            expected,
          );
          assert.deepEqual(body.meta, { pagination: { limit, offset, count: expected.length }, total: 13 });
        }
      });
    }

    for (const [n, type] of TYPES.entries()) {
      test(`type=${type} filters, and total counts what the filter leaves`, async () => {
        const expected = ids.filter((_, place) => place % 4 === n);
        const reply = await listed.get(`?type=${type}&limit=2`);
        assert.deepEqual(idsOf(reply), expected.slice(0, 2));
        assert.deepEqual(reply.body.meta, {
          pagination: { limit: 2, offset: 0, count: 2 },
          total: expected.length,
        });
        for (const area of reply.body.data) assert.equal(area.type, type);
      });
    }

    test('blank type, format and external_id count as missing', async () => {
      for (const query of ['?type=', '?type=%20', '?format=', '?external_id=', '?external_id=%20'])
        assert.equal((await listed.get(query)).body.meta.total, 13, query);
    });

    const filters: [query: string, places: number[], total: number][] = [
      ['external_id=code-4', [4], 1],
      ['external_id=code-4&type=circle', [4], 1],
      ['external_id=code-4&type=polygon', [], 0],
      ['external_id=code-4&offset=1', [], 1],
      ['external_id=code-4&limit=0', [4], 1],
      ['external_id=code-1', [1], 1],
      ['external_id=code-', [], 0],
      ['external_id=CODE-4', [], 0],
      ['external_id=code-4%20', [], 0],
      ['external_id=%25', [], 0],
      ['external_id=%00', [], 0],
      [`external_id=${'x'.repeat(2_000)}`, [], 0],
      ['external_id=code-1&external%5Fid2=x', [1], 1],
    ];
    for (const [query, places, total] of filters) {
      test(`${query.slice(0, 40)} is an exact match: ${places.length} of ${total}`, async () => {
        const reply = await listed.get(`?${query}`);
        assert.equal(reply.status, 200);
        assert.deepEqual(
          idsOf(reply),
          places.map((place) => ids[place]),
        );
        assert.equal(reply.body.meta.total, total);
        assert.equal(reply.body.meta.pagination.count, places.length);
      });
    }

    test('format=geojson is a FeatureCollection of what the details show', async () => {
      const { body } = await listed.get('?format=geojson');
      assert.deepEqual(Object.keys(body.data), ['type', 'features']);
      assert.equal(body.data.type, 'FeatureCollection');
      for (const feature of body.data.features)
        assert.deepEqual((await listed.get(`/${feature.id}?format=geojson`)).body.data, feature);
    });

    test('an account without areas has an empty list, in both formats', async () => {
      const meta = { pagination: { limit: 50, offset: 0, count: 0 }, total: 0 };
      assert.deepEqual((await stranger.get()).body, { data: [], meta });
      assert.deepEqual((await stranger.get('?format=geojson')).body, {
        data: { type: 'FeatureCollection', features: [] },
        meta,
      });
    });
  });

  describe('list, 400', () => {
    const queries = [
      'type=square',
      'type=Circle',
      'type=circle,point',
      'type=place',
      'type=%20circle',
      'format=xml',
      'format=GeoJSON',
      'limit=1&limit=1',
      'type=circle&type=circle',
      'external_id=a&external_id=b',
      'x=1&x=2',
    ];
    for (const query of queries) {
      test(query, async () => assert.equal(gist(await api.get(`?${query}`)), '400 BAD_REQUEST'));
    }
  });

  describe('detail', () => {
    test('200: a circle shows every documented field', async () => {
      const body = { ...CIRCLE, color: '#ABcdef', external_id: 'a/b', dwell_seconds: 60 };
      const id = await api.make(body);
      const reply = await api.get(`/${id}`);
      const { metrics, bounds, created_at } = reply.body.data;
      assert.deepEqual(reply.body, {
        data: {
          id,
          name: 'Depot',
          color: '#ABcdef',
          type: 'circle',
          center: CIRCLE.center,
          radius_m: 500,
          buffer_m: null,
          points: [],
          external_id: 'a/b',
          dwell_seconds: 60,
          metrics,
          bounds,
          created_at,
        },
        meta: {},
      });
      assert.equal(new Date(created_at).toISOString(), created_at);
      assert.ok(Math.abs(Date.parse(created_at) - Date.now()) < 60_000);
      assert.ok(Math.abs(metrics.area_m2 / (Math.PI * 500 ** 2) - 1) < 0.001);
      assert.ok(Math.abs(metrics.perimeter_m / (2 * Math.PI * 500) - 1) < 0.001);
      assert.equal(metrics.length_m, null);
      assert.deepEqual(Object.keys(bounds), ['south', 'west', 'north', 'east']);
      assert.ok(bounds.south < 41.9 && bounds.north > 41.9 && bounds.west < 12.5 && bounds.east > 12.5);
    });

    const shapes: [title: string, body: object, expected: object, numbers: readonly string[]][] = [
      [
        'a place',
        PLACE,
        { type: 'point', center: PLACE.center, radius_m: 50, buffer_m: null, points: [] },
        [],
      ],
      [
        'a polygon',
        POLYGON,
        { type: 'polygon', radius_m: null, buffer_m: null, points: POLYGON.points },
        ['area_m2', 'perimeter_m'],
      ],
      [
        'a track',
        TRACK,
        { type: 'polyline', center: null, radius_m: null, buffer_m: 50, points: TRACK.points },
        ['length_m'],
      ],
    ];
    for (const [title, body, expected, numbers] of shapes) {
      test(`200: ${title} has its own fields, null for those of others, and its metrics only`, async () => {
        const { data } = (await api.get(`/${await api.make(body)}`)).body;
        for (const [name, value] of Object.entries(expected)) assert.deepEqual(data[name], value, name);
        assert.deepEqual([data.color, data.external_id, data.dwell_seconds], ['#3b82f6', null, 0]);
        for (const [name, value] of Object.entries(data.metrics)) {
          if (numbers.includes(name)) assert.ok((value as number) > 0, name);
          else assert.equal(value, null, name);
        }
      });
    }

    test('200: the centre of a polygon is its centroid', async () => {
      const { center } = (await api.get(`/${await api.make(POLYGON)}`)).body.data;
      assert.ok(Math.abs(center.lat - 41.95) < 1e-3 && Math.abs(center.lng - 12.45) < 1e-9);
    });

    test('200: format=geojson is a Feature', async () => {
      const id = await api.make({ ...TRACK, buffer_m: 70, dwell_seconds: 5, external_id: 'track' });
      const { body } = await api.get(`/${id}?format=geojson`);
      const area = (await api.get(`/${id}?format=json`)).body.data;
      assert.deepEqual(body, {
        data: {
          type: 'Feature',
          id,
          geometry: {
            type: 'LineString',
            coordinates: [
              [12.4, 41.9],
              [12.5, 42],
            ],
          },
          properties: {
            id,
            name: 'Road',
            color: '#3b82f6',
            type: 'polyline',
            radius: null,
            bufferDistance: 70,
            external_id: 'track',
            dwell_seconds: 5,
            metrics: area.metrics,
            created_at: area.created_at,
          },
        },
        meta: {},
      });
    });

    test('200: an id may come with leading zeros, encoded, and with one trailing slash', async () => {
      const id = await api.make(CIRCLE);
      for (const path of [`/00${id}`, `/${id}/`, `/${[...String(id)].map((digit) => `%3${digit}`).join('')}`])
        assert.equal((await api.get(path)).body.data.id, id, path);
    });

    test('400: another format, a repeated parameter', async () => {
      const id = await api.make(CIRCLE);
      for (const query of ['?format=kml', '?format=json&format=json'])
        assert.equal(gist(await api.get(`/${id}${query}`)), '400 BAD_REQUEST');
    });
  });

  describe('a malformed id is 400 before anything is looked up, on every route', () => {
    for (const id of MALFORMED_IDS) {
      test(id, async () => {
        const replies = [
          await api.get(`/${id}`),
          await api.get(`/${id}?format=geojson`),
          await api.get(`/${id}/contains?lat=1&lng=1`),
          await api.send('PATCH', `/${id}`, { body: { name: '' } }),
          await api.send('DELETE', `/${id}`),
        ];
        assert.deepEqual(replies.map(gist), Array(5).fill('400 BAD_REQUEST'));
      });
    }
  });

  describe('404: another customer’s area cannot be told from none', () => {
    test('by status, body or header, on every route', async () => {
      const id = await stranger.make({ ...CIRCLE, name: 'Secret' });
      const calls = (target: number): (() => Promise<Reply>)[] => [
        () => api.get(`/${target}`),
        () => api.get(`/${target}?format=geojson`),
        () => api.contains(target, 41.9, 12.5),
        () => api.patch(target, { name: 'Mine' }),
        () => api.patch(target, { name: '' }),
        () => api.patch(target, { external_id: 'x', ...POLYGON }),
        () => api.remove(target),
      ];
      const missing = calls(UNKNOWN_ID);
      for (const [n, call] of calls(id).entries()) {
        const [foreign, none] = [await call(), await missing[n]!()];
        assert.equal(gist(foreign), n === 4 ? '422 name REQUIRED' : '404 NOT_FOUND');
        assert.deepEqual([foreign.status, foreign.text], [none.status, none.text]);
        assert.deepEqual(headersOf(foreign), headersOf(none));
        assert.doesNotMatch(foreign.text, /Secret/);
      }
      assert.equal((await stranger.get(`/${id}`)).body.data.name, 'Secret');
    });
  });

  describe('delete', () => {
    test('204 without a body; then the area is gone everywhere, and so is its code', async () => {
      const id = await api.make({ ...CIRCLE, external_id: 'gone' });
      const total = (await api.get()).body.meta.total;
      const reply = await api.remove(id);
      assert.deepEqual([reply.status, reply.text], [204, '']);
      assert.equal(reply.headers.get('content-type'), null);
      assert.equal(reply.headers.get('x-api-status'), 'beta');
      for (const after of [
        await api.get(`/${id}`),
        await api.contains(id, 41.9, 12.5),
        await api.remove(id),
        await api.patch(id, {}),
      ])
        assert.equal(gist(after), '404 NOT_FOUND');
      assert.equal((await api.get()).body.meta.total, total - 1);
      assert.deepEqual((await api.get('?external_id=gone')).body.data, []);
      const again = await api.make({ ...CIRCLE, external_id: 'gone' });
      assert.notEqual(again, id);
    });

    test('a body sent along is not looked at', async () => {
      const id = await api.make(CIRCLE);
      assert.equal((await api.send('DELETE', `/${id}`, { body: '{{{' })).status, 204);
    });
  });

  describe('contains', () => {
    test('200: inside is negative, outside positive, in metres from the edge', async () => {
      const id = await api.make({ ...CIRCLE, center: { lat: 0, lng: 0 }, radius_m: 1_000 });
      const inside = await api.contains(id, 0, 0);
      assert.deepEqual(inside.body, { data: { inside: true, distance_m: -1_000 }, meta: {} });
      // 0.01 degrees of longitude on the equator of WGS84
      const outside = (await api.contains(id, 0, 0.01)).body.data;
      assert.equal(outside.inside, false);
      assert.ok(Math.abs(outside.distance_m - (0.01 * (Math.PI / 180) * 6_378_137 - 1_000)) < 0.1);
    });

    test('200: the whole boundary belongs to the area, at distance 0', async () => {
      const id = await api.make(POLYGON);
      const boundary: [lat: number, lng: number][] = [
        ...POLYGON.points.map(({ lat, lng }): [number, number] => [lat, lng]),
        [41.9, 12.45],
        [42, 12.45],
        [41.95, 12.4],
        [41.95, 12.5],
      ];
      for (const [lat, lng] of boundary) {
        assert.deepEqual(
          (await api.contains(id, lat, lng)).body.data,
          { inside: true, distance_m: 0 },
          `${lat} ${lng}`,
        );
      }
      for (const [lat, lng] of [
        [41.8999999999, 12.45],
        [42.0000000001, 12.45],
        [41.95, 12.3999999999],
        [41.95, 12.5000000001],
      ] as const) {
        const { inside, distance_m } = (await api.contains(id, lat, lng)).body.data;
        assert.ok(!inside && distance_m > 0 && distance_m < 0.001, `${lat} ${lng}: ${distance_m}`);
      }
    });

    test('200: places and tracks reach as far as their radius and margin', async () => {
      const place = await api.make({ ...PLACE, center: { lat: 0, lng: 0 } });
      const track = await api.make({
        ...TRACK,
        points: [
          { lat: 0, lng: 0 },
          { lat: 0, lng: 1 },
        ],
        buffer_m: 100,
      });
      const atM = (metres: number): number => metres / ((Math.PI / 180) * 6_335_439.327); // north along the meridian
      const seen = async (id: number, metres: number, lng: number): Promise<[boolean, number]> => {
        const { inside, distance_m } = (await api.contains(id, atM(metres), lng)).body.data;
        return [inside, Math.round(distance_m * 100) / 100];
      };
      assert.deepEqual(await seen(place, 40, 0), [true, -10]);
      assert.deepEqual(await seen(place, 60, 0), [false, 10]);
      assert.deepEqual(await seen(track, 90, 0.5), [true, -10]);
      assert.deepEqual(await seen(track, 110, 0.5), [false, 10]);
      assert.deepEqual(await seen(track, 0, 0.5), [true, -100]);
    });

    test('200: numbers in any decimal notation, up to the ends of their ranges', async () => {
      const id = await api.make(CIRCLE);
      for (const query of [
        'lat=90&lng=180',
        'lat=-90&lng=-180',
        'lat=%2B41.9&lng=12.',
        'lat=.5&lng=-0',
        'lat=041.90&lng=12.5&x=y',
        'lng=1&lat=2',
      ])
        assert.equal((await api.get(`/${id}/contains?${query}`)).status, 200, query);
    });

    const bad = [
      '',
      'lat=1',
      'lng=1',
      'lat=&lng=1',
      'lat=1&lng=',
      'lat=%20&lng=1',
      'lat=abc&lng=1',
      'lat=1&lng=abc',
      'lat=90.0001&lng=1',
      'lat=-91&lng=1',
      'lat=1&lng=180.0001',
      'lat=1&lng=-181',
      'lat=NaN&lng=1',
      'lat=Infinity&lng=1',
      'lat=1e1&lng=1',
      'lat=0x1&lng=1',
      'lat=1,5&lng=1',
      'lat=1&lat=1&lng=1',
      'LAT=1&LNG=1',
      'latitude=1&longitude=1',
    ];
    for (const query of bad) {
      test(`400: ${query === '' ? 'no parameters' : query}, also where there is no such area`, async () => {
        const id = await api.make(PLACE);
        for (const target of [id, UNKNOWN_ID])
          assert.equal(gist(await api.get(`/${target}/contains?${query}`)), '400 BAD_REQUEST');
      });
    }
  });
});

function headersOf({ headers }: Reply): [string, string][] {
  return [...headers].filter(([name]) => name !== 'date');
}
