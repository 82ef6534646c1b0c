import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { type AreaGeometry, toLatLngs, toVertices as verticesOf } from '../../src/areas/area.ts';
import { FIELD_ERRORS } from '../../src/areas/fieldError.ts';
import { completeDraft, type ValidArea } from '../../src/areas/mergeDraft.ts';
import { addressDraft, parseDraft } from '../../src/areas/parseDraft.ts';
import { anyBody } from './arbitraries.ts';

const at = (lat: number, lng: number) => ({ lat, lng });
const SQUARE = [at(41.9, 12.4), at(41.9, 12.5), at(42, 12.5), at(42, 12.4)];
const BOW_TIE = [at(41.9, 12.4), at(42, 12.5), at(41.9, 12.5), at(42, 12.4)];
const CIRCLE = { name: 'Depot', type: 'circle', center: at(41.9, 12.5), radius_m: 200 };
const PLACE = { name: 'Stop', type: 'point', center: at(41.9, 12.5) };
const POLYGON = { name: 'Zone', type: 'polygon', points: SQUARE };
const TRACK = { name: 'Route', type: 'polyline', points: [at(41.9, 12.4), at(42, 12.5)] };
const LINE = {
  type: 'LineString',
  coordinates: [
    [12.4, 41.9],
    [12.5, 42],
  ],
};
const RING = [
  [12.4, 41.9],
  [12.5, 41.9],
  [12.5, 42],
  [12.4, 42],
  [12.4, 41.9],
];
const SPIRAL = Array.from({ length: 2_002 }, (_, i) => at(i / 100, (i % 2) / 100));

/** "field code" of every fault, or what is not in the area as it was expected. */
function faultsOf(body: unknown): string[] {
  const draft = parseDraft(body);
  const completed = draft.ok ? completeDraft(draft.value) : draft;
  return completed.ok ? [] : completed.error.map(({ field, code }) => `${field} ${code}`);
}

function create(body: unknown): ValidArea {
  const draft = parseDraft(body);
  assert.ok(draft.ok);
  const completed = completeDraft(draft.value);
  assert.ok(completed.ok, JSON.stringify(completed));
  return completed.value;
}

const geometryOf = (body: unknown): AreaGeometry => create(body).definition.geometry;
const wrapped = (geojson: unknown, fields: object = {}) => ({ name: 'G', ...fields, geojson });
const feature = (geometry: unknown, properties: unknown) => ({ type: 'Feature', geometry, properties });

