import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { nextAttemptDelayMs, type RetryPolicy } from '../../src/webhooks/delivery/transition.ts';

/** The gaps in minutes between the attempts of one budget. */
function gaps(policy: RetryPolicy, maxRetries: number, minuteMs: number): number[] {
  const minutes: number[] = [];
  for (let spent = 1; spent <= 20; spent++) {
    const delayMs = nextAttemptDelayMs({ policy, maxRetries }, spent, minuteMs);
    if (delayMs === null) return minutes;
    minutes.push(delayMs / minuteMs);
  }
  return assert.fail('a budget ends');
}

const rows: [RetryPolicy, number, number[]][] = [
  ['exponential', 0, []],
  ['exponential', 1, []],
  ['exponential', 2, [2]],
  ['exponential', 5, [2, 4, 8, 16]],
  ['exponential', 10, [2, 4, 8, 16, 32, 64, 128, 256, 512]],
  ['fixed', 0, []],
  ['fixed', 1, []],
  ['fixed', 2, [5]],
  ['fixed', 5, [5, 5, 5, 5]],
  ['fixed', 10, [5, 5, 5, 5, 5, 5, 5, 5, 5]],
  ['none', 0, []],
  ['none', 1, []],
  ['none', 5, []],
  ['none', 10, []],
];

describe('nextAttemptDelayMs', () => {
  for (const [policy, maxRetries, minutes] of rows) {
    test(`${policy} with max_retries ${maxRetries} waits ${minutes.join(', ') || 'for nothing'}`, () => {
      assert.deepEqual(gaps(policy, maxRetries, 60_000), minutes);
      assert.deepEqual(gaps(policy, maxRetries, 8), minutes);
    });
  }

  test('a budget that shrank below what is spent is used up', () => {
    assert.equal(nextAttemptDelayMs({ policy: 'fixed', maxRetries: 2 }, 4, 60_000), null);
  });
});
