import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { summarize } from '../../src/webhooks/deliverySummary.ts';
import { runs } from '../support/torture.ts';

describe('summarize', () => {
  test('of nothing has no rate and no percentiles', () => {
    assert.deepEqual(summarize({ byStatus: {}, attempts: 0, durations: [] }), {
      total: 0,
      delivered: 0,
      failed: 0,
      exhausted: 0,
      pending: 0,
      successRate: null,
      attempts: 0,
      durationMs: { p50: null, p95: null, p99: null },
    });
  });

  test('counts requeued deliveries as pending, and rates only what is settled', () => {
    const byStatus = { pending: 3, requeued: 4, failed: 5, delivered: 9, exhausted: 3 };
    const summary = summarize({ byStatus, attempts: 41, durations: [{ durationMs: 12, count: 9 }] });
    assert.deepEqual(summary, {
      total: 24,
      delivered: 9,
      failed: 5,
      exhausted: 3,
      pending: 7,
      successRate: 0.75,
      attempts: 41,
      durationMs: { p50: 12, p95: 12, p99: 12 },
    });
  });

  test('has the percentiles of the durations written out one by one', () => {
    const counted = fc.record({ durationMs: fc.nat(50), count: fc.nat(40) });
    fc.assert(
      fc.property(fc.array(counted, { maxLength: 20 }), (durations) => {
        const all = durations
          .flatMap(({ durationMs, count }) => new Array<number>(count).fill(durationMs))
          .sort((a, b) => a - b);
        const { durationMs } = summarize({ byStatus: {}, attempts: 0, durations });
        // PostgreSQL's percentile_disc: the first whose share of the order reaches the fraction.
        const naive = (percent: number) => all.find((_, i) => (i + 1) * 100 >= percent * all.length) ?? null;
        assert.deepEqual(durationMs, { p50: naive(50), p95: naive(95), p99: naive(99) });
      }),
      { seed: 20_260_301, numRuns: runs(75) },
    );
  });
});
