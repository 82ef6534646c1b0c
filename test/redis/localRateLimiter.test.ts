import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { HOUR_MS, MINUTE_MS } from '../../src/lib/time.ts';
import { LocalRateLimiter, type RateLimits } from '../../src/redis/rateLimiter.ts';
import { runs } from '../support/torture.ts';
import { asks } from './pod.ts';
import { RateLimiterModel, SMALL_LIMITS, steps } from './rateLimiterModel.ts';

const SEED = 20_260_304;

test('answers any sequence of calls as the plain model does, over minutes and hours', () => {
  for (const maxLaterMs of [MINUTE_MS, HOUR_MS]) {
    fc.assert(
      fc.property(fc.constantFrom(...SMALL_LIMITS), steps(maxLaterMs), (limits, sequence) => {
        const limiter = new LocalRateLimiter({ limits });
        const model = new RateLimiterModel(limits, MINUTE_MS, HOUR_MS);
        let nowMs = 0;
        for (const { request, laterMs } of sequence) {
          nowMs += laterMs;
          assert.deepEqual(limiter.check(request, nowMs), model.check(request, nowMs));
        }
      }),
      { seed: SEED, numRuns: runs(250) },
    );
  }
});

test('answers at once with shared verdicts, and is never stale', () => {
  const limiter = new LocalRateLimiter({ limits: SMALL_LIMITS[0] as RateLimits });
  const request = asks({ ip: '203.0.113.1', keyId: 1, worldIds: [1], versions: [1] });
  const first = limiter.check(request, 0);
  assert.deepEqual(first, { kind: 'pass' });
  assert.equal(limiter.check(request, 0), first);
});
