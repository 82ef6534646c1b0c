import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { resolveImport } from '../../../src/areas/import/importAreas.ts';
import { IMPORT_LIMITS, planImport, READING_CODES } from '../../../src/areas/import/importPlan.ts';
import { runs } from '../../support/torture.ts';
import { anyImport } from '../draft/arbitraries.ts';
import {
  BOW_TIE,
  collection,
  FAR_RING,
  LINE,
  lineString,
  multiPoint,
  multiPolygon,
  POINT,
  path,
  polygon,
  RING,
} from '../reads/geojson.ts';
import { coded, errorsOf, feature, NO_QUOTA, namesOf, resolve, run } from './importing.ts';

describe('a body that is no GeoJSON at all is refused as a whole', () => {
  const rows: readonly (readonly [title: string, body: unknown, error: string])[] = [
    ['nothing', undefined, 'null INVALID_BODY'],
    ['a list of features', [feature(POINT)], 'null INVALID_BODY'],
    ['another type', { type: 'Topology', objects: {} }, 'geojson INVALID_GEOJSON'],
    ['a collection without features', { type: 'FeatureCollection' }, 'geojson INVALID_GEOJSON'],
    [
      'a collection with features of another kind',
      { ...collection(), features: {} },
      'geojson INVALID_GEOJSON',
    ],
    ['a wrapper of a list', { geojson: [feature(POINT)] }, 'geojson INVALID_GEOJSON'],
    ['a wrapper in a wrapper', { geojson: { geojson: feature(POINT) } }, 'geojson INVALID_GEOJSON'],
    [
      'a wrapper that is none, around a collection',
      { ...collection(feature(POINT)), geojson: 5 },
      'geojson INVALID_GEOJSON',
    ],
  ];
  for (const [title, body, error] of rows) {
    test(`${title}: ${error}`, () => {
      const planned = run(planImport(body));
      assert.ok(!planned.ok);
      assert.deepEqual(
        planned.error.map(({ field, code }) => `${field} ${code}`),
        [error],
      );
    });
  }
});

// [the feature at index 1 of three, the errors it gives]
const MULTI = multiPolygon([RING], [FAR_RING]);
const LONG = Array.from({ length: 2_001 }, (_, i) => [i / 100, (i % 2) / 100]);
const ERRORS: readonly (readonly [title: string, feature: unknown, ...codes: string[]])[] = [
  ['no feature', null, 'errGeoJsonInvalid'],
  ['a geometry among features', POINT, 'errGeoJsonInvalid'],
  ['a feature by another name', { ...feature(POINT), type: 'feature' }, 'errGeoJsonInvalid'],
  ['no geometry', { type: 'Feature', properties: { name: 'A' } }, 'errGeoJsonInvalid'],
  ['geometry null', feature(null), 'errGeoJsonInvalid'],
  ['geometry without coordinates', feature({ type: 'Point' }), 'errGeoJsonInvalid'],
  [
    'geometry with coordinates of text',
    feature({ type: 'LineString', coordinates: 'x' }),
    'errGeoJsonInvalid',
  ],
  ['a Multi* of nothing', feature(multiPolygon()), 'errGeoJsonInvalid'],
  [
    'a geometry collection',
    feature({ type: 'GeometryCollection', geometries: [POINT] }),
    'errGeometryUnsupported',
  ],
  ['a point out of range', feature({ type: 'Point', coordinates: [12, 90.1] }), 'errCoordinates'],
  ['a point of nothing', feature({ type: 'Point', coordinates: [] }), 'errCoordinates'],
  ['a point whose third is text', feature({ type: 'Point', coordinates: [12, 41, 'x'] }), 'errCoordinates'],
  ['a line with a position out of range', feature(lineString([1, 2], [181, 2])), 'errCoordinates'],
  ['a ring not nested', feature({ type: 'Polygon', coordinates: RING }), 'errCoordinates'],
  ['a polygon of nothing', feature(polygon()), 'errPolygonMin'],
  ['a polygon of two', feature(polygon(path([1, 2], [3, 4], [1, 2]))), 'errPolygonMin'],
  ['a line of one', feature(lineString([1, 2])), 'errPolylineMin'],
  ['a line of 2001', feature({ type: 'LineString', coordinates: LONG }), 'errTooManyPoints'],
  ['a polygon of 2001', feature(polygon(LONG)), 'errTooManyPoints'],
  [
    'what cannot be read is the only error',
    feature({ type: 'Point', coordinates: [] }, { dwell_seconds: -1 }),
    'errCoordinates',
  ],

  ['no name', feature(POINT, {}), 'REQUIRED'],
  ['no properties', feature(POINT, null), 'REQUIRED'],
  ['a name with a NUL', feature(POINT, { name: 'a\u0000' }), 'INVALID'],
  ['sides that cross', feature(polygon(BOW_TIE)), 'SELF_INTERSECTION'],
  ['a small circle', feature(POINT, { name: 'A', radius: 24 }), 'OUT_OF_RANGE'],
  ['a type without what it needs', feature(POINT, { name: 'A', type: 'circle' }), 'REQUIRED'],
  ['a wrong dwell', feature(POINT, { name: 'A', dwell_seconds: '60' }), 'OUT_OF_RANGE'],
  ['a wrong code', coded('a b'), 'INVALID'],
  [
    'several',
    feature(LINE, { dwell_seconds: -1, bufferDistance: 'x', external_id: '' }),
    'REQUIRED',
    'OUT_OF_RANGE',
    'INVALID',
    'OUT_OF_RANGE',
  ],

  ['a Multi* with a code', feature(MULTI, { name: 'A', external_id: 'x' }), 'MULTI_GEOMETRY_EXTERNAL_ID'],
  ['a Multi* without a name', feature(MULTI, {}), 'REQUIRED'],
  ['a Multi* with a name too long for numbers', feature(MULTI, { name: 'x'.repeat(98) }), 'TOO_LONG'],
  ['a Multi* of nothing but errors', feature(multiPoint([1], 'x')), 'errCoordinates', 'errCoordinates'],
  [
    'two parts that cross themselves',
    feature(multiPolygon([BOW_TIE], [BOW_TIE]), {}),
    'REQUIRED',
    'SELF_INTERSECTION',
    'SELF_INTERSECTION',
  ],
];

