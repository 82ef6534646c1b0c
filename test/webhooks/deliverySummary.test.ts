import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { Sql } from '../../src/postgres/sql.ts';
import type { DeliveryCounts } from '../../src/webhooks/deliveries.sql.ts';
import { SummaryCache, summarize } from '../../src/webhooks/deliverySummary.ts';
import { runs } from '../support/torture.ts';

/** What counts needs none. */
const NO_SQL = null as unknown as Sql;

/** A store that counts when the test says so, and a clock. */
function desk() {
  let nowMs = 1_000;
  let reads = 0;
  const ends: ((outcome: number | Error) => void)[] = [];
  const count = (): Promise<DeliveryCounts> => {
    reads++;
    return new Promise((resolve, reject) => {
      ends.push((outcome) => {
        if (outcome instanceof Error) reject(outcome);
        else resolve({ byStatus: { delivered: outcome }, attempts: outcome, durations: [] });
      });
    });
  };
  const summaries = new SummaryCache(() => nowMs, count);
  return {
    ask: (accountId: number) => summaries.of(NO_SQL, accountId),
    /** The read that is under way finds so many deliveries, or fails. */
    end: (outcome: number | Error) => ends.pop()?.(outcome),
    pass: (ms: number) => {
      nowMs += ms;
    },
    get reads() {
      return reads;
    },
  };
}

describe('summaries of deliveries', () => {
  test('of few are read for every call', async () => {
    const one = desk();
    for (let n = 1; n <= 3; n++) {
      const asked = one.ask(1);
      one.end(9_999);
      assert.equal((await asked).total, 9_999);
      assert.equal(one.reads, n);
    }
  });

  test('of a million are kept for ten seconds, for their account alone', async () => {
    const one = desk();
    const asked = one.ask(1);
    one.end(1_000_000);
    const first = await asked;
    one.pass(9_999);
    assert.equal(await one.ask(1), first);
    assert.equal(one.reads, 1);
    one.ask(2);
    assert.equal(one.reads, 2);
    one.pass(1);
    one.ask(1);
    assert.equal(one.reads, 3);
  });

  test('are read once for all who ask at the same time', async () => {
    const one = desk();
    const asked = Array.from({ length: 60 }, () => one.ask(1));
    one.end(3);
    assert.equal(new Set(await Promise.all(asked)).size, 1);
    assert.equal(one.reads, 1);
  });

  test('that failed are not kept', async () => {
    const one = desk();
    const asked = one.ask(1);
    one.end(new Error('too slow'));
    await assert.rejects(asked, /too slow/);
    one.ask(1);
    assert.equal(one.reads, 2);
  });
});

describe('a summary', () => {
  test('counts requeued deliveries as pending, and rates only what is settled', () => {
    const byStatus = { pending: 3, requeued: 4, failed: 5, delivered: 9, exhausted: 3 };
    const summary = summarize({ byStatus, attempts: 41, durations: [{ durationMs: 12, count: 9 }] });
    assert.deepEqual(summary, {
      window_hours: 24,
      total: 24,
      delivered: 9,
      failed: 5,
      exhausted: 3,
      pending: 7,
      success_rate: 0.75,
      attempts: 41,
      duration_ms: { p50: 12, p95: 12, p99: 12 },
    });
  });

  test('has the percentiles of the durations written out one by one', () => {
    const counted = fc.record({ durationMs: fc.nat(50), count: fc.nat(40) });
    fc.assert(
      fc.property(fc.array(counted, { maxLength: 20 }), (durations) => {
        const all = durations
          .flatMap(({ durationMs, count }) => new Array<number>(count).fill(durationMs))
          .sort((a, b) => a - b);
        const { duration_ms } = summarize({ byStatus: {}, attempts: 0, durations });
        // PostgreSQL's percentile_disc: the first whose share of the order reaches the fraction.
        const naive = (percent: number) => all.find((_, i) => (i + 1) * 100 >= percent * all.length) ?? null;
        assert.deepEqual(duration_ms, { p50: naive(50), p95: naive(95), p99: naive(99) });
      }),
      { seed: 20_260_301, numRuns: runs(75) },
    );
  });
});