// A table of every code on create: each body, all the faults it has.
const FAULTS: readonly (readonly [title: string, body: unknown, ...faults: string[]])[] = [
  ['no body', undefined, 'null INVALID_BODY'],
  ['null', null, 'null INVALID_BODY'],
  ['a list', [CIRCLE], 'null INVALID_BODY'],
  ['text', 'circle', 'null INVALID_BODY'],
  ['a number', 5, 'null INVALID_BODY'],

  ['an empty object', {}, 'name REQUIRED', 'type INVALID'],
  ['name missing', { ...CIRCLE, name: undefined }, 'name REQUIRED'],
  ['name null', { ...CIRCLE, name: null }, 'name REQUIRED'],
  ['name empty', { ...CIRCLE, name: '' }, 'name REQUIRED'],
  ['name blank', { ...CIRCLE, name: ' \t\n ' }, 'name REQUIRED'],
  ['name a number', { ...CIRCLE, name: 5 }, 'name REQUIRED'],
  ['name a list', { ...CIRCLE, name: ['Depot'] }, 'name REQUIRED'],
  ['name of 101 letters', { ...CIRCLE, name: 'x'.repeat(101) }, 'name TOO_LONG'],
  ['name of 101 lorries', { ...CIRCLE, name: '🚚'.repeat(101) }, 'name TOO_LONG'],
  ['name of a megabyte', { ...CIRCLE, name: 'x'.repeat(1e6) }, 'name TOO_LONG'],
  ['name with a NUL', { ...CIRCLE, name: 'a\u0000b' }, 'name INVALID'],
  ['name with a line end', { ...CIRCLE, name: 'two\nlines' }, 'name INVALID'],
  ['name with a C1 control', { ...CIRCLE, name: 'a\u0085b' }, 'name INVALID'],
  ['name with DEL', { ...CIRCLE, name: 'a\u007f' }, 'name INVALID'],
  ['name with half a lorry', { ...CIRCLE, name: 'a\ud83d' }, 'name INVALID'],

  ['type missing', { ...CIRCLE, type: undefined }, 'type INVALID'],
  ['type null', { ...CIRCLE, type: null }, 'type INVALID'],
  ['type unknown', { ...CIRCLE, type: 'square' }, 'type INVALID'],
  ['type in capitals', { ...CIRCLE, type: 'Circle' }, 'type INVALID'],
  ['type a list', { ...CIRCLE, type: ['circle'] }, 'type INVALID'],
  ['type like a property', { ...CIRCLE, type: 'constructor' }, 'type INVALID'],

  ['color named', { ...CIRCLE, color: 'red' }, 'color INVALID'],
  ['color short', { ...CIRCLE, color: '#fff' }, 'color INVALID'],
  ['color with alpha', { ...CIRCLE, color: '#3b82f6ff' }, 'color INVALID'],
  ['color with a line end', { ...CIRCLE, color: '#3b82f6\n' }, 'color INVALID'],
  ['color empty', { ...CIRCLE, color: '' }, 'color INVALID'],
  ['color a number', { ...CIRCLE, color: 0x3b82f6 }, 'color INVALID'],

  ['circle without center', { ...CIRCLE, center: undefined }, 'center REQUIRED'],
  ['place without center', { ...PLACE, center: null }, 'center REQUIRED'],
  ['center a list', { ...CIRCLE, center: [41.9, 12.5] }, 'center INVALID_COORDINATES'],
  ['center empty', { ...CIRCLE, center: {} }, 'center INVALID_COORDINATES'],
  ['center text', { ...CIRCLE, center: '41.9,12.5' }, 'center INVALID_COORDINATES'],
  ['center in text', { ...CIRCLE, center: { lat: '41.9', lng: 12.5 } }, 'center INVALID_COORDINATES'],
  ['center past the pole', { ...PLACE, center: at(90.001, 0) }, 'center INVALID_COORDINATES'],
  ['center past 180', { ...PLACE, center: at(0, -180.001) }, 'center INVALID_COORDINATES'],
  ['center null inside', { ...PLACE, center: { lat: null, lng: 1 } }, 'center INVALID_COORDINATES'],

  ['circle without radius', { ...CIRCLE, radius_m: undefined }, 'radius_m REQUIRED'],
  ['circle with radius null', { ...CIRCLE, radius_m: null }, 'radius_m REQUIRED'],
  ['circle under 25', { ...CIRCLE, radius_m: 24.999 }, 'radius_m OUT_OF_RANGE'],
  ['circle over 100 km', { ...CIRCLE, radius_m: 100_000.01 }, 'radius_m OUT_OF_RANGE'],
  ['circle with a radius of text', { ...CIRCLE, radius_m: '200' }, 'radius_m OUT_OF_RANGE'],
  [
    'circle with an infinite radius',
    { ...CIRCLE, radius_m: Number.POSITIVE_INFINITY },
    'radius_m OUT_OF_RANGE',
  ],
  ['place with radius 0', { ...PLACE, radius_m: 0 }, 'radius_m OUT_OF_RANGE'],
  ['place with a negative radius', { ...PLACE, radius_m: -5 }, 'radius_m OUT_OF_RANGE'],
  ['place over 100 km', { ...PLACE, radius_m: 100_001 }, 'radius_m OUT_OF_RANGE'],
  ['place with a radius of true', { ...PLACE, radius_m: true }, 'radius_m OUT_OF_RANGE'],

  ['track with a buffer under 5', { ...TRACK, buffer_m: 4.9 }, 'buffer_m OUT_OF_RANGE'],
  ['track with a buffer over 5000', { ...TRACK, buffer_m: 5_001 }, 'buffer_m OUT_OF_RANGE'],
  ['track with a buffer of text', { ...TRACK, buffer_m: '50' }, 'buffer_m OUT_OF_RANGE'],

  ['polygon without points', { ...POLYGON, points: undefined }, 'points TOO_FEW_POINTS'],
  ['polygon with points null', { ...POLYGON, points: null }, 'points TOO_FEW_POINTS'],
  ['polygon with points of another kind', { ...POLYGON, points: { 0: at(1, 1) } }, 'points TOO_FEW_POINTS'],
  ['polygon of no points', { ...POLYGON, points: [] }, 'points TOO_FEW_POINTS'],
  ['polygon of 2 points', { ...POLYGON, points: SQUARE.slice(2) }, 'points TOO_FEW_POINTS'],
  [
    'polygon of 2 points, closed',
    { ...POLYGON, points: [SQUARE[0], SQUARE[1], SQUARE[0]] },
    'points TOO_FEW_POINTS',
  ],
  [
    'polygon of 3 points, two nearly one',
    { ...POLYGON, points: [at(41.9, 12.4), at(41.9000001, 12.4), at(42, 12.5)] },
    'points TOO_FEW_POINTS',
  ],
  ['track of 1 point', { ...TRACK, points: SQUARE.slice(3) }, 'points TOO_FEW_POINTS'],
  ['track that stands still', { ...TRACK, points: [SQUARE[0], SQUARE[0]] }, 'points TOO_FEW_POINTS'],
  ['polygon of 2001 points', { ...POLYGON, points: SPIRAL.slice(1) }, 'points TOO_MANY_POINTS'],
  ['track of 2001 points', { ...TRACK, points: SPIRAL.slice(1) }, 'points TOO_MANY_POINTS'],
  [
    'track of 2001 points, closed',
    { ...TRACK, points: [...SPIRAL.slice(2), SPIRAL[2]] },
    'points TOO_MANY_POINTS',
  ],
  ['a point out of range', { ...POLYGON, points: [...SQUARE, at(91, 0)] }, 'points INVALID_COORDINATES'],
  ['a point of text', { ...TRACK, points: [...SQUARE, '42,12'] }, 'points INVALID_COORDINATES'],
  ['a point null', { ...TRACK, points: [null, ...SQUARE] }, 'points INVALID_COORDINATES'],
  ['points as in GeoJSON', { ...POLYGON, points: RING }, 'points INVALID_COORDINATES'],
  ['sides that cross', { ...POLYGON, points: BOW_TIE }, 'points SELF_INTERSECTION'],
  ['no area at all', { ...POLYGON, points: [at(0, 0), at(0, 1), at(0, 2)] }, 'points SELF_INTERSECTION'],

  ['external_id empty', { ...CIRCLE, external_id: '' }, 'external_id INVALID'],
  ['external_id with a blank', { ...CIRCLE, external_id: 'a b' }, 'external_id INVALID'],
  ['external_id of 101 characters', { ...CIRCLE, external_id: 'x'.repeat(101) }, 'external_id INVALID'],
  ['external_id with a NUL', { ...CIRCLE, external_id: 'a\u0000' }, 'external_id INVALID'],
  ['external_id a number', { ...CIRCLE, external_id: 7 }, 'external_id INVALID'],

  ['dwell negative', { ...CIRCLE, dwell_seconds: -1 }, 'dwell_seconds OUT_OF_RANGE'],
  ['dwell over a day', { ...CIRCLE, dwell_seconds: 86_401 }, 'dwell_seconds OUT_OF_RANGE'],
  ['dwell a fraction', { ...CIRCLE, dwell_seconds: 1.5 }, 'dwell_seconds OUT_OF_RANGE'],
  ['dwell text', { ...CIRCLE, dwell_seconds: '60' }, 'dwell_seconds OUT_OF_RANGE'],
  ['dwell false', { ...CIRCLE, dwell_seconds: false }, 'dwell_seconds OUT_OF_RANGE'],

  ['geojson text', wrapped('Point'), 'geojson INVALID_GEOJSON'],
  ['geojson false', wrapped(false), 'geojson INVALID_GEOJSON'],
  ['geojson a list', wrapped([LINE]), 'geojson INVALID_GEOJSON'],
  ['geojson empty', wrapped({}), 'geojson INVALID_GEOJSON'],
  ['geojson of unknown type', wrapped({ type: 'Curve', coordinates: [] }), 'geojson INVALID_GEOJSON'],
  ['geojson without coordinates', wrapped({ type: 'Point' }), 'geojson INVALID_GEOJSON'],
  ['geojson a collection', wrapped({ type: 'FeatureCollection', features: [] }), 'geojson INVALID_GEOJSON'],
  [
    'geojson geometries',
    wrapped({ type: 'GeometryCollection', geometries: [LINE] }),
    'geojson INVALID_GEOJSON',
  ],
  ['geojson a feature of nothing', wrapped(feature(null, {})), 'geojson INVALID_GEOJSON'],
  ['geojson a feature of a feature', wrapped(feature(feature(LINE, {}), {})), 'geojson INVALID_GEOJSON'],
  [
    'geojson of two points',
    wrapped({
      type: 'MultiPoint',
      coordinates: [
        [1, 2],
        [3, 4],
      ],
    }),
    'geojson INVALID_GEOJSON',
  ],
  [
    'geojson of two lines apart',
    wrapped({
      type: 'MultiLineString',
      coordinates: [
        [
          [1, 2],
          [3, 4],
        ],
        [
          [5, 6],
          [7, 8],
        ],
      ],
    }),
    'geojson INVALID_GEOJSON',
  ],
  ['geojson of no parts', wrapped({ type: 'MultiPolygon', coordinates: [] }), 'geojson INVALID_GEOJSON'],
  [
    'geojson point out of range',
    wrapped({ type: 'Point', coordinates: [12, 91] }),
    'center INVALID_COORDINATES',
  ],
  [
    'geojson point of one number',
    wrapped({ type: 'Point', coordinates: [12] }),
    'center INVALID_COORDINATES',
  ],
  [
    'geojson line out of range',
    wrapped({
      type: 'LineString',
      coordinates: [
        [12, 41],
        [181, 41],
      ],
    }),
    'points INVALID_COORDINATES',
  ],
  ['geojson ring not nested', wrapped({ type: 'Polygon', coordinates: RING }), 'points INVALID_COORDINATES'],
  ['geojson polygon without rings', wrapped({ type: 'Polygon', coordinates: [] }), 'points TOO_FEW_POINTS'],
  ['geojson line of nothing', wrapped({ type: 'LineString', coordinates: [] }), 'points TOO_FEW_POINTS'],
  [
    'geojson crossing',
    wrapped({ type: 'Polygon', coordinates: [BOW_TIE.map(({ lat, lng }) => [lng, lat])] }),
    'points SELF_INTERSECTION',
  ],
  ['geojson and a type that does not fit', wrapped(LINE, { type: 'circle' }), 'type INVALID'],
  ['geojson and a type that is none', wrapped(LINE, { type: 'line' }), 'type INVALID'],
  [
    'geojson circle under 25',
    wrapped(feature({ type: 'Point', coordinates: [1, 2] }, { radius: 24 })),
    'radius_m OUT_OF_RANGE',
  ],
  ['geojson without a name', { geojson: feature(LINE, {}) }, 'name REQUIRED'],
  ['geojson with a blank name', { geojson: feature(LINE, { name: ' ', title: 7 }) }, 'name REQUIRED'],
  ['geojson code malformed', wrapped(feature(LINE, { external_id: 'a b' })), 'external_id INVALID'],
  ['geojson dwell malformed', wrapped(feature(LINE, { dwell_seconds: 'x' })), 'dwell_seconds OUT_OF_RANGE'],
  ['geojson buffer malformed', wrapped(feature(LINE, { bufferDistance: 1 })), 'buffer_m OUT_OF_RANGE'],

  // Several at once.
  [
    'a circle with nothing right',
    { name: '', type: 'circle', color: 'x', external_id: '?', dwell_seconds: -1, center: 5, radius_m: 'x' },
    'name REQUIRED',
    'color INVALID',
    'center INVALID_COORDINATES',
    'radius_m OUT_OF_RANGE',
    'external_id INVALID',
    'dwell_seconds OUT_OF_RANGE',
  ],
  ['a bare circle', { type: 'circle' }, 'name REQUIRED', 'center REQUIRED', 'radius_m REQUIRED'],
  [
    'a track with nothing right',
    { name: 'x'.repeat(101), type: 'polyline', buffer_m: 0, points: [SQUARE[0]] },
    'name TOO_LONG',
    'buffer_m OUT_OF_RANGE',
    'points TOO_FEW_POINTS',
  ],
  [
    'an unknown type with other faults',
    { type: 'x', color: 1, dwell_seconds: 0.5, center: 'x', points: 'x' },
    'name REQUIRED',
    'color INVALID',
    'type INVALID',
    'dwell_seconds OUT_OF_RANGE',
  ],
  [
    'geojson and everything beside it',
    { type: 'x', color: 1, dwell_seconds: 0.5, external_id: '', geojson: {} },
    'name REQUIRED',
    'color INVALID',
    'type INVALID',
    'geojson INVALID_GEOJSON',
    'external_id INVALID',
    'dwell_seconds OUT_OF_RANGE',
  ],
  [
    'a feature with nothing right',
    { geojson: feature({ type: 'Polygon', coordinates: [[]] }, { external_id: 5, dwell_seconds: [] }) },
    'name REQUIRED',
    'points TOO_FEW_POINTS',
    'external_id INVALID',
    'dwell_seconds OUT_OF_RANGE',
  ],
];