describe('a feature that makes no area says why, and its neighbours live', () => {
  for (const [title, bad, ...codes] of ERRORS) {
    test(`${title}: ${codes.join(', ')}`, () => {
      const outcome = resolve(collection(feature(POINT), bad, feature(LINE, { name: 'B' })));
      assert.deepEqual(
        errorsOf(outcome),
        codes.map((code) => `1 ${code}`),
      );
      assert.deepEqual(namesOf(outcome), ['A', 'B']);
      assert.deepEqual(outcome.created, [
        { index: 0, write: 0 },
        { index: 2, write: 1 },
      ]);
      for (const error of outcome.errors) {
        assert.equal('message' in error, !error.code.startsWith('err'), 'the families differ by message');
      }
    });
  }

  test('every code of reading is in this table, or is about the number of features', () => {
    const codes = new Set(ERRORS.flatMap(([, , ...found]) => found));
    assert.deepEqual(
      READING_CODES.filter((code) => !codes.has(code)),
      ['errTooManyFeatures'],
    );
  });
});

describe('a Multi* geometry becomes one area per part', () => {
  test('named by number, with the rest of the properties each', () => {
    const outcome = resolve(
      collection(feature(MULTI, { name: 'Ponza', color: '#102030', dwell_seconds: 9 })),
    );
    assert.deepEqual(namesOf(outcome), ['Ponza (1)', 'Ponza (2)']);
    assert.deepEqual(outcome.created, [
      { index: 0, write: 0 },
      { index: 0, write: 1 },
    ]);
    for (const { area } of outcome.writes) {
      assert.deepEqual([area.definition.color, area.definition.dwellSeconds], ['#102030', 9]);
    }
  });

  test('a bad part costs itself, not its number', () => {
    const coordinates = [[RING], [BOW_TIE], [FAR_RING], [[[1, 2]]]];
    const outcome = resolve(collection(feature({ type: 'MultiPolygon', coordinates })));
    assert.deepEqual(namesOf(outcome), ['A (1)', 'A (3)']);
    assert.deepEqual(errorsOf(outcome), ['0 SELF_INTERSECTION', '0 errPolygonMin']);
  });

  test('a part alone is the whole, its code included', () => {
    const single = multiPolygon([RING]);
    const outcome = resolve(collection(coded('x', {}, single)));
    assert.deepEqual(namesOf(outcome), ['A']);
    assert.equal(outcome.writes[0]?.area.definition.externalId, 'x');
  });
});

