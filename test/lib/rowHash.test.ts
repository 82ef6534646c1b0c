import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { RowHash } from '../../src/lib/rows.ts';
import { inOneGo } from '../../src/lib/workTurns.ts';
import { seededRandom } from '../support/seededRandom.ts';

test('rows are found by their keys as in a map, whatever comes and goes', () => {
  const step = fc.tuple(fc.constantFrom('put', 'put', 'remove'), fc.nat(400), fc.nat(2));
  fc.assert(
    fc.property(
      fc.array(step, { maxLength: 900, size: 'max' }),
      fc.constantFrom(1, 4_096, 2 ** 40),
      (steps, apart) => {
        // Keys that are far apart in the upper or the lower bits, some of them in the tail only.
        const heads: number[] = [0];
        const tails: number[] = [0];
        const hash = new RowHash(
          { keyHead: (row) => heads[row] as number, keyTail: (row) => tails[row] as number },
          0,
        );
        const model = new Map<string, number>();
        for (const [kind, n, tail] of steps) {
          const head = n * apart;
          const name = `${head} ${tail}`;
          const present = model.get(name) ?? 0;
          if (kind === 'put') {
            const row = heads.push(head) - 1;
            tails.push(tail);
            assert.equal(hash.put(row), present);
            model.set(name, row);
          } else if (present !== 0) {
            hash.remove(present);
            model.delete(name);
          }
        }
        for (let row = 1; row < heads.length; row++) {
          const [head, tail] = [heads[row] as number, tails[row] as number];
          assert.equal(hash.find(head, tail), model.get(`${head} ${tail}`) ?? 0);
          // It is another one by now, or none.
          if (model.get(`${head} ${tail}`) !== row) hash.remove(row);
        }
        for (const [name, row] of model) {
          const [head = 0, tail = 0] = name.split(' ').map(Number);
          assert.equal(hash.find(head, tail), row);
        }
      },
    ),
    { seed: 8, numRuns: 60 },
  );
});

test('hundreds of thousands of ids in a row and IMEIs of one maker are found', () => {
  const random = seededRandom(3);
  for (const [first, apart] of [
    [1, 1],
    [350_000_000_000_000, 10],
  ] as const) {
    const hash = new RowHash({ keyHead: (row) => first + row * apart, keyTail: () => 0 }, 0);
    for (let row = 1; row <= 50_000; row++) hash.put(row);
    const others = Array.from({ length: 150_000 }, (_, n) => 50_001 + n);
    if (apart > 1) inOneGo(hash.fill(others));
    else for (const row of others) hash.put(row);
    for (let row = 1; row <= 200_000; row += 3) hash.remove(row);
    for (let n = 0; n < 20_000; n++) {
      const row = 1 + Math.floor(random() * 200_000);
      assert.equal(hash.find(first + row * apart, 0), row % 3 === 1 ? 0 : row);
    }
  }
});
