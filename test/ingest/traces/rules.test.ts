import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RULES } from './rules.ts';
import { TRACES } from './traces.ts';

test('the stories leave no rule without a proof, and each has a name of its own', () => {
  const proven = new Set(TRACES.map((trace) => trace.rule));
  assert.deepEqual(
    Object.values(RULES).filter((rule) => !proven.has(rule)),
    [],
  );
  assert.equal(new Set(TRACES.map((trace) => trace.name)).size, TRACES.length);
});
