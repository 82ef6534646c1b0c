import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { MINUTE_MS } from '../../src/lib/time.ts';
import {
  type AttemptOutcome,
  DELIVERY_STATUSES,
  type DeliveryStatus,
  nextAttemptDelayMs,
  outcomeOfStatus,
  RETRY_POLICIES,
  type RetryRule,
  type Trigger,
  transition,
} from '../../src/webhooks/delivery/transition.ts';
import { runs } from '../support/torture.ts';

const FIVE: RetryRule = { policy: 'exponential', maxRetries: 5 };
const NONE: RetryRule = { policy: 'none', maxRetries: 5 };

const attempt = (outcome: AttemptOutcome, attemptsUsed: number): Trigger => ({
  kind: 'attempt',
  outcome,
  attemptsUsed,
});
const replay = (inFlight: boolean): Trigger => ({ kind: 'replay', inFlight });

type Row = [DeliveryStatus, Trigger, RetryRule, [DeliveryStatus, minutes: number | null] | null];

const rows: Row[] = [
  ['pending', attempt('delivered', 1), FIVE, ['delivered', null]],
  ['pending', attempt('failed', 1), FIVE, ['failed', 2]],
  ['pending', attempt('interrupted', 1), FIVE, ['failed', 2]],
  ['pending', attempt('unsafe', 1), FIVE, ['failed', null]],
  ['pending', attempt('failed', 1), NONE, ['exhausted', null]],
  ['pending', attempt('interrupted', 1), NONE, ['failed', 0]],
  ['failed', attempt('failed', 2), NONE, ['exhausted', null]],
  ['failed', attempt('interrupted', 10), NONE, ['failed', 0]],
  ['failed', attempt('interrupted', 11), NONE, ['exhausted', null]],
  ['pending', attempt('unsafe', 1), NONE, ['failed', null]],
  ['pending', attempt('failed', 1), { policy: 'exponential', maxRetries: 0 }, ['exhausted', null]],
  ['pending', attempt('failed', 1), { policy: 'fixed', maxRetries: 1 }, ['exhausted', null]],
  ['pending', replay(false), FIVE, null],
  ['pending', replay(true), FIVE, null],
  ['failed', attempt('delivered', 2), FIVE, ['delivered', null]],
  ['failed', attempt('failed', 2), FIVE, ['failed', 4]],
  ['failed', attempt('failed', 4), FIVE, ['failed', 16]],
  ['failed', attempt('failed', 5), FIVE, ['exhausted', null]],
  ['failed', attempt('interrupted', 5), FIVE, ['failed', 0]],
  ['failed', attempt('failed', 6), FIVE, ['exhausted', null]],
  ['failed', attempt('interrupted', 15), FIVE, ['exhausted', null]],
  ['failed', attempt('unsafe', 2), FIVE, ['failed', null]],
  ['failed', attempt('failed', 2), { policy: 'fixed', maxRetries: 3 }, ['failed', 5]],
  ['failed', replay(false), FIVE, ['requeued', 0]],
  ['failed', replay(true), FIVE, null],
  ['requeued', attempt('delivered', 1), FIVE, ['delivered', null]],
  ['requeued', attempt('failed', 1), FIVE, ['failed', 2]],
  ['requeued', attempt('failed', 1), NONE, ['exhausted', null]],
  ['requeued', attempt('unsafe', 1), FIVE, ['failed', null]],
  ['requeued', replay(false), FIVE, null],
  ['exhausted', replay(false), FIVE, ['requeued', 0]],
  ['exhausted', replay(true), FIVE, null],
  ['exhausted', attempt('delivered', 5), FIVE, null],
  ['exhausted', attempt('failed', 5), FIVE, null],
  ['delivered', replay(false), FIVE, null],
  ['delivered', attempt('failed', 1), FIVE, null],
];

describe('a delivery', () => {
  for (const [status, trigger, rule, expected] of rows) {
    const what = trigger.kind === 'replay' ? `replay, in flight ${trigger.inFlight}` : trigger.outcome;
    const spent = trigger.kind === 'attempt' ? ` (attempt ${trigger.attemptsUsed})` : '';
    const goal = expected ? `goes to ${expected[0]}, next in ${expected[1]} min` : 'is not possible';
    test(`${status} + ${what}${spent} under ${rule.policy} ${rule.maxRetries} ${goal}`, () => {
      const next = transition(status, trigger, rule, MINUTE_MS);
      if (expected === null) return assert.equal(next, null);
      const [goalStatus, minutes] = expected;
      assert.deepEqual(next, {
        status: goalStatus,
        nextAttemptDelayMs: minutes === null ? null : minutes * MINUTE_MS,
        freshBudget: trigger.kind === 'replay',
      });
    });
  }

  test('reaches, whatever happens, an attempt only while one is due, and ends within its budget unless attempts are interrupted', () => {
    const outcome = fc.constantFrom<AttemptOutcome>(
      'delivered',
      'failed',
      'failed',
      'failed',
      'unsafe',
      'interrupted',
    );
    const rule = fc.record({ policy: fc.constantFrom(...RETRY_POLICIES), maxRetries: fc.nat(10) });
    fc.assert(
      fc.property(rule, fc.array(outcome, { minLength: 25, maxLength: 25 }), (retries, outcomes) => {
        let status: DeliveryStatus = 'pending';
        let spent = 0;
        for (const each of outcomes) {
          const next = transition(status, attempt(each, ++spent), retries, MINUTE_MS);
          assert.ok(next && DELIVERY_STATUSES.includes(next.status));
          status = next.status;
          if (next.nextAttemptDelayMs === null) break;
          assert.equal(status, 'failed');
          const delayMs = nextAttemptDelayMs(retries, spent, MINUTE_MS);
          assert.equal(next.nextAttemptDelayMs, delayMs ?? 0);
          if (delayMs === null) assert.equal(each, 'interrupted');
        }
        assert.notEqual(status, 'pending');
      }),
      { seed: 20_260_301, numRuns: runs(75) },
    );
  });
});

test('only 2xx delivers', () => {
  for (const status of [200, 201, 204, 250, 299]) assert.equal(outcomeOfStatus(status), 'delivered');
  for (const status of [0, 100, 101, 199, 300, 301, 304, 400, 404, 410, 500, 599, 999]) {
    assert.equal(outcomeOfStatus(status), 'failed');
  }
});
