import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { pausesOf } from '../../src/webhooks/pauses/backlogWatch.ts';
import type { Backlog } from '../../src/webhooks/pauses/pauses.sql.ts';

const QUOTA = { perAccount: 1_000, perEndpoint: 100 };

const backlog = (id: number, waiting: number, others: Partial<Backlog> = {}): Backlog => ({
  ...{ id, is_paused: false, waiting, to_be_made: 0 },
  ...others,
});

describe('endpoints are paused', () => {
  test('at more than their own quota, and no others with them', () => {
    const pauses = pausesOf(QUOTA, [backlog(1, 100), backlog(2, 101), backlog(3, 0)]);
    assert.deepEqual(pauses, [{ webhookId: 2, reason: 'endpoint_quota' }]);
  });

  test('when more events than that are in the outbox', () => {
    const pauses = pausesOf(QUOTA, [backlog(1, 0, { to_be_made: 100 }), backlog(2, 0, { to_be_made: 101 })]);
    assert.deepEqual(pauses, [{ webhookId: 2, reason: 'endpoint_quota' }]);
  });

  test('when the account has too many: those with more than a hundredth of its quota', () => {
    const many = Array.from({ length: 12 }, (_, n) => backlog(n + 10, 90));
    const pauses = pausesOf(QUOTA, [...many, backlog(1, 10), backlog(2, 11)]);
    assert.deepEqual(
      pauses,
      [...many.map(({ id }) => id), 2].map((webhookId) => ({
        webhookId,
        reason: 'account_quota',
      })),
    );
    assert.deepEqual(pausesOf(QUOTA, many.slice(0, 11)), [], '990 are not too many');
  });

  test('once: what waits for paused ones counts, but they are not paused again', () => {
    const paused = Array.from({ length: 10 }, (_, n) => backlog(n + 10, 101, { is_paused: true }));
    assert.deepEqual(pausesOf(QUOTA, [...paused, backlog(1, 11), backlog(2, 10)]), [
      { webhookId: 1, reason: 'account_quota' },
    ]);
  });
});
