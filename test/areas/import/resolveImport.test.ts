import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  collection,
  FAR_RING,
  lineString,
  multiPoint,
  multiPolygon,
  POINT,
  POLYGON,
  path,
  polygon,
  RING,
} from '../reads/geojson.ts';
import { coded, feature, NO_QUOTA, resolve } from './importing.ts';

/** What `resolve` makes of features: `created 0 1; updated 2; 3 REQUIRED; new A 0, old B 5`, the areas with their dwell. */
function told(features: readonly object[], stored: Parameters<typeof resolve>[1], quota = NO_QUOTA): string {
  const { created, updated, errors, writes } = resolve(collection(...features), stored, quota);
  const indexes = (made: readonly { index: number }[]) => made.map(({ index }) => index).join(' ');
  return [
    created.length > 0 && `created ${indexes(created)}`,
    updated.length > 0 && `updated ${indexes(updated)}`,
    ...errors.map(({ index, code }) => `${index} ${code}`),
    writes
      .map(({ stored, area: { definition } }) => {
        return `${stored === null ? 'new' : 'old'} ${definition.name} ${definition.dwellSeconds}`;
      })
      .join(', '),
  ]
    .filter(Boolean)
    .join('; ');
}

/** The area that a feature makes, as it is stored under this external id. */
const stored = (id: string, properties: object = {}, geometry: object = POINT) => {
  const [write] = resolve(coded(id, properties, geometry)).writes;
  assert.ok(write);
  return [id, write.area.definition] as const;
};

describe('a feature with a code updates the area that has it', () => {
  const known = new Map([stored('x', { name: 'Old', dwell_seconds: 60, radius: 70 })]);
  const rows: [title: string, features: object[], expected: string][] = [
    [
      'or says what is wrong with it',
      [coded('x', { radius: 1 }), coded('y')],
      'created 1; 0 OUT_OF_RANGE; new A 0',
    ],
    [
      'a code twice in one call: the second changes what the first made',
      [coded('n', { dwell_seconds: 5 }), feature(POINT), coded('n', { name: 'B' })],
      'created 0 1; updated 2; new B 5, new A 0',
    ],
    [
      'a stored code twice: updated twice, written once',
      [coded('x', { name: 'B' }), coded('x', { dwell_seconds: 7, name: null })],
      'updated 0 1; old B 7',
    ],
    [
      'a first that fails leaves the code to the second',
      [coded('n', { dwell_seconds: -1 }), coded('n')],
      'created 1; 0 OUT_OF_RANGE; new A 0',
    ],
    [
      'a second that fails leaves what the first made',
      [coded('n'), coded('n', { radius: 1 })],
      'created 0; 1 OUT_OF_RANGE; new A 0',
    ],
  ];
  for (const [title, features, expected] of rows)
    test(title, () => assert.equal(told(features, known), expected));
});

describe('import warns of what was left out in reading', () => {
  const holed = polygon(RING, RING);
  const rows: readonly (readonly [title: string, feature: object, ...codes: string[]])[] = [
    ['a hole', feature(holed), 'warnHolesIgnored'],
    ['coinciding vertices', feature(lineString([1, 2], [1, 2], [3, 4])), 'warnSimplifiedDuplicates'],
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
      const expected = codes.map((code) => ({ index: 1, code }));
      assert.deepEqual(warnings, expected);
    });
  }
});

describe('an import into a quota', () => {
  const twoAreas = { ...NO_QUOTA, maxAreas: 2 };
  /** The rings of these tests have four vertices each. */
  const twoRings = { ...NO_QUOTA, maxVertices: 8 };
  const named = (name: string, geometry: object = POINT) => feature(geometry, { name });
  const ring = polygon(FAR_RING);
  const many = multiPoint([1, 0], [2, 0], [3, 0], [4, 0], [5, 0]);
  const grown = new Map([stored('grows'), stored('shrinks', {}, POLYGON)]);
  const rows: [title: string, features: object[], quota: typeof NO_QUOTA, expected: string][] = [
    [
      'creates in order what fits',
      [named('A'), named('B'), named('C')],
      twoAreas,
      'created 0 1; 2 LIMIT_REACHED; new A 0, new B 0',
    ],
    [
      'goes on with what still fits after something that does not',
      [named('A', POLYGON), named('B', ring), named('C', POLYGON), named('D')],
      twoRings,
      'created 0 1 3; 2 LIMIT_REACHED; new A 0, new B 0, new D 0',
    ],
    [
      'reports each feature once, however many of its parts are left out',
      [named('A', many), named('B')],
      twoAreas,
      'created 0 0; 0 LIMIT_REACHED; 1 LIMIT_REACHED; new A (1) 0, new A (2) 0',
    ],
    [
      'counts an update by what it adds, and gives the next ones what it freed',
      [coded('grows', {}, POLYGON), coded('shrinks'), coded('grows', {}, POLYGON)],
      { areas: 2, vertices: 8, maxAreas: 2, maxVertices: 8 },
      'updated 1 2; 0 LIMIT_REACHED; old A 0, old A 0',
    ],
    [
      'leaves a code that it refused free for a later feature that fits',
      [coded('x', {}, POLYGON), coded('x')],
      { ...NO_QUOTA, maxVertices: 3 },
      'created 1; 0 LIMIT_REACHED; new A 0',
    ],
  ];
  for (const [title, features, quota, expected] of rows)
    test(title, () => assert.equal(told(features, grown, quota), expected));
});
