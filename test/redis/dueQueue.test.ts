import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { DueQueue } from '../../src/redis/wakeUps.ts';
import { runs } from '../support/torture.ts';

test('gives what is due, the longest due first, once; an earlier time that was asked for stands', () => {
  const step = fc.record({ add: fc.boolean(), item: fc.nat(20), at: fc.nat(50), limit: fc.nat(5) });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 300 }), (steps) => {
      const queue = new DueQueue<number>();
      const model = new Map<number, number>();
      for (const { add, item, at, limit } of steps) {
        if (add) {
          queue.add(item, at);
          model.set(item, Math.min(at, model.get(item) ?? at));
          continue;
        }
        const taken = queue.take(at, limit);
        const due = [...model].filter(([, dueAt]) => dueAt <= at);
        assert.equal(taken.length, Math.min(limit, due.length));
        const times = taken.map((each) => model.get(each));
        assert.deepEqual(
          times,
          due
            .map(([, dueAt]) => dueAt)
            .sort((a, b) => a - b)
            .slice(0, limit),
        );
        for (const each of taken) model.delete(each);
      }
    }),
    { seed: 1, numRuns: runs(75) },
  );
});

test('an item that is asked for again and again is kept once', () => {
  const queue = new DueQueue<number>();
  for (let round = 0; round < 10_000; round++) {
    queue.add(1, 1_000_000);
    queue.add(1, round);
    assert.deepEqual(queue.take(round, 10), [1]);
  }
  queue.add(2, 5);
  queue.add(1, 1_000_000);
  assert.deepEqual(queue.take(1_000_000, 10), [2, 1]);
  assert.deepEqual(queue.take(2_000_000, 10), []);
});
