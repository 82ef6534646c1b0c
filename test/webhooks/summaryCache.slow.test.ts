import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Sql } from '../../src/postgres/sql.ts';
import type { DeliveryCounts } from '../../src/webhooks/deliveries.sql.ts';
import { SummaryCache } from '../../src/webhooks/deliverySummary.ts';

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
