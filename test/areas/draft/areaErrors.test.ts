import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { AREA_ERRORS } from '../../../src/areas/areaFields.ts';
import { CIRCLE, PLACE, POLYGON, TRACK } from '../../support/http/areas.ts';
import {
  LINE,
  lineString,
  multiLineString,
  multiPoint,
  multiPolygon,
  path,
  polygon,
  RING,
} from '../reads/geojson.ts';
import { at, BOW_TIE, errorsOf, feature, SPIRAL, SQUARE, wrapped } from '../writes/newArea.ts';

// A table of every code on create: each body, all the errors it has.
const ERRORS: readonly (readonly [title: string, body: unknown, errors: string])[] = [
  ['no body', undefined, 'null INVALID_BODY'],
  ['null', null, 'null INVALID_BODY'],
  ['a number', 5, 'null INVALID_BODY'],

  ['an empty object', {}, 'name REQUIRED, type INVALID'],
  ['name missing', { ...CIRCLE, name: undefined }, 'name REQUIRED'],
  ['name empty', { ...CIRCLE, name: '' }, 'name REQUIRED'],
  ['name blank', { ...CIRCLE, name: ' \t\n ' }, 'name REQUIRED'],
  ['name a number', { ...CIRCLE, name: 5 }, 'name REQUIRED'],
  ['name of 101 letters', { ...CIRCLE, name: 'x'.repeat(101) }, 'name TOO_LONG'],
  ['name of 101 lorries', { ...CIRCLE, name: '🚚'.repeat(101) }, 'name TOO_LONG'],
  ['name with a NUL', { ...CIRCLE, name: 'a\u0000b' }, 'name INVALID'],
  ['name with a line end', { ...CIRCLE, name: 'two\nlines' }, 'name INVALID'],
  ['name with half a lorry', { ...CIRCLE, name: 'a\ud83d' }, 'name INVALID'],

  ['type missing', { ...CIRCLE, type: undefined }, 'type INVALID'],
  ['type unknown', { ...CIRCLE, type: 'square' }, 'type INVALID'],
  ['type in capitals', { ...CIRCLE, type: 'Circle' }, 'type INVALID'],
  ['type like a property', { ...CIRCLE, type: 'constructor' }, 'type INVALID'],

  ['color named', { ...CIRCLE, color: 'red' }, 'color INVALID'],
  ['color short', { ...CIRCLE, color: '#fff' }, 'color INVALID'],
  ['color with alpha', { ...CIRCLE, color: '#3b82f6ff' }, 'color INVALID'],
  ['color a number', { ...CIRCLE, color: 0x3b82f6 }, 'color INVALID'],

  ['circle without center', { ...CIRCLE, center: undefined }, 'center REQUIRED'],
  ['place without center', { ...PLACE, center: null }, 'center REQUIRED'],
  ['center a list', { ...CIRCLE, center: [41.9, 12.5] }, 'center INVALID_COORDINATES'],
  ['center in text', { ...CIRCLE, center: { lat: '41.9', lng: 12.5 } }, 'center INVALID_COORDINATES'],
  ['center past the pole', { ...PLACE, center: at(90.001, 0) }, 'center INVALID_COORDINATES'],
  ['center past 180', { ...PLACE, center: at(0, -180.001) }, 'center INVALID_COORDINATES'],

  ['circle without radius', { ...CIRCLE, radius_m: undefined }, 'radius_m REQUIRED'],
  ['circle under 25', { ...CIRCLE, radius_m: 24.999 }, 'radius_m OUT_OF_RANGE'],
  ['circle over 100 km', { ...CIRCLE, radius_m: 100_000.01 }, 'radius_m OUT_OF_RANGE'],
  ['circle with a radius of text', { ...CIRCLE, radius_m: '200' }, 'radius_m OUT_OF_RANGE'],
  [
    'circle with an infinite radius',
    { ...CIRCLE, radius_m: Number.POSITIVE_INFINITY },
    'radius_m OUT_OF_RANGE',
  ],
  ['place with radius 0', { ...PLACE, radius_m: 0 }, 'radius_m OUT_OF_RANGE'],
  ['place over 100 km', { ...PLACE, radius_m: 100_001 }, 'radius_m OUT_OF_RANGE'],

  ['track with a buffer under 5', { ...TRACK, buffer_m: 4.9 }, 'buffer_m OUT_OF_RANGE'],
  ['track with a buffer over 5000', { ...TRACK, buffer_m: 5_001 }, 'buffer_m OUT_OF_RANGE'],

  ['polygon without points', { ...POLYGON, points: undefined }, 'points TOO_FEW_POINTS'],
  ['polygon with points of another kind', { ...POLYGON, points: { 0: at(1, 1) } }, 'points TOO_FEW_POINTS'],
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
  ['a point null', { ...TRACK, points: [null, ...SQUARE] }, 'points INVALID_COORDINATES'],
  ['sides that cross', { ...POLYGON, points: BOW_TIE }, 'points SELF_INTERSECTION'],
  ['no area at all', { ...POLYGON, points: [at(0, 0), at(0, 1), at(0, 2)] }, 'points SELF_INTERSECTION'],

  ['external_id empty', { ...CIRCLE, external_id: '' }, 'external_id INVALID'],
  ['external_id with a blank', { ...CIRCLE, external_id: 'a b' }, 'external_id INVALID'],
  ['external_id of 101 characters', { ...CIRCLE, external_id: 'x'.repeat(101) }, 'external_id INVALID'],
  ['external_id a number', { ...CIRCLE, external_id: 7 }, 'external_id INVALID'],

  ['dwell negative', { ...CIRCLE, dwell_seconds: -1 }, 'dwell_seconds OUT_OF_RANGE'],
  ['dwell over a day', { ...CIRCLE, dwell_seconds: 86_401 }, 'dwell_seconds OUT_OF_RANGE'],
  ['dwell a fraction', { ...CIRCLE, dwell_seconds: 1.5 }, 'dwell_seconds OUT_OF_RANGE'],
  ['dwell false', { ...CIRCLE, dwell_seconds: false }, 'dwell_seconds OUT_OF_RANGE'],

  ['geojson text', wrapped('Point'), 'geojson INVALID_GEOJSON'],
  ['geojson without coordinates', wrapped({ type: 'Point' }), 'geojson INVALID_GEOJSON'],
  ['geojson a collection', wrapped({ type: 'FeatureCollection', features: [] }), 'geojson INVALID_GEOJSON'],
  ['geojson a feature of nothing', wrapped(feature(null, {})), 'geojson INVALID_GEOJSON'],
  ['geojson of two points', wrapped(multiPoint([1, 2], [3, 4])), 'geojson INVALID_GEOJSON'],
  [
    'geojson of two lines apart',
    wrapped(multiLineString(path([1, 2], [3, 4]), path([5, 6], [7, 8]))),
    'geojson INVALID_GEOJSON',
  ],
  ['geojson of no parts', wrapped(multiPolygon()), 'geojson INVALID_GEOJSON'],
  [
    'geojson point out of range',
    wrapped({ type: 'Point', coordinates: [12, 91] }),
    'center INVALID_COORDINATES',
  ],
  ['geojson line out of range', wrapped(lineString([12, 41], [181, 41])), 'points INVALID_COORDINATES'],
  ['geojson ring not nested', wrapped({ type: 'Polygon', coordinates: RING }), 'points INVALID_COORDINATES'],
  ['geojson polygon without rings', wrapped(polygon()), 'points TOO_FEW_POINTS'],
  [
    'geojson crossing',
    wrapped(polygon(BOW_TIE.map(({ lat, lng }) => [lng, lat]))),
    'points SELF_INTERSECTION',
  ],
  ['geojson and a type that does not fit', wrapped(LINE, { type: 'circle' }), 'type INVALID'],
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
    'name REQUIRED, color INVALID, center INVALID_COORDINATES, radius_m OUT_OF_RANGE, external_id INVALID, dwell_seconds OUT_OF_RANGE',
  ],
  ['a bare circle', { type: 'circle' }, 'name REQUIRED, center REQUIRED, radius_m REQUIRED'],
  [
    'a track with nothing right',
    { name: 'x'.repeat(101), type: 'polyline', buffer_m: 0, points: [SQUARE[0]] },
    'name TOO_LONG, buffer_m OUT_OF_RANGE, points TOO_FEW_POINTS',
  ],
  [
    'an unknown type with other errors',
    { type: 'x', color: 1, dwell_seconds: 0.5, center: 'x', points: 'x' },
    'name REQUIRED, color INVALID, type INVALID, dwell_seconds OUT_OF_RANGE',
  ],
  [
    'geojson and everything beside it',
    { type: 'x', color: 1, dwell_seconds: 0.5, external_id: '', geojson: {} },
    'name REQUIRED, color INVALID, type INVALID, geojson INVALID_GEOJSON, external_id INVALID, dwell_seconds OUT_OF_RANGE',
  ],
  [
    'a feature with nothing right',
    { geojson: feature(polygon([]), { external_id: 5, dwell_seconds: [] }) },
    'name REQUIRED, points TOO_FEW_POINTS, external_id INVALID, dwell_seconds OUT_OF_RANGE',
  ],
];

describe('a new area is refused with every field that is wrong', () => {
  for (const [title, body, errors] of ERRORS) {
    test(`${title}: ${errors}`, () => assert.equal(errorsOf(body).join(', '), errors));
  }

  test('every documented code is in this table', () => {
    const reached = new Set(ERRORS.flatMap(([, , errors]) => errors.split(', ')));
    const { externalIdTaken, externalIdMismatch, dryRunInvalid, tooManyAreas, tooManyVertices, ...onCreate } =
      AREA_ERRORS;
    for (const { field, code } of Object.values(onCreate))
      assert.ok(reached.has(`${field} ${code}`), `${field} ${code}`);
  });

  test('a message names its field, for import shows it alone', () => {
    for (const { field, code, message } of Object.values(AREA_ERRORS)) {
      if (code === 'LIMIT_REACHED') continue; // about the account, not about what was sent
      assert.ok(message.includes(field ?? 'body') || field === 'geojson', message);
    }
  });
});