describe('a new area is refused with every field that is wrong', () => {
  for (const [title, body, ...faults] of FAULTS) {
    test(`${title}: ${faults.join(', ')}`, () => assert.deepEqual(faultsOf(body), faults));
  }

  test('every documented code is in this table', () => {
    const reached = new Set(FAULTS.flatMap(([, , ...faults]) => faults));
    const { externalIdTaken, externalIdMismatch, ...onCreate } = FIELD_ERRORS;
    for (const { field, code } of Object.values(onCreate))
      assert.ok(reached.has(`${field} ${code}`), `${field} ${code}`);
  });

  test('a message names its field, for import shows it alone', () => {
    for (const { field, message } of Object.values(FIELD_ERRORS)) {
      assert.ok(message.includes(field ?? 'body') || field === 'geojson', message);
    }
  });
});

describe('a new area is what was sent, with defaults for the rest', () => {
  test('circle', () => {
    assert.deepEqual(create(CIRCLE).definition, {
      name: 'Depot',
      color: '#3b82f6',
      geometry: { type: 'circle', center: at(41.9, 12.5), radiusM: 200 },
      externalId: null,
      dwellSeconds: 0,
    });
  });

  test('every own field', () => {
    const sent = { color: '#AbCdEf', external_id: 'a/B:9@#_-.', dwell_seconds: 86_400, name: '  Depot 🚚 ' };
    assert.deepEqual(create({ ...CIRCLE, ...sent }).definition, {
      name: 'Depot 🚚',
      color: '#AbCdEf',
      geometry: { type: 'circle', center: at(41.9, 12.5), radiusM: 200 },
      externalId: 'a/B:9@#_-.',
      dwellSeconds: 86_400,
    });
  });

  test('null is a field that was not sent', () => {
    const nulls = {
      color: null,
      external_id: null,
      dwell_seconds: null,
      points: null,
      buffer_m: null,
      geojson: null,
    };
    assert.deepEqual(create({ ...CIRCLE, ...nulls }), create(CIRCLE));
  });

  const accepted: readonly (readonly [title: string, body: object, geometry: AreaGeometry])[] = [
    ['a place has 50 m around it', PLACE, { type: 'point', center: at(41.9, 12.5), radiusM: 50 }],
    [
      'or any radius above 0',
      { ...PLACE, radius_m: 0.5 },
      { type: 'point', center: at(41.9, 12.5), radiusM: 0.5 },
    ],
    [
      'a circle of 25 m',
      { ...CIRCLE, radius_m: 25 },
      { type: 'circle', center: at(41.9, 12.5), radiusM: 25 },
    ],
    [
      'a circle of 100 km',
      { ...CIRCLE, radius_m: 1e5 },
      { type: 'circle', center: at(41.9, 12.5), radiusM: 1e5 },
    ],
    [
      'a circle on the pole',
      { ...CIRCLE, center: at(90, 180) },
      { type: 'circle', center: at(90, 180), radiusM: 200 },
    ],
    [
      'minus zero is zero',
      { ...CIRCLE, center: at(-0, -0) },
      { type: 'circle', center: at(0, 0), radiusM: 200 },
    ],
    [
      'fields of another type are ignored, even wrong ones',
      { ...CIRCLE, points: 'x', buffer_m: -1 },
      { type: 'circle', center: at(41.9, 12.5), radiusM: 200 },
    ],
    [
      'on a polygon too',
      { ...POLYGON, center: 'x', radius_m: 'x', buffer_m: 'x' },
      { type: 'polygon', points: verticesOf(SQUARE) },
    ],
    [
      'on a track too',
      { ...TRACK, center: at(91, 0), radius_m: -1 },
      { type: 'polyline', points: verticesOf(TRACK.points), bufferM: 50 },
    ],
    ['a track has 50 m', TRACK, { type: 'polyline', points: verticesOf(TRACK.points), bufferM: 50 }],
    ['or 5', { ...TRACK, buffer_m: 5 }, { type: 'polyline', points: verticesOf(TRACK.points), bufferM: 5 }],
    [
      'or 5000',
      { ...TRACK, buffer_m: 5e3 },
      { type: 'polyline', points: verticesOf(TRACK.points), bufferM: 5e3 },
    ],
    [
      'a track may cross itself and end where it began',
      { ...TRACK, points: [...BOW_TIE, BOW_TIE[0]] },
      { type: 'polyline', points: verticesOf([...BOW_TIE, BOW_TIE[0]!]), bufferM: 50 },
    ],
    ['a polygon keeps its winding', POLYGON, { type: 'polygon', points: verticesOf(SQUARE) }],
    [
      'and the other one',
      { ...POLYGON, points: SQUARE.toReversed() },
      { type: 'polygon', points: verticesOf(SQUARE.toReversed()) },
    ],
    [
      'and loses its closing point',
      { ...POLYGON, points: [...SQUARE, SQUARE[0]] },
      { type: 'polygon', points: verticesOf(SQUARE) },
    ],
    [
      'points may carry more than they need',
      { ...TRACK, points: TRACK.points.map((point) => ({ ...point, alt: 5, time: 'x' })) },
      { type: 'polyline', points: verticesOf(TRACK.points), bufferM: 50 },
    ],
  ];
  for (const [title, body, geometry] of accepted) {
    test(title, () => assert.deepEqual(geometryOf(body), geometry));
  }

  test('2000 points are enough for a polygon that repeats its first', () => {
    const circle = Array.from({ length: 2_000 }, (_, i) => {
      const angle = (2 * Math.PI * i) / 2_000;
      return at(Math.sin(angle), Math.cos(angle));
    });
    const geometry = geometryOf({ ...POLYGON, points: [...circle, circle[0]] });
    assert.ok(geometry.type === 'polygon');
    assert.deepEqual(
      toLatLngs(geometry.points),
      circle.map(({ lat, lng }) => at(lat + 0, lng + 0)),
    );
  });

  test('100 code points are a name, counted after trimming', () => {
    for (const name of ['x'.repeat(100), '🚚'.repeat(100), ` ${'é'.repeat(100)}\n`]) {
      assert.equal(create({ ...CIRCLE, name }).definition.name, name.trim());
    }
  });
});

