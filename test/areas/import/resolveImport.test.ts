import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { AreaQuota } from '../../../src/areas/areas.sql.ts';
import { lineString, multiPolygon, path, polygon } from '../reads/geojson.ts';
import {
  coded,
  collection,
  errorsOf,
  FAR_RING,
  feature,
  namesOf,
  POINT,
  POLYGON,
  RING,
  resolve,
} from './importing.ts';

describe('a feature with a code updates the area that has it', () => {
  const stored = new Map(
    resolve(
      collection(coded('x', { name: 'Old', color: '#102030', dwell_seconds: 60, radius: 70 })),
    ).writes.map(({ area }) => ['x', area.definition]),
  );

  test('or says what is wrong with it', () => {
    const outcome = resolve(collection(coded('x', { radius: 1 }), coded('y')), stored);
    assert.deepEqual(errorsOf(outcome), ['0 OUT_OF_RANGE']);
    assert.deepEqual([outcome.created, outcome.updated], [[{ index: 1, write: 0 }], []]);
  });

  test('a code twice in one call: the second changes what the first made', () => {
    const outcome = resolve(
      collection(coded('n', { dwell_seconds: 5 }), feature(POINT), coded('n', { name: 'B' })),
      stored,
    );
    assert.deepEqual(outcome.created, [
      { index: 0, write: 0 },
      { index: 1, write: 1 },
    ]);
    assert.deepEqual(outcome.updated, [{ index: 2, externalId: 'n', write: 0 }]);
    assert.deepEqual(
      outcome.writes.map(({ stored, area: { definition } }) => [
        stored === null,
        definition.name,
        definition.dwellSeconds,
      ]),
      [
        [true, 'B', 5],
        [true, 'A', 0],
      ],
    );
  });

  test('a stored code twice: updated twice, written once', () => {
    const outcome = resolve(
      collection(coded('x', { name: 'B' }), coded('x', { dwell_seconds: 7, name: null })),
      stored,
    );
    assert.deepEqual(outcome.created, []);
    assert.deepEqual(
      outcome.updated.map(({ index, write }) => [index, write]),
      [
        [0, 0],
        [1, 0],
      ],
    );
    assert.deepEqual(
      outcome.writes.map(({ stored, area: { definition } }) => [
        stored === null,
        definition.name,
        definition.dwellSeconds,
      ]),
      [[false, 'B', 7]],
    );
  });

  test('a first that fails leaves the code to the second', () => {
    const outcome = resolve(collection(coded('n', { dwell_seconds: -1 }), coded('n')), stored);
    assert.deepEqual(errorsOf(outcome), ['0 OUT_OF_RANGE']);
    assert.deepEqual(outcome.created, [{ index: 1, write: 0 }]);
  });

  test('a second that fails leaves what the first made', () => {
    const outcome = resolve(collection(coded('n'), coded('n', { radius: 1 })), stored);
    assert.deepEqual(errorsOf(outcome), ['1 OUT_OF_RANGE']);
    assert.deepEqual([outcome.created.length, outcome.updated.length, outcome.writes.length], [1, 0, 1]);
  });
});

describe('import warns of what was left out in reading', () => {
  const twice = lineString([1, 2], [1, 2], [3, 4]);
  const holed = polygon(RING, RING);
  const rows: readonly (readonly [title: string, feature: object, ...codes: string[]])[] = [
    ['a hole', feature(holed), 'warnHolesIgnored'],
    ['coinciding vertices', feature(twice), 'warnSimplifiedDuplicates'],
    [
      'holes of several parts, once',
      feature(multiPolygon(holed.coordinates, [FAR_RING, []])),
      'warnHolesIgnored',
    ],
    ['with a code too', coded('x', {}, holed), 'warnHolesIgnored'],
    ['nothing about a feature that makes no area', feature(holed, {})],
    ['nothing about the size', feature(polygon(path([0, 0], [0, 1e-5], [1e-5, 0], [0, 0])))],
  ];
  for (const [title, body, ...codes] of rows) {
    test(title, () => {
      const { warnings } = resolve(collection(feature(POINT), body));
      assert.deepEqual(
        warnings,
        codes.map((code) => ({ index: 1, code })),
      );
    });
  }
});

const AREAS_ONLY: AreaQuota = { areas: 0, vertices: 0, maxAreas: 2, maxVertices: Infinity };
/** The rings of these tests have four vertices each. */
const VERTICES_ONLY: AreaQuota = { areas: 0, vertices: 0, maxAreas: Infinity, maxVertices: 8 };
const RINGS = { ...POLYGON, coordinates: [FAR_RING] };
const named = (name: string, geometry: object = POINT) => feature(geometry, { name });
const stored = (name: string, geometry: object = POLYGON) => {
  const [write] = resolve(named(name, geometry)).writes;
  assert.ok(write);
  return { ...write.area.definition, externalId: name };
};

describe('an import into a quota', () => {
  test('creates in order what fits', () => {
    const outcome = resolve(collection(named('A'), named('B'), named('C')), undefined, AREAS_ONLY);
    assert.deepEqual(namesOf(outcome), ['A', 'B']);
    assert.deepEqual(errorsOf(outcome), ['2 LIMIT_REACHED']);
  });

  test('goes on with what still fits after something that does not', () => {
    const body = collection(named('A', POLYGON), named('B', RINGS), named('C', POLYGON), named('D'));
    const outcome = resolve(body, undefined, VERTICES_ONLY);
    assert.deepEqual(namesOf(outcome), ['A', 'B', 'D']);
    assert.deepEqual(errorsOf(outcome), ['2 LIMIT_REACHED']);
  });

  test('reports each feature once, however many of its parts are left out', () => {
    const many = { type: 'MultiPoint', coordinates: [1, 2, 3, 4, 5].map((n) => [n, 0]) };
    const outcome = resolve(collection(named('A', many), named('B')), undefined, AREAS_ONLY);
    assert.equal(outcome.writes.length, 2);
    assert.deepEqual(errorsOf(outcome), ['0 LIMIT_REACHED', '1 LIMIT_REACHED']);
  });

  test('counts an update by what it adds, and gives the next ones what it freed', () => {
    const known = new Map([
      ['grows', stored('grows', POINT)],
      ['shrinks', stored('shrinks')],
    ]);
    const full = { ...VERTICES_ONLY, areas: 2, vertices: 8, maxAreas: 2 };
    const body = collection(
      coded('grows', {}, POLYGON),
      coded('shrinks', {}, POINT),
      coded('grows', {}, POLYGON),
    );
    const outcome = resolve(body, known, full);
    assert.deepEqual(errorsOf(outcome), ['0 LIMIT_REACHED']);
    assert.deepEqual(
      outcome.updated.map(({ index }) => index),
      [1, 2],
    );
  });

  test('what is refused leaves a code free for a later feature that fits', () => {
    const body = collection(coded('x', {}, POLYGON), coded('x', {}, POINT));
    const outcome = resolve(body, undefined, { ...VERTICES_ONLY, maxVertices: 3 });
    assert.deepEqual(
      outcome.created.map(({ index }) => index),
      [1],
    );
  });
});
