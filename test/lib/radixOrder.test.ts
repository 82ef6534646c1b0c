import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { passingNumbers, radixOrder, release } from '../../src/lib/radixOrder.ts';
import { inOneGo } from '../../src/lib/workTurns.ts';

test('a step reads some thousand keys at most, so that others have their turn', () => {
  let read = 0;
  const keyOf = (n: number): number => {
    read++;
    return 100_000 - n;
  };
  for (const _ of radixOrder(100_000, keyOf)) {
    assert.ok(read <= 5_000, `${read} keys`);
    read = 0;
  }
});

test('keys come in their order, and equal ones as they came, however many there are', () => {
  const key = fc.oneof(fc.nat(9), fc.nat(), fc.maxSafeNat());
  const size = fc.constantFrom(0, 1, 40, 3_000, 20_000);
  fc.assert(
    fc.property(size, fc.array(key, { minLength: 1, maxLength: 300 }), fc.nat(), (size, some, step) => {
      // Long lists repeat what there is, mostly with differences between.
      const keys = Float64Array.from({ length: size }, (_, n) => {
        const key = some[n % some.length] as number;
        return n % 3 === 0 ? key : Math.floor(key / 2) + (n % (1 + (step % 1_000)));
      });
      const expected = [...keys.keys()].sort((a, b) => (keys[a] as number) - (keys[b] as number) || a - b);
      assert.deepEqual([...inOneGo(radixOrder(keys.length, (n) => keys[n] as number))], expected);
    }),
    { seed: 5, numRuns: 20 },
  );
});

test('the memory of an order that is released is free at once', () => {
  const order = inOneGo(radixOrder(3_000, (n) => n));
  release(order);
  assert.deepEqual([order.length, order.buffer.byteLength], [0, 0]);
  const before = process.memoryUsage.rss();
  for (let n = 0; n < 20; n++) {
    const passing = passingNumbers(2 ** 22);
    passing.fill(1);
    release(passing);
  }
  assert.ok(process.memoryUsage.rss() - before < 2 ** 26, 'not even four of twenty pieces are left');
});