describe('a GeoJSON wrapper makes the area that the conversion table says', () => {
  const point = { type: 'Point', coordinates: [12.5, 41.9, 37] };
  const center = at(41.9, 12.5);
  const rows: readonly (readonly [
    title: string,
    geojson: unknown,
    fields: object,
    geometry: AreaGeometry,
  ])[] = [
    ['Point', point, {}, { type: 'point', center, radiusM: 50 }],
    ['Point with a radius', feature(point, { radius: 70 }), {}, { type: 'circle', center, radiusM: 70 }],
    [
      'Point with radius_m beside',
      feature(point, { radius: 70 }),
      { radius_m: 80 },
      { type: 'circle', center, radiusM: 80 },
    ],
    ['Point with only radius_m', point, { radius_m: 80 }, { type: 'circle', center, radiusM: 80 }],
    ['Point with radius null', feature(point, { radius: null }), {}, { type: 'point', center, radiusM: 50 }],
    [
      'Point of type point',
      feature(point, { radius: 7, type: 'point' }),
      {},
      { type: 'point', center, radiusM: 7 },
    ],
    [
      'Point of type circle',
      feature(point, { radius: 70, type: 'circle' }),
      {},
      { type: 'circle', center, radiusM: 70 },
    ],
    ['Point of type depot', feature(point, { type: 'depot' }), {}, { type: 'point', center, radiusM: 50 }],
    [
      'Point of type polygon',
      feature(point, { type: 'polygon' }),
      {},
      { type: 'point', center, radiusM: 50 },
    ],
    [
      'Point with type beside',
      feature(point, { radius: 70, type: 'circle' }),
      { type: 'point' },
      { type: 'point', center, radiusM: 70 },
    ],
    ['LineString', LINE, {}, { type: 'polyline', points: verticesOf(TRACK.points), bufferM: 50 }],
    [
      'LineString with bufferDistance',
      feature(LINE, { bufferDistance: 9, buffer_distance: 8 }),
      {},
      { type: 'polyline', points: verticesOf(TRACK.points), bufferM: 9 },
    ],
    [
      'LineString with buffer_distance',
      feature(LINE, { bufferDistance: null, buffer_distance: 8 }),
      {},
      { type: 'polyline', points: verticesOf(TRACK.points), bufferM: 8 },
    ],
    [
      'LineString with buffer_m beside',
      feature(LINE, { bufferDistance: 9, radius: 'x' }),
      { buffer_m: 10, type: 'polyline' },
      { type: 'polyline', points: verticesOf(TRACK.points), bufferM: 10 },
    ],
    [
      'Polygon',
      { type: 'Polygon', coordinates: [RING] },
      {},
      { type: 'polygon', points: verticesOf(SQUARE) },
    ],
    [
      'Polygon left open',
      { type: 'Polygon', coordinates: [RING.slice(1)] },
      {},
      { type: 'polygon', points: verticesOf([...SQUARE.slice(1), SQUARE[0]!]) },
    ],
    [
      'Polygon of one part',
      { type: 'MultiPolygon', coordinates: [[RING]] },
      {},
      { type: 'polygon', points: verticesOf(SQUARE) },
    ],
    [
      'LineString of one part',
      { type: 'MultiLineString', coordinates: [LINE.coordinates] },
      {},
      { type: 'polyline', points: verticesOf(TRACK.points), bufferM: 50 },
    ],
    [
      'Point of one part',
      { type: 'MultiPoint', coordinates: [point.coordinates] },
      {},
      { type: 'point', center, radiusM: 50 },
    ],
    [
      'geometry beside the wrapper is ignored',
      point,
      { center: 'x', points: 'x', buffer_m: 'x' },
      { type: 'point', center, radiusM: 50 },
    ],
  ];
  for (const [title, geojson, fields, geometry] of rows) {
    test(title, () => assert.deepEqual(geometryOf(wrapped(geojson, fields)), geometry));
  }

  const own: readonly (readonly [title: string, properties: unknown, fields: object, expected: object])[] = [
    ['name', { name: ' A ', title: 'B' }, {}, { name: 'A' }],
    ['title', { title: 'B' }, {}, { name: 'B' }],
    ['title for a blank name', { name: ' ', title: 'B' }, {}, { name: 'B' }],
    ['title for a name that is no text', { name: 5, title: 'B' }, {}, { name: 'B' }],
    ['name beside', { name: 'A' }, { name: 'C' }, { name: 'C' }],
    ['name null beside', { name: 'A' }, { name: null }, { name: 'A' }],
    ['color', { name: 'A', color: '#ABCDEF', stroke: '#000000' }, {}, { color: '#ABCDEF' }],
    ['stroke', { name: 'A', stroke: '#000000' }, {}, { color: '#000000' }],
    [
      'stroke for a color that is none',
      { name: 'A', color: 'red', stroke: '#000000' },
      {},
      { color: '#000000' },
    ],
    ['neither', { name: 'A', color: 'red', stroke: 'blue' }, {}, { color: '#3b82f6' }],
    ['color beside', { name: 'A', color: '#ABCDEF' }, { color: '#123456' }, { color: '#123456' }],
    ['external_id', { name: 'A', external_id: 'x:1' }, {}, { externalId: 'x:1' }],
    ['external_id null', { name: 'A', external_id: null }, {}, { externalId: null }],
    ['external_id beside', { name: 'A', external_id: 'x:1' }, { external_id: 'x:2' }, { externalId: 'x:2' }],
    [
      'external_id null beside',
      { name: 'A', external_id: 'x:1' },
      { external_id: null },
      { externalId: null },
    ],
    [
      'external_id beside a wrong one',
      { name: 'A', external_id: 5 },
      { external_id: 'x:2' },
      { externalId: 'x:2' },
    ],
    ['dwell_seconds', { name: 'A', dwell_seconds: 60 }, {}, { dwellSeconds: 60 }],
    ['dwell_seconds beside', { name: 'A', dwell_seconds: 60 }, { dwell_seconds: 0 }, { dwellSeconds: 0 }],
  ];
  for (const [title, properties, fields, expected] of own) {
    test(`${title} of the properties`, () => {
      const { definition } = create({ geojson: feature(point, properties), ...fields });
      assert.deepEqual({ ...definition, ...expected }, definition);
    });
  }

  test('properties of any other kind are none', () => {
    for (const properties of [undefined, null, 5, 'x', [], ['name']]) {
      assert.equal(create(wrapped(feature(point, properties))).definition.name, 'G');
    }
  });
});

