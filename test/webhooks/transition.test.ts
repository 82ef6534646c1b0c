import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { MINUTE_MS } from '../../src/lib/time.ts';
import {
  type AttemptOutcome,
  outcomeOfStatus,
  type RetryPolicy,
  type RetryRule,
  transition,
} from '../../src/webhooks/delivery.ts';

const FIVE: RetryRule = { policy: 'exponential', maxRetries: 5 };
const NONE: RetryRule = { policy: 'none', maxRetries: 5 };

type Row = [outcome: AttemptOutcome, used: number, rule: RetryRule, status: string, minutes: number | null];

const rows: Row[] = [
  ['delivered', 1, FIVE, 'delivered', null],
  ['delivered', 2, FIVE, 'delivered', null],
  ['failed', 1, FIVE, 'failed', 2],
  ['failed', 4, FIVE, 'failed', 16],
  ['failed', 5, FIVE, 'exhausted', null],
  ['failed', 6, FIVE, 'exhausted', null],
  ['failed', 1, NONE, 'exhausted', null],
  ['unsafe', 1, FIVE, 'failed', null],
  ['unsafe', 1, NONE, 'failed', null],
  ['interrupted', 1, FIVE, 'failed', 2],
  ['interrupted', 5, FIVE, 'failed', 0],
  ['interrupted', 14, FIVE, 'failed', 0],
  ['interrupted', 15, FIVE, 'exhausted', null],
  ['interrupted', 1, NONE, 'failed', 0],
  ['interrupted', 11, NONE, 'exhausted', null],
];

/** The gaps in minutes between the attempts of one budget. */
const budgets: [policy: RetryPolicy, maxRetries: number, gaps: number[]][] = [
  ['exponential', 0, []],
  ['exponential', 1, []],
  ['exponential', 2, [2]],
  ['exponential', 5, [2, 4, 8, 16]],
  ['exponential', 10, [2, 4, 8, 16, 32, 64, 128, 256, 512]],
  ['fixed', 0, []],
  ['fixed', 1, []],
  ['fixed', 5, [5, 5, 5, 5]],
  ['none', 0, []],
  ['none', 10, []],
];

describe('a delivery', () => {
  for (const [outcome, used, rule, status, minutes] of rows) {
    const next = minutes === null ? 'nothing follows' : `next in ${minutes} min`;
    test(`${outcome} at attempt ${used} under ${rule.policy} ${rule.maxRetries} is ${status}: ${next}`, () => {
      const nextAttemptDelayMs = minutes === null ? null : minutes * MINUTE_MS;
      assert.deepEqual(transition(outcome, used, rule, MINUTE_MS), { status, nextAttemptDelayMs });
    });
  }

  for (const [policy, maxRetries, gaps] of budgets) {
    test(`${policy} with max_retries ${maxRetries} waits ${gaps.join(', ') || 'for nothing'}`, () => {
      for (const minuteMs of [MINUTE_MS, 8]) {
        const delaysMs = [...gaps.keys(), gaps.length].map(
          (n) => transition('failed', n + 1, { policy, maxRetries }, minuteMs).nextAttemptDelayMs,
        );
        assert.deepEqual(delaysMs, [...gaps.map((gap) => gap * minuteMs), null]);
      }
    });
  }
});

test('only 2xx delivers', () => {
  for (const status of [200, 201, 204, 250, 299]) assert.equal(outcomeOfStatus(status), 'delivered');
  for (const status of [0, 100, 101, 199, 300, 301, 304, 400, 404, 410, 500, 599, 999]) {
    assert.equal(outcomeOfStatus(status), 'failed');
  }
});
