import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import {
  decodeStays,
  encodePackedStays,
  encodeStays,
  joinStays,
  NO_PACKED_STAYS,
  NO_STAYS,
  type PackedStays,
  packStays,
  packStoredStays,
  type Stay,
  StayReader,
  StoredStaysReader,
  stayCount,
} from '../../src/devices/stays/packedStays.ts';
import { InvariantError } from '../../src/lib/errors.ts';
import { runs } from '../support/torture.ts';

const timeMs = fc.oneof(
  fc.integer({ min: -5_000, max: 5_000 }),
  fc.integer({ min: 1_700_000_000_000, max: 1_700_000_000_300 }),
  fc.integer({ min: -8_640_000_000_000_000, max: 8_640_000_000_000_000 }).map((ms) => Math.floor(ms / 10)),
);
const areaId = fc.oneof(
  fc.integer({ min: 1, max: 300 }),
  fc.maxSafeNat().map((n) => Math.max(1, n)),
);
const stays: fc.Arbitrary<Stay[]> = fc
  .uniqueArray(
    fc.record({ areaId, insideSinceMs: timeMs, confirmedAtMs: fc.option(timeMs) }, { noNullPrototype: true }),
    {
      selector: (stay) => stay.areaId,
      maxLength: 90,
    },
  )
  .map((list) => list.sort((a, b) => a.areaId - b.areaId));

const unpacked = (packed: PackedStays): Stay[] => {
  const reader = new StayReader().open(packed);
  return Array.from({ length: reader.count }, (_, n) => reader.stay(n));
};

describe('stays', () => {
  test('are those that were packed, from a list and from what is stored', () => {
    fc.assert(
      fc.property(stays, (list) => {
        const packed = packStays(list);
        assert.deepEqual(unpacked(packed), list);
        assert.equal(stayCount(packed), list.length);
        assert.equal(encodePackedStays(packed), encodeStays(list));
        const stored = encodeStays(list);
        assert.equal(packStoredStays(stored), packed);
        assert.deepEqual(decodeStays(stored), list);
        assert.deepEqual(decodeStays(JSON.parse(stored)), list);
      }),
      { seed: 1, numRuns: runs(200) },
    );
  });

  test('are found by area, or the next one', () => {
    fc.assert(
      fc.property(stays, areaId, (list, id) => {
        const reader = new StayReader().open(packStays(list));
        const expected = list.findIndex((stay) => stay.areaId >= id);
        assert.equal(reader.indexOf(id), expected === -1 ? list.length : expected);
        list.forEach((stay, n) => {
          assert.equal(reader.indexOf(stay.areaId), n);
          assert.equal(reader.isPending(n), stay.confirmedAtMs === null);
        });
      }),
      { seed: 2, numRuns: runs(100) },
    );
  });

  test('are joined at an area', () => {
    fc.assert(
      fc.property(stays, stays, areaId, (head, tail, id) => {
        const [a, b] = [head, tail].map((list) => new StayReader().open(packStays(list))) as [
          StayReader,
          StayReader,
        ];
        assert.deepEqual(unpacked(joinStays(a, b, id)), [
          ...head.filter((stay) => stay.areaId < id),
          ...tail.filter((stay) => stay.areaId >= id),
        ]);
      }),
      { seed: 3, numRuns: runs(100) },
    );
  });

  test('of many devices are read one by one, also where some have none', () => {
    fc.assert(
      fc.property(fc.array(fc.option(stays), { maxLength: 9 }), (lists) => {
        const entries = lists.flatMap((list, n) => (list === null ? [] : [`[${n},${encodeStays(list)}]`]));
        const reader = new StoredStaysReader(`[${entries.join(',')}]`);
        const read = lists.map((_, n) => reader.take(n));
        assert.deepEqual(
          read,
          lists.map((list) => (list === null ? null : packStays(list))),
        );
      }),
      { seed: 4, numRuns: runs(50) },
    );
  });

  test('take few bytes: those of an import around a parked vehicle, and any of one day', () => {
    const bytesOf = (stayOf: (n: number) => Stay): number =>
      packStays(Array.from({ length: 1_000 }, (_, n) => stayOf(n))).length / 1_000;
    const sinceMs = 1_773_489_600_123;
    const parked = bytesOf((n) => ({ areaId: 70_000 + n, insideSinceMs: sinceMs, confirmedAtMs: sinceMs }));
    const anyTime = bytesOf((n) => {
      const insideSinceMs = sinceMs + ((n * 7_919_777) % 86_400_000);
      return {
        areaId: 5 + 17 * n,
        insideSinceMs,
        confirmedAtMs: insideSinceMs + ((n * 977_777) % 3_600_000),
      };
    });
    assert.ok(parked <= 3.1 && anyTime <= 9.1, `${parked} and ${anyTime}`);
    assert.equal(packStays([]), NO_PACKED_STAYS);
    assert.equal(packStoredStays('[]'), NO_PACKED_STAYS);
    assert.equal(decodeStays(encodeStays([])), NO_STAYS);
  });

  for (const stored of [
    '',
    '{}',
    'null',
    '[7]',
    '[[7,1]]',
    '[["7",1,null]]',
    '[[7,1,null],[7,2,null]]',
    '[[7,1,null],[6,2,null]]',
    '[[7,null,null]]',
    '[[7,1,true]]',
    '[[7,1.5,null]]',
    '[[7,1,null]',
    '[[7,99999999999999999,null]]',
  ]) {
    test(`are not read from ${stored === '' ? 'nothing' : stored}`, () => {
      assert.throws(() => packStoredStays(stored), InvariantError);
      assert.throws(() => decodeStays(stored));
      assert.deepEqual(unpacked(packStoredStays('[[1,2,3]]')).length, 1, 'nothing is left of it');
    });
  }
});
