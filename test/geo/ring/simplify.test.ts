import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { openRing, simplify } from '../../../src/geo/path.ts';
import { parsePoints } from '../shapes.ts';

/** Latitudes in units of about 1.1 cm, on the equator. */
const chain = (...centimetres: number[]) => centimetres.map((n) => ({ lat: n * 1e-7, lng: 0 }));

const cases: readonly (readonly [name: string, points: string, closed: boolean, kept: string])[] = [
  ['points far apart stay', '0 0, 1 0, 1 1', true, '0 0, 1 0, 1 1'],
  ['equal neighbours become one', '0 0, 0 0, 1 0, 1 0, 1 0, 1 1', true, '0 0, 1 0, 1 1'],
  ['equal points apart from each other stay', '0 0, 1 0, 0 0, 1 1', true, '0 0, 1 0, 0 0, 1 1'],
  [
    'the end of a ring that comes back to its start goes',
    '0 0, 1 0, 1 1, 0.0000001 0, 0 0',
    true,
    '0 0, 1 0, 1 1',
  ],
  [
    'the end of a track that comes back to its start stays',
    '0 0, 1 0, 1 1, 0 0',
    false,
    '0 0, 1 0, 1 1, 0 0',
  ],
  ['one meridian under two names is one', '180 5, -180 5, -179 5', false, '180 5, -179 5'],
  [
    'close to each other over the antimeridian',
    '179.9999999 5, -179.9999999 5, 0 5',
    false,
    '179.9999999 5, 0 5',
  ],
  [
    'a pole under several longitudes stays',
    '0 60, 0 90, 90 90, 90 90, 180 90, -180 90, 90 60',
    true,
    '0 60, 0 90, 90 90, 180 90, -180 90, 90 60',
  ],
  [
    'meridians are close to each other next to a pole',
    '0 89.9999999, 90 89.9999999, 90 60',
    false,
    '0 89.9999999, 90 60',
  ],
  ['all in one place', '5 5, 5 5, 5 5', true, '5 5'],
  ['nothing', '5 5', true, '5 5'],
];

describe('simplify', () => {
  for (const [name, points, closed, kept] of cases) {
    test(`simplify: ${name}`, () => {
      assert.deepEqual(simplify(parsePoints(points), closed), parsePoints(kept));
    });
  }

  test('drops below 0.1 m only', () => {
    assert.equal(simplify(chain(0, 8.9), false).length, 1);
    assert.equal(simplify(chain(0, 9.1), false).length, 2);
  });

  test('measures from the point that was kept, so a slow crawl is thinned and not lost', () => {
    assert.deepEqual(simplify(chain(0, 4, 8, 12, 16, 20), false), chain(0, 12));
    assert.deepEqual(simplify(chain(0, 5, 10, 15, 20, 25), false), chain(0, 10, 20));
  });
});

describe('openRing', () => {
  test('takes the closing repetition off, once', () => {
    assert.deepEqual(openRing(parsePoints('0 0, 1 0, 1 1, 0 0')), parsePoints('0 0, 1 0, 1 1'));
    assert.deepEqual(openRing(parsePoints('0 0, 1 0, 0 0, 0 0')), parsePoints('0 0, 1 0, 0 0'));
  });

  test('leaves an open ring alone', () => {
    assert.deepEqual(openRing(parsePoints('0 0, 1 0, 1 1')), parsePoints('0 0, 1 0, 1 1'));
    assert.deepEqual(openRing(parsePoints('0 0')), parsePoints('0 0'));
    assert.deepEqual(openRing([]), []);
  });
});
