import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { adminOf } from '../support/admin.ts';
import { type AreaApi, areaApi, BODIES, CIRCLE, gist, PLACE, POLYGON, TRACK } from '../support/areas.ts';
import { rawRequest } from '../support/http.ts';
import { type Pod, type Reply, startPod } from '../support/pod.ts';
import { createDatabase } from '../support/postgres.ts';

const UNKNOWN_ID = Number.MAX_SAFE_INTEGER;
const TINY = {
  ...POLYGON,
  points: POLYGON.points.map(({ lat, lng }) => ({ lat: lat / 2e3, lng: lng / 2e3 })),
};
const HUGE = {
  ...POLYGON,
  points: [
    { lat: 0, lng: 0 },
    { lat: 0, lng: 2 },
    { lat: 2, lng: 2 },
    { lat: 2, lng: 0 },
  ],
};
const [A, B, C, D] = POLYGON.points as [Corner, Corner, Corner, Corner];
interface Corner {
  readonly lat: number;
  readonly lng: number;
}
const NEAR_A = { lat: A.lat + 1e-9, lng: A.lng };
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
const HOLE = [
  [12.44, 41.94],
  [12.46, 41.94],
  [12.46, 41.96],
  [12.44, 41.94],
];

describe('writing areas', () => {
  let pod: Pod;
  let api: AreaApi;
  let codes = 0;

  before(async () => {
    const database = await createDatabase();
    const admin = adminOf(database.url);
    await admin.account('owner@example.com');
    pod = await startPod(database.url);
    api = areaApi(pod, (await admin.key('owner@example.com')).key);
  });

  after(() => pod.stop());

  const newCode = (): string => `code-${++codes}`;
  const stored = async (id: number) => (await api.get(`/${id}`)).body.data;
  const warningsOf = ({ body }: Reply): string[] | undefined =>
    body.meta.warnings?.map(({ code }: { code: string }) => code);

  describe('POST, 201', () => {
    for (const [type, body] of Object.entries(BODIES)) {
      test(`a ${type} is made with defaults, a Location and meta empty, and is what the detail shows`, async () => {
        const reply = await api.post(body);
        assert.equal(reply.status, 201);
        const { data } = reply.body;
        assert.equal(reply.headers.get('location'), `/api/v3/areas/${data.id}`);
        assert.deepEqual(data, await stored(data.id));
        assert.deepEqual([data.type, data.name, data.color], [type, body.name, '#3b82f6']);
        assert.deepEqual([data.external_id, data.dwell_seconds], [null, 0]);
        assert.deepEqual(reply.body.meta, {});
      });
    }

    const accepted: [title: string, body: object, expected: object][] = [
      ['a name is trimmed', { ...PLACE, name: ' \t Gate \n' }, { name: 'Gate' }],
      [
        'a name has a hundred characters, not code units',
        { ...PLACE, name: '𝄞'.repeat(100) },
        { name: '𝄞'.repeat(100) },
      ],
      ['colours come in either case', { ...PLACE, color: '#FfFfFf' }, { color: '#FfFfFf' }],
      [
        'null is as good as nothing',
        {
          ...PLACE,
          color: null,
          radius_m: null,
          external_id: null,
          dwell_seconds: null,
          points: null,
          buffer_m: null,
          geojson: null,
        },
        { color: '#3b82f6', radius_m: 50, external_id: null, dwell_seconds: 0 },
      ],
      ['the smallest circle', { ...CIRCLE, radius_m: 25 }, { radius_m: 25 }],
      ['the largest circle', { ...CIRCLE, radius_m: 100_000 }, { radius_m: 100_000 }],
      ['a place smaller than a circle may be', { ...PLACE, radius_m: 0.5 }, { radius_m: 0.5 }],
      ['the largest place', { ...PLACE, radius_m: 100_000 }, { radius_m: 100_000 }],
      ['the narrowest track', { ...TRACK, buffer_m: 5 }, { buffer_m: 5 }],
      ['the widest track', { ...TRACK, buffer_m: 5_000 }, { buffer_m: 5_000 }],
      ['the longest stay', { ...PLACE, dwell_seconds: 86_400 }, { dwell_seconds: 86_400 }],
      ['a whole number in another notation', { ...PLACE, dwell_seconds: 6e1 }, { dwell_seconds: 60 }],
      [
        'a code of every character',
        { ...PLACE, external_id: 'azAZ09._:/@#-' },
        { external_id: 'azAZ09._:/@#-' },
      ],
      ['a code of a hundred', { ...PLACE, external_id: 'x'.repeat(100) }, { external_id: 'x'.repeat(100) }],
      [
        'fields of another type are passed over',
        { ...CIRCLE, points: 'x', buffer_m: -1 },
        { points: [], buffer_m: null },
      ],
      [
        'what only the service writes, and what nobody knows, is passed over',
        { ...PLACE, id: 1, metrics: 5, bounds: [], created_at: 'x', whatever: {} },
        { radius_m: 50 },
      ],
      [
        'the ends of the earth',
        { ...PLACE, center: { lat: -90, lng: 180 } },
        { center: { lat: -90, lng: 180 } },
      ],
      ['minus zero is zero', { ...PLACE, center: { lat: -0, lng: -0 } }, { center: { lat: 0, lng: 0 } }],
      [
        'a closing point is dropped',
        { ...POLYGON, points: [...POLYGON.points, A] },
        { points: POLYGON.points },
      ],
      [
        '2000 points and a closing one',
        { ...TRACK, type: 'polygon', points: circlePoints(2_000, true) },
        { points: circlePoints(2_000, false) },
      ],
    ];
    for (const [title, body, expected] of accepted) {
      test(title, async () => {
        const reply = await api.post(body);
        assert.equal(gist(reply), '201');
        const data = await stored(reply.body.data.id);
        for (const [name, value] of Object.entries(expected)) assert.deepEqual(data[name], value, name);
      });
    }

    const geojson: [title: string, body: object, expected: object][] = [
      [
        'a Feature says everything',
        { geojson: FEATURE },
        {
          name: 'From the feature',
          color: '#00ff00',
          external_id: 'feature',
          dwell_seconds: 7,
          radius_m: 300,
          type: 'circle',
          center: { lat: 41.9, lng: 12.5 },
        },
      ],
      [
        'top-level fields win',
        {
          name: 'Mine',
          color: '#ff0000',
          external_id: 'mine',
          dwell_seconds: 9,
          radius_m: 400,
          geojson: FEATURE,
        },
        { name: 'Mine', color: '#ff0000', external_id: 'mine', dwell_seconds: 9, radius_m: 400 },
      ],
      [
        'a null at the top lets the Feature speak',
        {
          name: null,
          color: null,
          dwell_seconds: null,
          radius_m: null,
          geojson: FEATURE,
          external_id: 'null-top',
        },
        { name: 'From the feature', color: '#00ff00', dwell_seconds: 7, radius_m: 300 },
      ],
      [
        'a bare Point is a place',
        { name: 'P', geojson: { type: 'Point', coordinates: [12.5, 41.9] } },
        { type: 'point', radius_m: 50 },
      ],
      [
        'a bare LineString is a track of 50',
        { name: 'L', geojson: { type: 'LineString', coordinates: RING.slice(0, 2) } },
        { type: 'polyline', buffer_m: 50 },
      ],
      [
        'bufferDistance is the margin',
        {
          geojson: {
            type: 'Feature',
            properties: { name: 'L', bufferDistance: 70 },
            geometry: { type: 'LineString', coordinates: RING.slice(0, 2) },
          },
        },
        { buffer_m: 70 },
      ],
      [
        'and so is buffer_distance',
        {
          geojson: {
            type: 'Feature',
            properties: { name: 'L', buffer_distance: 80 },
            geometry: { type: 'LineString', coordinates: RING.slice(0, 2) },
          },
        },
        { buffer_m: 80 },
      ],
      [
        'buffer_m at the top wins',
        {
          buffer_m: 90,
          geojson: {
            type: 'Feature',
            properties: { name: 'L', bufferDistance: 70 },
            geometry: { type: 'LineString', coordinates: RING.slice(0, 2) },
          },
        },
        { buffer_m: 90 },
      ],
      [
        'a Polygon',
        { name: 'P', geojson: { type: 'Polygon', coordinates: [RING] } },
        { type: 'polygon', points: RING.slice(0, 4).map(([lng, lat]) => ({ lat, lng })) },
      ],
      [
        'title for a name, stroke for a colour',
        { geojson: { ...FEATURE, properties: { title: 'T', stroke: '#0000FF' } } },
        { name: 'T', color: '#0000FF', type: 'point' },
      ],
      [
        'a colour of another notation falls back to stroke',
        { geojson: { ...FEATURE, properties: { name: 'T', color: 'red', stroke: '#0000ff' } } },
        { color: '#0000ff' },
      ],
      [
        'and then to the default',
        { geojson: { ...FEATURE, properties: { name: 'T', color: 'red', stroke: 'blue' } } },
        { color: '#3b82f6' },
      ],
      [
        'a Multi* of one part is that part',
        { name: 'M', geojson: { type: 'MultiPolygon', coordinates: [[RING]] } },
        { type: 'polygon' },
      ],
    ];
    for (const [title, body, expected] of geojson) {
      test(`geojson: ${title}`, async () => {
        const reply = await api.post(body);
        assert.equal(gist(reply), '201');
        const data = await stored(reply.body.data.id);
        for (const [name, value] of Object.entries(expected)) assert.deepEqual(data[name], value, name);
      });
    }

    const warned: [title: string, body: object, ...codes: string[]][] = [
      [
        'nearly coincident vertices',
        { ...POLYGON, points: [A, NEAR_A, B, C, D] },
        'warnSimplifiedDuplicates',
      ],
      [
        'the last nearly on the first',
        { ...POLYGON, points: [A, B, C, D, NEAR_A] },
        'warnSimplifiedDuplicates',
      ],
      ['a track that stands still', { ...TRACK, points: [A, A, B] }, 'warnSimplifiedDuplicates'],
      ['less than 100 m²', TINY, 'warnVerySmallArea'],
      ['more than 10 000 km²', HUGE, 'warnVeryLargeArea'],
      ['a circle of more than 10 000 km²', { ...CIRCLE, radius_m: 60_000 }, 'warnVeryLargeArea'],
      [
        'interior rings',
        { name: 'H', geojson: { type: 'Polygon', coordinates: [RING, HOLE] } },
        'warnHolesIgnored',
      ],
      [
        'several at once',
        {
          name: 'H',
          geojson: {
            type: 'Polygon',
            coordinates: [
              [
                [0, 0],
                [0, 0],
                [2, 0],
                [2, 2],
                [0, 2],
                [0, 0],
              ],
              HOLE,
            ],
          },
        },
        'warnHolesIgnored',
        'warnSimplifiedDuplicates',
        'warnVeryLargeArea',
      ],
    ];
    for (const [title, body, ...expected] of warned) {
      test(`warns of ${title}, on creation and on change`, async () => {
        const reply = await api.post(body);
        assert.equal(gist(reply), '201');
        assert.deepEqual(warningsOf(reply)?.toSorted(), expected.toSorted());
        for (const warning of reply.body.meta.warnings)
          assert.deepEqual(Object.keys(warning), ['code', 'message']);
        const { id } = reply.body.data;
        assert.deepEqual(warningsOf(await api.patch(id, body))?.toSorted(), expected.toSorted());
        assert.equal(warningsOf(await api.patch(id, { name: 'Only the name' })), undefined);
        const put = await api.put(newCode(), body);
        assert.deepEqual(warningsOf(put)?.toSorted(), expected.toSorted());
        assert.deepEqual(Object.keys(put.body.meta).toSorted(), ['upsert', 'warnings']);
      });
    }
  });

  describe('POST, 409', () => {
    test('a code that another area of the account has, without details', async () => {
      const code = newCode();
      await api.make({ ...CIRCLE, external_id: code });
      const before = (await api.get()).body.meta.total;
      const reply = await api.post({ ...PLACE, external_id: code });
      assert.equal(gist(reply), '409 CONFLICT');
      assert.deepEqual(Object.keys(reply.body.error), ['code', 'message']);
      assert.equal((await api.get()).body.meta.total, before);
      assert.equal(
        gist(await api.post({ ...PLACE, external_id: code, radius_m: -1 })),
        '422 radius_m OUT_OF_RANGE',
      );
    });
  });

  describe('PUT by external id', () => {
    test('201 with a Location creates, 200 without one updates, and no repetition makes another', async () => {
      const code = newCode();
      const created = await api.put(code, CIRCLE);
      assert.equal(created.status, 201);
      const { id } = created.body.data;
      assert.equal(created.headers.get('location'), `/api/v3/areas/${id}`);
      assert.deepEqual(created.body.meta, { upsert: 'created' });
      assert.equal(created.body.data.external_id, code);
      for (let n = 0; n < 3; n++) {
        const updated = await api.put(code, CIRCLE);
        assert.equal(updated.status, 200);
        assert.equal(updated.headers.get('location'), null);
        assert.deepEqual(updated.body, { data: created.body.data, meta: { upsert: 'updated' } });
      }
      assert.deepEqual((await api.get(`?external_id=${code}`)).body.meta.total, 1);
    });

    test('only the sent fields change', async () => {
      const code = newCode();
      const { id, ...made } = (
        await api.put(code, { ...TRACK, color: '#111111', dwell_seconds: 5, buffer_m: 70 })
      ).body.data;
      const updated = await api.put(code, { dwell_seconds: 6 });
      assert.deepEqual(updated.body.data, { id, ...made, dwell_seconds: 6 });
      assert.deepEqual((await api.put(code, {})).body.data, { id, ...made, dwell_seconds: 6 });
      assert.deepEqual(await stored(id), { id, ...made, dwell_seconds: 6 });
    });

    test('an area made by POST or import is found by its code', async () => {
      const code = newCode();
      const id = await api.make({ ...CIRCLE, external_id: code });
      const reply = await api.put(code, { name: 'Renamed' });
      assert.deepEqual([reply.status, reply.body.data.id, reply.body.data.name], [200, id, 'Renamed']);
    });

    test('geojson works here too', async () => {
      const code = newCode();
      const reply = await api.put(code, { geojson: { ...FEATURE, properties: { name: 'F' } } });
      assert.deepEqual(
        [reply.status, reply.body.data.type, reply.body.data.external_id],
        [201, 'point', code],
      );
    });

    const mismatches: [title: string, body: (code: string) => object, expected: string][] = [
      ['the same code', (code) => ({ ...CIRCLE, external_id: code }), '201'],
      ['another code', () => ({ ...CIRCLE, external_id: 'other' }), '422 external_id MISMATCH'],
      [
        'the code in another case',
        (code) => ({ ...CIRCLE, external_id: code.toUpperCase() }),
        '422 external_id MISMATCH',
      ],
      ['null', () => ({ ...CIRCLE, external_id: null }), '422 external_id MISMATCH'],
      ['a malformed code', () => ({ ...CIRCLE, external_id: 'a b' }), '422 external_id INVALID'],
      ['another code in the Feature', () => ({ geojson: FEATURE }), '422 external_id MISMATCH'],
      [
        'the same code above another in the Feature',
        (code) => ({ external_id: code, geojson: FEATURE }),
        '201',
      ],
      [
        'another code among other faults',
        () => ({ name: '', external_id: 'other', type: 'circle' }),
        '422 name REQUIRED, center REQUIRED, radius_m REQUIRED, external_id MISMATCH',
      ],
    ];
    for (const [title, body, expected] of mismatches) {
      test(`${title} in the body: ${expected}`, async () => {
        const code = newCode();
        assert.equal(gist(await api.put(code, body(code))), expected);
        assert.equal((await api.get(`?external_id=${code}`)).body.meta.total, expected === '201' ? 1 : 0);
      });
    }

    test('422: what is invalid neither creates nor changes', async () => {
      const code = newCode();
      assert.equal(gist(await api.put(code, { name: 'A' })), '422 type INVALID');
      assert.equal(gist(await api.put(code, {})), '422 name REQUIRED, type INVALID');
      assert.equal((await api.get(`?external_id=${code}`)).body.meta.total, 0);
      const { data } = (await api.put(code, CIRCLE)).body;
      assert.equal(gist(await api.put(code, { radius_m: 1, name: 'B' })), '422 radius_m OUT_OF_RANGE');
      assert.deepEqual(await stored(data.id), data);
    });

    describe('the code in the path', () => {
      const spellings: [code: string, ...paths: string[]][] = [
        ['a/b', 'a/b', 'a%2Fb', 'a%2fb', '%61/b'],
        ['a//b', 'a//b', 'a%2F/b', 'a%2F%2Fb'],
        ['/a', '/a', '%2Fa'],
        ['a/', 'a%2F', 'a//', 'a%2F/'],
        ['//', '%2F%2F', '///'],
        ['a:b', 'a:b', 'a%3Ab'],
        ['a@b', 'a@b', 'a%40b'],
        ['a#b', 'a%23b', 'a#b'],
        ['a.b', 'a.b', 'a%2Eb'],
        ['a-_b', 'a-_b', 'a%2D%5Fb'],
        ['.', '%2E', '.'],
        ['..', '%2e%2e', '..'],
        ['a/../b', 'a/../b', 'a%2F..%2Fb'],
        ['a/./b', 'a/./b'],
        ['1', '1', '%31', '1/'],
        ['import', 'import', 'import/'],
        ['by-external-id/x', 'by-external-id/x'],
        ['x/contains', 'x/contains'],
        [`${'x'.repeat(99)}/`, `${'x'.repeat(99)}%2F`],
        ['y'.repeat(100), 'y'.repeat(100), '%79'.repeat(100)],
      ];
      const put = async (path: string, body: object) => {
        const reply = await rawRequest(pod.api, `/api/v3/areas/by-external-id/${path}`, {
          method: 'PUT',
          headers: { 'X-API-Key': api.key, 'Content-Type': 'application/json' },
          body: JSON.stringify(body),
        });
        return { status: reply.status, body: JSON.parse(reply.text) };
      };

      for (const [code, ...paths] of spellings) {
        test(`${code.slice(0, 30)} is the same code however it is written: ${paths.join('  ').slice(0, 60)}`, async () => {
          const ids = new Set<number>();
          for (const [n, path] of paths.entries()) {
            const { status, body } = await put(path, CIRCLE);
            assert.equal(status, n === 0 ? 201 : 200, path);
            assert.equal(body.data.external_id, code, path);
            ids.add(body.data.id);
          }
          assert.equal(ids.size, 1);
          const found = await api.get(`?external_id=${encodeURIComponent(code)}`);
          assert.deepEqual(
            found.body.data.map(({ id }: { id: number }) => id),
            [...ids],
          );
        });
      }

      const malformed = [
        '',
        '/',
        '%20',
        'a%20b',
        'a+b',
        'a%2Bb',
        'a%00',
        'a%0A',
        '%C3%A8',
        'a*b',
        "a'b",
        'a%22b',
        'a,b',
        'a;b',
        'a%3Fb',
        'a%25b',
        'a%252Fb',
        '~a',
        'a=b',
        'x'.repeat(101),
        '%78'.repeat(101),
        `${'x'.repeat(100)}%2F`,
        '%',
        'a%',
        '%zz',
        '%E0%A4%A',
      ];
      for (const path of malformed) {
        test(`400 before anything else: ${path === '' ? 'nothing' : path.slice(0, 30)}`, async () => {
          const { status, body } = await put(path, { name: '' });
          assert.deepEqual([status, body.error.code], [400, 'BAD_REQUEST']);
        });
      }

      test('400 without the slash as well', async () => {
        assert.equal(gist(await api.send('PUT', '/by-external-id', { body: CIRCLE })), '400 BAD_REQUEST');
      });
    });
  });

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
        if (data.type === 'polyline')
          assert.deepEqual([center, radius_m, metrics.area_m2], [null, null, null]);
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

  test('a write with a header Idempotency-Key is as without it on every route but POST', async () => {
    const headers = { 'Idempotency-Key': 'not for you ###' };
    const id = await api.make(CIRCLE);
    assert.equal((await api.send('PATCH', `/${id}`, { body: { name: 'A' }, headers })).status, 200);
    assert.equal(
      (await api.send('PUT', `/by-external-id/${newCode()}`, { body: CIRCLE, headers })).status,
      201,
    );
    const imported = { type: 'Point', coordinates: [1, 2] };
    for (let n = 0; n < 2; n++) {
      const reply = await api.send('POST', '/import', { body: imported, headers });
      assert.equal(reply.status, 201);
      assert.equal(reply.headers.get('idempotent-replayed'), null);
    }
    assert.equal((await api.send('DELETE', `/${id}`, { headers })).status, 204);
  });
});

/** Points on a circle of a tenth of a degree, counter-clockwise. */
function circlePoints(count: number, closed: boolean): Corner[] {
  const points = Array.from({ length: count }, (_, n) => {
    const angle = (n / count) * 2 * Math.PI;
    return { lat: 41.9 + Math.sin(angle) / 10, lng: 12.5 + Math.cos(angle) / 10 };
  });
  return closed ? [...points, points[0]!] : points;
}
