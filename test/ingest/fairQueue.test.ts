import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { FairQueue } from '../../src/ingest/waitingPoints.ts';

test('keys take turns, and of each the items come in their order', () => {
  const queue = new FairQueue<string, number>();
  for (let n = 0; n < 5_000; n++) queue.push('large', n);
  queue.push('small', -1);
  queue.push('small', -2);
  assert.deepEqual(
    Array.from({ length: 5 }, () => queue.take()),
    [0, -1, 1, -2, 2],
  );
  assert.deepEqual(
    Array.from({ length: 4_997 }, () => queue.take()),
    Array.from({ length: 4_997 }, (_, n) => n + 3),
  );
  assert.equal(queue.take(), undefined);
});

test('whatever is pushed and taken: the same as with plain lists', () => {
  const step = fc.oneof(fc.integer({ min: 1, max: 4 }), fc.constant('take' as const));
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200, size: 'max' }), (steps) => {
      const queue = new FairQueue<number, number>();
      let lists: [key: number, items: number[]][] = [];
      steps.forEach((each, n) => {
        if (each === 'take') {
          const [first] = lists;
          assert.equal(queue.peek(), first?.[1][0]);
          assert.equal(queue.take(), first?.[1].shift());
          lists = [...lists.slice(1), ...lists.slice(0, 1)].filter(([, items]) => items.length > 0);
        } else {
          queue.push(each, n);
          const list = lists.find(([key]) => key === each);
          if (list === undefined) lists.push([each, [n]]);
          else list[1].push(n);
        }
      });
    }),
    { seed: 5 },
  );
});
