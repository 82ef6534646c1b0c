import assert from 'node:assert/strict';
import { test } from 'node:test';
import { profile } from '../../bench/measure/profile.ts';

const CALLS = 200;

/** Takes about as long as a call of the service. */
function digest(seed: number): number {
  let sum = seed;
  for (let n = 0; n < 200_000; n++) sum = (sum * 31 + n) % 1_000_003;
  return sum;
}

test('a profile lists the functions of a call by time, the longest first', async () => {
  const { of, parts } = await profile('a digest', async () => {
    for (let n = 0; n < CALLS; n++) digest(n);
    return CALLS;
  });
  assert.equal(of, 'a digest');
  assert.equal(parts[0]?.part, 'digest, test/bench/profile.slow.test.ts');
  assert.match(parts.at(-1)?.part ?? '', /^\d+ others$/);
  const sizes = parts.slice(0, -1).map(({ us }) => us);
  assert.deepEqual(
    sizes,
    sizes.toSorted((a, b) => b - a),
  );
});