describe('a new area comes with its warnings', () => {
  const side = (degrees: number) => [at(0, 0), at(0, degrees), at(degrees, degrees), at(degrees, 0)];
  const rows: readonly (readonly [title: string, body: object, ...codes: string[]])[] = [
    ['nothing to warn of', POLYGON],
    ['under 100 m²', { ...POLYGON, points: side(0.00008) }, 'warnVerySmallArea'],
    ['over 100 m²', { ...POLYGON, points: side(0.0001) }],
    ['over 10 000 km²', { ...POLYGON, points: side(0.91) }, 'warnVeryLargeArea'],
    ['under 10 000 km²', { ...POLYGON, points: side(0.89) }],
    ['a circle of 57 km', { ...CIRCLE, radius_m: 57_000 }, 'warnVeryLargeArea'],
    ['a circle of 56 km', { ...CIRCLE, radius_m: 56_000 }],
    ['a place, however large', { ...PLACE, radius_m: 100_000 }],
    ['a track, however long', { ...TRACK, points: side(10), buffer_m: 5_000 }],
    [
      'nearly coincident vertices',
      { ...POLYGON, points: [SQUARE[0], at(41.9000001, 12.4), ...SQUARE.slice(1)] },
      'warnSimplifiedDuplicates',
    ],
    ['a repeated point of a track', { ...TRACK, points: [SQUARE[0], ...SQUARE] }, 'warnSimplifiedDuplicates'],
    ['a closing point', { ...POLYGON, points: [...SQUARE, SQUARE[0]] }],
    [
      'a last point near the first',
      { ...POLYGON, points: [...SQUARE, at(41.9000001, 12.4)] },
      'warnSimplifiedDuplicates',
    ],
    ['a hole', wrapped({ type: 'Polygon', coordinates: [RING, RING] }), 'warnHolesIgnored'],
    ['a hole that is none', wrapped({ type: 'Polygon', coordinates: [RING, 'x'] }), 'warnHolesIgnored'],
    [
      'all at once',
      wrapped({
        type: 'Polygon',
        coordinates: [
          [
            [0, 0],
            [0, 0.0000001],
            [0.00001, 0],
            [0, 0.00001],
            [0, 0],
          ],
          [],
        ],
      }),
      'warnHolesIgnored',
      'warnSimplifiedDuplicates',
      'warnVerySmallArea',
    ],
  ];
  for (const [title, body, ...codes] of rows) {
    test(title, () => {
      const { warnings } = create(body);
      assert.deepEqual(
        warnings.map(({ code }) => code),
        codes,
      );
      for (const { message } of warnings) assert.notEqual(message, '');
    });
  }
});

