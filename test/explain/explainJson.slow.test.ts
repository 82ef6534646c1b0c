import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { stepJson, stepView } from '../../src/explain/explainJson.ts';
import { DECISIONS } from '../../src/explain/replayFindings.ts';

test('a point is written as JSON.stringify would write it', () => {
  const time = fc.integer({ min: 0, max: 4_102_444_800_000 });
  const step = fc.record({
    recordedAtMs: time,
    receivedAtMs: fc.oneof(time, fc.constant(Number.NaN)),
    late: fc.constantFrom(false, true, null),
    distanceM: fc.double({ noNaN: true, noDefaultInfinity: true }),
    decision: fc.constantFrom(...DECISIONS),
  });
  fc.assert(fc.property(step, (each) => assert.equal(stepJson(each), JSON.stringify(stepView(each)))));
});
