import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import {
  type AreaApi,
  type AreaPod,
  BODIES,
  CIRCLE,
  gist,
  PLACE,
  POLYGON,
  startAreaPod,
  TRACK,
} from '../support/areas.ts';

const UNKNOWN_ID = Number.MAX_SAFE_INTEGER;
const [A, B, C, D] = POLYGON.points as [Corner, Corner, Corner, Corner];
interface Corner {
  readonly lat: number;
  readonly lng: number;
}
const FEATURE = {
  type: 'Feature',
  properties: {
    name: 'From the feature',
    color: '#00ff00',
    external_id: 'feature',
    dwell_seconds: 7,
    radius: 300,
  },
  geometry: { type: 'Point', coordinates: [12.5, 41.9, 100] },
};
const RING = [
  [12.4, 41.9],
  [12.5, 41.9],
  [12.5, 42],
  [12.4, 42],
  [12.4, 41.9],
];

let house: AreaPod;
let api: AreaApi;
before(async () => {
  house = await startAreaPod();
  api = await house.newAccount();
});
after(() => house.pod.stop());

let codes = 0;
const newCode = (): string => `code-${++codes}`;
const stored = async (id: number) => (await api.get(`/${id}`)).body.data;

describe('PATCH', () => {
  test('200: only sent fields change, and the answer is the whole area', async () => {
    const changes: [body: object, patch: object, expected: object][] = [
      [CIRCLE, { name: ' New ' }, { name: 'New' }],
      [CIRCLE, { color: '#abcdef' }, { color: '#abcdef' }],
      [CIRCLE, { dwell_seconds: 60 }, { dwell_seconds: 60 }],
      [CIRCLE, { points: [], buffer_m: 'x' }, {}],
      [POLYGON, { radius_m: -5, center: 'x', buffer_m: 1 }, {}],
      [TRACK, { radius_m: 5, center: { lat: 0, lng: 0 } }, {}],
      [
        PLACE,
        {
          name: null,
          color: null,
          type: null,
          center: null,
          radius_m: null,
          dwell_seconds: null,
          points: null,
          geojson: null,
        },
        {},
      ],
      [CIRCLE, { type: 'circle' }, {}],
      [POLYGON, { type: 'polygon' }, {}],
      [TRACK, { type: 'polyline' }, {}],
      [PLACE, { type: 'point' }, {}],
      [CIRCLE, { id: 5, created_at: 'x', metrics: {}, bounds: null }, {}],
      [CIRCLE, {}, {}],
    ];
    for (const [body, patch, expected] of changes) {
      const id = await api.make({ ...body, external_id: newCode() });
      const before = await stored(id);
      const reply = await api.patch(id, patch);
      const hint = JSON.stringify(patch);
      assert.equal(gist(reply), '200', hint);
      assert.equal(reply.headers.get('location'), null);
      assert.deepEqual(reply.body, { data: { ...before, ...expected }, meta: {} }, hint);
      assert.deepEqual(await stored(id), reply.body.data, hint);
    }
  });

  test('200: what was read may be sent back', async () => {
    for (const body of Object.values(BODIES)) {
      const id = await api.make({ ...body, external_id: newCode(), dwell_seconds: 3 });
      const area = await stored(id);
      assert.deepEqual((await api.patch(id, area)).body, { data: area, meta: {} });
    }
  });

  test('200: a new geometry brings new metrics, bounds and answers', async () => {
    const id = await api.make({ ...CIRCLE, center: { lat: 10, lng: 10 } });
    const before = await stored(id);
    const moved = (await api.patch(id, { center: { lat: 20, lng: 20 } })).body.data;
    assert.deepEqual([moved.radius_m, moved.center], [500, { lat: 20, lng: 20 }]);
    assert.notDeepEqual(moved.bounds, before.bounds);
    assert.equal((await api.contains(id, 20, 20)).body.data.inside, true);
    assert.equal((await api.contains(id, 10, 10)).body.data.inside, false);
    const grown = (await api.patch(id, { radius_m: 1_000 })).body.data;
    assert.deepEqual(grown.center, { lat: 20, lng: 20 });
    assert.ok(Math.abs(grown.metrics.area_m2 / moved.metrics.area_m2 - 4) < 0.01);
  });

  test('200: a type change takes the new geometry whole and forgets the old one', async () => {
    const steps: [patch: object, expected: object][] = [
      [
        { type: 'polygon', points: POLYGON.points },
        { type: 'polygon', radius_m: null, buffer_m: null, points: POLYGON.points },
      ],
      [
        { type: 'polyline', points: TRACK.points },
        { type: 'polyline', center: null, buffer_m: 50, points: TRACK.points },
      ],
      [
        { type: 'polyline', buffer_m: 90 },
        { type: 'polyline', buffer_m: 90, points: TRACK.points },
      ],
      [
        { type: 'point', center: PLACE.center },
        { type: 'point', radius_m: 50, buffer_m: null, points: [] },
      ],
      [
        { type: 'circle', center: PLACE.center, radius_m: 70 },
        { type: 'circle', radius_m: 70 },
      ],
      [
        { type: 'point', center: PLACE.center },
        { type: 'point', radius_m: 50 },
      ],
      [{ geojson: { type: 'Polygon', coordinates: [RING] } }, { type: 'polygon' }],
      [
        { geojson: { type: 'LineString', coordinates: RING.slice(0, 2) } },
        { type: 'polyline', buffer_m: 50 },
      ],
      [
        { geojson: FEATURE, external_id: null },
        { type: 'circle', radius_m: 300, name: 'From the feature' },
      ],
    ];
    const id = await api.make(CIRCLE);
    const { created_at } = await stored(id);
    for (const [patch, expected] of steps) {
      const { data } = (await api.patch(id, patch)).body;
      for (const [name, value] of Object.entries(expected))
        assert.deepEqual(data[name], value, `${JSON.stringify(patch)} ${name}`);
      assert.deepEqual([data.id, data.created_at], [id, created_at]);
      const { center, radius_m, metrics } = data;
      if (data.type === 'polyline') assert.deepEqual([center, radius_m, metrics.area_m2], [null, null, null]);
      else assert.equal(metrics.length_m, null);
    }
  });

  test('200: a type change is seen by the filter of the list', async () => {
    const id = await api.make(CIRCLE);
    const listed = async (type: string): Promise<boolean> =>
      (await api.get(`?type=${type}&limit=200`)).body.data.some((area: { id: number }) => area.id === id);
    assert.deepEqual([await listed('circle'), await listed('polygon')], [true, false]);
    await api.patch(id, { type: 'polygon', points: POLYGON.points });
    assert.deepEqual([await listed('circle'), await listed('polygon')], [false, true]);
  });

  const refusedChanges: [title: string, body: object, patch: object, expected: string][] = [
    ['to a polygon without points', CIRCLE, { type: 'polygon' }, '422 points TOO_FEW_POINTS'],
    [
      'to a track without points, although the polygon has some',
      POLYGON,
      { type: 'polyline' },
      '422 points TOO_FEW_POINTS',
    ],
    ['to a circle without anything', POLYGON, { type: 'circle' }, '422 center REQUIRED, radius_m REQUIRED'],
    [
      'to a circle without a radius, although the place has one',
      PLACE,
      { type: 'circle', center: PLACE.center },
      '422 radius_m REQUIRED',
    ],
    [
      'to a place without a centre, although the circle has one',
      CIRCLE,
      { type: 'point' },
      '422 center REQUIRED',
    ],
    ['to nothing known', CIRCLE, { type: 'square' }, '422 type INVALID'],
    ['of a circle below its least radius', CIRCLE, { radius_m: 24.9 }, '422 radius_m OUT_OF_RANGE'],
    ['of a polygon into a bow tie', POLYGON, { points: [A, C, B, D] }, '422 points SELF_INTERSECTION'],
    ['of a polygon into a line', POLYGON, { points: [A, B] }, '422 points TOO_FEW_POINTS'],
    ['of a track into a point', TRACK, { points: [A] }, '422 points TOO_FEW_POINTS'],
    ['of a track with a bad margin', TRACK, { buffer_m: 4 }, '422 buffer_m OUT_OF_RANGE'],
    ['to a blank name', CIRCLE, { name: ' ' }, '422 name REQUIRED'],
    ['to a bad code', CIRCLE, { external_id: '' }, '422 external_id INVALID'],
    [
      'with GeoJSON of several areas',
      CIRCLE,
      {
        geojson: {
          type: 'MultiPoint',
          coordinates: [
            [1, 2],
            [3, 4],
          ],
        },
      },
      '422 geojson INVALID_GEOJSON',
    ],
    [
      'of everything at once',
      CIRCLE,
      { name: '', color: 'red', center: {}, radius_m: 1, external_id: 5, dwell_seconds: 0.5 },
      '422 name REQUIRED, color INVALID, center INVALID_COORDINATES, radius_m OUT_OF_RANGE, external_id INVALID, dwell_seconds OUT_OF_RANGE',
    ],
  ];
  for (const [title, body, patch, expected] of refusedChanges) {
    test(`a change ${title}: ${expected}, and nothing changes`, async () => {
      const id = await api.make({ ...body, external_id: newCode() });
      const before = await stored(id);
      assert.equal(gist(await api.patch(id, patch)), expected);
      assert.deepEqual(await stored(id), before);
    });
  }

  test('a code is kept when omitted, removed by null, and then free for another', async () => {
    const code = newCode();
    const id = await api.make({ ...CIRCLE, external_id: code });
    assert.equal((await api.patch(id, { name: 'A' })).body.data.external_id, code);
    assert.equal((await api.patch(id, { external_id: null })).body.data.external_id, null);
    assert.equal((await api.get(`?external_id=${code}`)).body.meta.total, 0);
    const other = await api.make({ ...CIRCLE, external_id: code });
    assert.equal((await api.get(`?external_id=${code}`)).body.data[0].id, other);
    assert.equal(gist(await api.patch(id, { external_id: code, name: 'Taken' })), '422 external_id TAKEN');
    assert.equal((await stored(id)).name, 'A');
    assert.equal(gist(await api.patch(other, { external_id: code })), '200');
    assert.equal((await api.patch(id, { external_id: newCode() })).status, 200);
  });

  test('422 before 404: a body that no area could take is refused whether or not there is one', async () => {
    const rows: [patch: unknown, expected: string][] = [
      [{ name: '' }, '422 name REQUIRED'],
      [{ name: 'A', color: 'x', dwell_seconds: -1 }, '422 color INVALID, dwell_seconds OUT_OF_RANGE'],
      [{ type: 'polygon', points: [A, C, B, D] }, '422 points SELF_INTERSECTION'],
      [{ geojson: 'x' }, '422 geojson INVALID_GEOJSON'],
      [[], '422 null INVALID_BODY'],
      ['{', '422 null INVALID_BODY'],
      [{}, '404 NOT_FOUND'],
      [{ radius_m: 1 }, '404 NOT_FOUND'],
      [{ points: [] }, '404 NOT_FOUND'],
      [{ external_id: newCode() }, '404 NOT_FOUND'],
      [{ type: 'circle' }, '404 NOT_FOUND'],
    ];
    for (const [patch, expected] of rows)
      assert.equal(gist(await api.patch(UNKNOWN_ID, patch)), expected, JSON.stringify(patch));
  });
});