describe('the upsert route names the area by its path', () => {
  const rows: readonly (readonly [title: string, externalId: unknown, ...faults: string[]])[] = [
    ['no code in the body', undefined],
    ['the same code', 'x:1'],
    ['another code', 'x:2', 'external_id MISMATCH'],
    ['another case', 'X:1', 'external_id MISMATCH'],
    ['null', null, 'external_id MISMATCH'],
    ['a malformed code', 'x 1', 'external_id INVALID'],
  ];
  for (const [title, external_id, ...faults] of rows) {
    for (const body of [{ ...CIRCLE, external_id }, wrapped(LINE, { external_id })]) {
      test(`${title}, ${'geojson' in body ? 'geojson' : 'json'}`, () => {
        const draft = parseDraft(body);
        assert.ok(draft.ok);
        const completed = completeDraft(addressDraft(draft.value, 'x:1'));
        if (completed.ok) assert.equal(completed.value.definition.externalId, 'x:1');
        const errors = completed.ok ? [] : completed.error;
        assert.deepEqual(
          errors.map(({ field, code }) => `${field} ${code}`),
          faults,
        );
      });
    }
  }

  test("a feature's code counts as the body's, unless it is null", () => {
    for (const [external_id, sound] of [
      ['x:1', true],
      ['x:2', false],
      [null, true],
    ] as const) {
      const draft = parseDraft(wrapped(feature(LINE, { external_id })));
      assert.ok(draft.ok);
      assert.equal(completeDraft(addressDraft(draft.value, 'x:1')).ok, sound);
    }
  });
});

