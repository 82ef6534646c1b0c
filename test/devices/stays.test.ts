import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { decodeStays, encodeStays, NO_STAYS, type Stay } from '../../src/devices/stays/stays.ts';
import { InvariantError } from '../../src/lib/invariant.ts';
import { runs } from '../support/torture.ts';

const timeMs = fc.integer({ min: 0, max: 4_000_000_000_000 });
const stays: fc.Arbitrary<Stay[]> = fc
  .uniqueArray(
    fc.maxSafeNat().map((n) => Math.max(n, 1)),
    { maxLength: 8 },
  )
  .chain((ids) => {
    const ordered = ids.toSorted((a, b) => a - b);
    const one = fc.record({ insideSinceMs: timeMs, confirmedAtMs: fc.option(timeMs) });
    return fc
      .array(one, { minLength: ids.length, maxLength: ids.length })
      .map((times) => times.map((time, n) => ({ areaId: ordered[n] ?? 0, ...time })));
  });

describe('stays', () => {
  test('come back as they were stored, as text and parsed', () => {
    fc.assert(
      fc.property(stays, (list) => {
        const text = encodeStays(list);
        assert.deepEqual(decodeStays(text), list);
        assert.deepEqual(decodeStays(JSON.parse(text)), list);
      }),
      { seed: 1, numRuns: runs(50) },
    );
  });

  test('are short', () => {
    const list = [
      { areaId: 7, insideSinceMs: 1_773_489_600_000, confirmedAtMs: null },
      { areaId: 9, insideSinceMs: 1_773_489_600_000, confirmedAtMs: 1_773_489_660_000 },
    ];
    assert.equal(encodeStays(list), '[[7,1773489600000,null],[9,1773489600000,1773489660000]]');
    assert.equal(encodeStays([]), '[]');
    assert.equal(decodeStays('[]'), NO_STAYS);
  });

  const broken: readonly (readonly [title: string, stored: unknown])[] = [
    ['an object', {}],
    ['nothing', null],
    ['a stay that is no list', [7]],
    ['a stay of two values', [[7, 1]]],
    ['an area that is no number', [['7', 1, null]]],
    [
      'an area twice',
      [
        [7, 1, null],
        [7, 2, null],
      ],
    ],
    [
      'areas out of order',
      [
        [7, 1, null],
        [6, 2, null],
      ],
    ],
    ['no beginning', [[7, null, null]]],
    ['a confirmation that is no time', [[7, 1, true]]],
  ];
  for (const [title, stored] of broken) {
    test(`are not read from ${title}`, () => {
      assert.throws(() => decodeStays(stored), InvariantError);
      assert.throws(() => decodeStays(JSON.stringify(stored)), InvariantError);
    });
  }
});
