import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { IdSet } from '../../src/lib/idSet.ts';
import { runs } from '../support/torture.ts';

const anyId = fc.oneof(
  fc.integer({ min: 0, max: 2_000 }),
  fc.integer({ min: 2 ** 32 - 300, max: 2 ** 32 + 300 }),
  fc.maxSafeInteger().map((n) => Math.abs(n) % (2 ** 40 - 256)),
);

test('a set of ids holds what any set holds', () => {
  const anySteps = fc.array(fc.record({ id: anyId, isAdded: fc.boolean() }), {
    minLength: 1,
    maxLength: 2_000,
    size: 'max',
  });
  fc.assert(
    fc.property(anySteps, (steps) => {
      const [found, expected] = [new IdSet(), new Set<number>()];
      for (const { id, isAdded } of steps) {
        assert.equal(found.has(id), expected.has(id));
        const isChanged = isAdded ? !expected.has(id) : expected.has(id);
        assert.equal(isAdded ? found.add(id) : found.delete(id), isChanged);
        if (isAdded) expected.add(id);
        else expected.delete(id);
        assert.equal(found.has(id), isAdded);
        assert.equal(found.size, expected.size);
      }
      for (const { id } of steps) assert.equal(found.has(id), expected.has(id));
    }),
    { seed: 3, numRuns: runs(30) },
  );
});

test('takes less than a byte for each of many that lie together, and 96 for one that lies alone', () => {
  const [dense, sparse] = [new IdSet(), new IdSet()];
  for (let n = 0; n < 100_000; n++) dense.add(n);
  for (let n = 0; n < 1_000; n++) sparse.add(n * 10_007);
  assert.ok(dense.bytes < 100_000, `${dense.bytes}`);
  assert.ok(sparse.bytes <= 96 * 1_000, `${sparse.bytes}`);
});