describe('what is too much is dropped and reported, the rest is done', () => {
  test('features beyond the 200th', () => {
    const many = Array.from({ length: 203 }, (_, i) => feature(POINT, { name: `A ${i}` }));
    const outcome = resolve(collection(...many));
    assert.equal(outcome.writes.length, 200);
    assert.deepEqual(namesOf(outcome).at(-1), 'A 199');
    assert.deepEqual(outcome.errors, [{ index: -1, code: 'errTooManyFeatures' }]);
    assert.deepEqual(resolve(collection(...many.slice(0, 200))).errors, []);
  });

  test('errors stand in the order of the features, the one about the call first', () => {
    const many = [coded('a b'), ...Array.from({ length: 200 }, () => feature(null))];
    const outcome = resolve(collection(...many.slice(0, 1), coded('x', { name: '' }), ...many.slice(1)));
    assert.deepEqual(errorsOf(outcome).slice(0, 4), [
      '-1 errTooManyFeatures',
      '0 INVALID',
      '1 REQUIRED',
      '2 errGeoJsonInvalid',
    ]);
  });

  test('a feature whose parts alone would be too many areas', () => {
    const dots = (count: number) =>
      feature({ type: 'MultiPoint', coordinates: Array.from({ length: count }, () => [1, 2]) });
    const outcome = resolve(collection(dots(IMPORT_LIMITS.areas - 1), dots(2), feature(POINT)));
    assert.equal(outcome.writes.length, IMPORT_LIMITS.areas);
    assert.deepEqual(errorsOf(outcome), ['1 errTooManyFeatures']);
  });

  test('bad parts count too, so that errors are as bounded as areas', () => {
    const bad = (count: number) =>
      feature({ type: 'MultiPoint', coordinates: Array.from({ length: count }, () => 'x') });
    const outcome = resolve(collection(bad(IMPORT_LIMITS.areas - 1), bad(2), feature(POINT), feature(POINT)));
    assert.equal(outcome.errors.length, IMPORT_LIMITS.areas + 1);
    assert.deepEqual(errorsOf(outcome).slice(-2), ['1 errTooManyFeatures', '3 errTooManyFeatures']);
    assert.deepEqual(outcome.created, [{ index: 2, write: 0 }]);
  });
});

test('no step of a plan is longer than one feature', () => {
  const steps = planImport(collection(...Array.from({ length: 250 }, () => feature(POINT))));
  let count = 0;
  while (!steps.next().done) count++;
  assert.equal(count, 200);
});

test('whatever comes in, every feature becomes areas or errors', () => {
  let areas = 0;
  const property = fc.property(anyImport, (body) => {
    const planned = run(planImport(body));
    if (!planned.ok) {
      assert.equal(planned.error.length, 1);
      return;
    }
    const outcome = run(resolveImport(planned.value, new Map(), NO_QUOTA));
    areas += outcome.writes.length;
    const mentioned = new Set([...outcome.created, ...outcome.updated].map(({ write }) => write));
    assert.deepEqual(
      [...mentioned].sort((a, b) => a - b),
      [...outcome.writes.keys()],
    );
    const reported = new Set(
      [...outcome.created, ...outcome.updated, ...outcome.errors].map(({ index }) => index),
    );
    const featureCount = countFeatures(body);
    assert.deepEqual(
      [...reported].sort((a, b) => a - b),
      Array.from({ length: featureCount }, (_, i) => i),
    );
    for (const { index } of outcome.warnings) assert.ok(reported.has(index));
  });
  fc.assert(property, { seed: 20_260_315, numRuns: runs(375) });
  assert.ok(areas > 50, `only ${areas} areas`);
});

function countFeatures(body: unknown): number {
  const { geojson, features } = body as { geojson?: { features?: unknown[] }; features?: unknown[] };
  return (geojson?.features ?? features)?.length ?? 1;
}