test('whatever comes in, the answer is a sound area or documented faults', () => {
  const codes = new Set(Object.values(FIELD_ERRORS).map(({ field, code }) => `${field} ${code}`));
  let created = 0;
  fc.assert(
    fc.property(anyBody, (body) => {
      const faults = faultsOf(body);
      for (const fault of faults) assert.ok(codes.has(fault), fault);
      assert.equal(new Set(faults).size, faults.length);
      if (faults.length > 0) return;
      created++;
      assertSound(create(body));
    }),
    { seed: 20_260_315, numRuns: 3_000 },
  );
  assert.ok(created > 100, `only ${created} created`);
});

function assertSound({ definition, figures, warnings }: ValidArea): void {
  const { name, color, geometry, externalId, dwellSeconds } = definition;
  assert.ok(name !== '' && name === name.trim() && [...name].length <= 100);
  assert.ok(name.isWellFormed() && !name.includes('\u0000'));
  assert.match(color, /^#[0-9a-f]{6}$/i);
  if (externalId !== null) assert.match(externalId, /^[\w.:/@#-]{1,100}$/);
  assert.ok(Number.isInteger(dwellSeconds) && dwellSeconds >= 0 && dwellSeconds <= 86_400);
  const positions = 'points' in geometry ? toLatLngs(geometry.points) : [geometry.center];
  for (const { lat, lng } of positions) assert.ok(Math.abs(lat) <= 90 && Math.abs(lng) <= 180);
  if ('points' in geometry) assert.ok(positions.length >= (geometry.type === 'polygon' ? 3 : 2));
  const { bounds } = figures;
  assert.ok(bounds.south <= bounds.north && Math.abs(bounds.west) <= 180 && Math.abs(bounds.east) <= 180);
  for (const metric of [figures.areaM2, figures.perimeterM, figures.lengthM]) {
    assert.ok(metric === null || (Number.isFinite(metric) && metric >= 0), `${metric}`);
  }
  assert.equal(new Set(warnings).size, warnings.length);
}
