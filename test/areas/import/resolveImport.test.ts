import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { lineString, multiPolygon, path, polygon } from '../reads/geojson.ts';
import { coded, collection, errorsOf, FAR_RING, feature, POINT, RING, resolve } from './importing.ts';

describe('a feature with a code updates the area that has it', () => {
  const stored = new Map(
    resolve(
      collection(coded('x', { name: 'Old', color: '#102030', dwell_seconds: 60, radius: 70 })),
    ).writes.map(({ area }) => ['x', area.definition]),
  );

  test('keeping what it does not say', () => {
    const outcome = resolve(
      feature({ type: 'Point', coordinates: [1, 2] }, { external_id: 'x', color: 'red' }),
      stored,
    );
    assert.deepEqual(outcome.created, []);
    assert.deepEqual(outcome.updated, [{ index: 0, externalId: 'x', write: 0 }]);
    assert.deepEqual(
      outcome.writes.map(({ stored, area }) => [stored === null, area.definition]),
      [
        [
          false,
          {
            name: 'Old',
            color: '#102030',
            geometry: { type: 'circle', center: { lat: 2, lng: 1 }, radiusM: 70 },
            externalId: 'x',
            dwellSeconds: 60,
          },
        ],
      ],
    );
  });

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

  test('codes are compared exactly', () => {
    assert.equal(resolve(coded('X'), stored).created.length, 1);
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
