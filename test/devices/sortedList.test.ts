import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { mergedPage, SortedList } from '../../src/devices/sortedList.ts';
import { seededRandom } from '../support/seededRandom.ts';
import { runs } from '../support/torture.ts';

interface Item {
  readonly key: string;
  readonly value: number;
}

const keyOf = (item: Item): string => item.key;
const sorted = (items: Iterable<Item>): Item[] => [...items].sort((a, b) => (a.key < b.key ? -1 : 1));

/** A list and the same items in a plain map. */
function filled(keys: Iterable<string>): { list: SortedList<Item, string>; map: Map<string, Item> } {
  const list = new SortedList<Item, string>(keyOf);
  const map = new Map<string, Item>();
  let value = 0;
  for (const key of keys) {
    const item = { key, value: value++ };
    list.put(item);
    map.set(key, item);
  }
  return { list, map };
}

/** Every question the list answers, against the plain items. */
function assertEqual(list: SortedList<Item, string>, map: ReadonlyMap<string, Item>): void {
  const expected = sorted(map.values());
  assert.equal(list.size, expected.length);
  assert.deepEqual(list.slice(0, expected.length + 1), expected);
  for (const n of [-1, 0, 1, expected.length >> 1, expected.length - 1, expected.length]) {
    assert.equal(list.at(n), expected[n], `at(${n})`);
    if (n >= 0) assert.deepEqual(list.slice(n, 3), expected.slice(n, n + 3), `slice(${n}, 3)`);
  }
  for (const key of ['', '~', ...[0, 1, 7].map((n) => expected[n]?.key ?? 'x')]) {
    assert.equal(list.rank(key), expected.filter((item) => item.key < key).length, `rank(${key})`);
    assert.equal(list.rank(`${key}!`), expected.filter((item) => item.key < `${key}!`).length);
  }
}

describe('a sorted list', () => {
  test('sorts numbers as numbers', () => {
    const list = new SortedList<number, number>((value) => value);
    for (const value of [10, 9, 100, 1]) list.put(value);
    assert.deepEqual(list.slice(0, 9), [1, 9, 10, 100]);
  });

  for (const [name, order] of [
    ['ascending', (n: number) => n],
    ['descending', (n: number) => 4_999 - n],
    ['mixed', (n: number) => (n * 2_311) % 5_000],
  ] as const) {
    test(`of 5 000 values inserted in ${name} order, half of them removed again, keeps order, rank and size`, () => {
      const keys = Array.from({ length: 5_000 }, (_, n) => String(order(n)).padStart(5, '0'));
      const { list, map } = filled(keys);
      assertEqual(list, map);
      for (const key of keys.filter((_, n) => n % 2 === 0 || n < 1_500)) {
        assert.equal(list.remove(key), true);
        map.delete(key);
      }
      assertEqual(list, map);
      for (const key of map.keys()) list.remove(key);
      assertEqual(list, new Map());
    });
  }

  test('agrees with a sorted array after any puts and removals', () => {
    const step = fc.record({ put: fc.boolean(), key: fc.string({ maxLength: 2 }) });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60, size: 'max' }), (steps) => {
        const { list, map } = filled([]);
        for (const [value, { put, key }] of steps.entries()) {
          if (put) {
            const item = { key, value };
            list.put(item);
            map.set(key, item);
          } else {
            assert.equal(list.remove(key), map.delete(key));
          }
        }
        assertEqual(list, map);
      }),
      { seed: 2, numRuns: runs(50) },
    );
  });
});

describe('a page of two lists merged', () => {
  const page = (a: readonly string[], b: readonly string[], offset: number, limit: number): string[] =>
    mergedPage([filled(a).list, filled(b).list], offset, limit).map(keyOf);

  test('is the slice of both sorted together', () => {
    const keys = fc.uniqueArray(fc.string({ maxLength: 3 }), { maxLength: 60, size: 'max' });
    fc.assert(
      fc.property(keys, fc.nat(), fc.nat({ max: 70 }), fc.nat({ max: 70 }), (all, mask, offset, limit) => {
        const a = all.filter((_, n) => (mask >> (n % 30)) & 1);
        const b = all.filter((key) => !a.includes(key));
        const expected = all.toSorted((x, y) => (x < y ? -1 : 1)).slice(offset, offset + limit);
        assert.deepEqual(page(a, b, offset, limit), expected);
      }),
      { seed: 2, numRuns: runs(125) },
    );
  });

  test('is right at every offset of two lists with many blocks', () => {
    const random = seededRandom(7);
    const all = Array.from({ length: 6_000 }, (_, n) => String(n).padStart(5, '0'));
    // Long runs from one list, so that blocks of the two do not simply alternate.
    let inA = true;
    const a: string[] = [];
    const b: string[] = [];
    for (const key of all) {
      if (random() < 0.003) inA = !inA;
      (inA ? a : b).push(key);
    }
    const lists = [filled(a).list, filled(b).list];
    for (let offset = 0; offset <= 6_100; offset += 97) {
      const got = mergedPage(lists, offset, 50).map(keyOf);
      assert.deepEqual(got, all.slice(offset, offset + 50), `offset ${offset}`);
    }
    assert.deepEqual(mergedPage(lists, Number.MAX_SAFE_INTEGER, 50), []);
  });
});
