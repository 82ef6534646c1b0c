import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { FIELD_ERRORS } from '../../src/areas/fieldError.ts';
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

let house: AreaPod;
let api: AreaApi;
before(async () => {
  house = await startAreaPod();
  api = await house.newAccount();
});
after(() => house.pod.stop());

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
    const elsewhere = ['external_id MISMATCH', 'external_id TAKEN', 'dry_run INVALID', 'null LIMIT_REACHED'];
    for (const { field, code } of Object.values(FIELD_ERRORS)) {
      assert.ok(told.has(`${field} ${code}`) || elsewhere.includes(`${field} ${code}`), `${field} ${code}`);
    }
  });
});
