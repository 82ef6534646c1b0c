import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import {
  type AreaApi,
  type AreaPod,
  CIRCLE,
  gist,
  PLACE,
  POLYGON,
  startAreaPod,
  TRACK,
} from '../support/areas.ts';
import type { Reply } from '../support/pod.ts';

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
let stranger: AreaApi;
let house: AreaPod;
let api: AreaApi;
before(async () => {
  house = await startAreaPod();
  api = await house.newAccount();
  stranger = await house.newAccount();
});
after(() => house.pod.stop());

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
    ['a place', PLACE, { type: 'point', center: PLACE.center, radius_m: 50, buffer_m: null, points: [] }, []],
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

function headersOf({ headers }: Reply): [string, string][] {
  return [...headers].filter(([name]) => name !== 'date');
}
