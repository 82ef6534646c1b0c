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
import type { Reply } from '../support/pod.ts';

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
    ['nearly coincident vertices', { ...POLYGON, points: [A, NEAR_A, B, C, D] }, 'warnSimplifiedDuplicates'],
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

/** Points on a circle of a tenth of a degree, counter-clockwise. */
function circlePoints(count: number, closed: boolean): Corner[] {
  const points = Array.from({ length: count }, (_, n) => {
    const angle = (n / count) * 2 * Math.PI;
    return { lat: 41.9 + Math.sin(angle) / 10, lng: 12.5 + Math.cos(angle) / 10 };
  });
  return closed ? [...points, points[0]!] : points;
}
