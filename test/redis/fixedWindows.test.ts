import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { FixedWindows } from '../../src/redis/rateLimiter.ts';

const NOW_MS = Date.parse('2026-03-01T12:00:00Z');

function windows(limit: number, maxTracked = 100): FixedWindows<string> {
  return new FixedWindows<string>(limit, 1_000, maxTracked);
}

describe('a window', () => {
  test('starts with its first call and ends a full length later, however often it was asked', () => {
    const calls = windows(2);
    calls.charge('a', NOW_MS);
    calls.charge('a', NOW_MS + 999);
    assert.equal(calls.isFull('a', NOW_MS + 999), true);
    assert.equal(calls.isFull('a', NOW_MS + 1_000), false);
    calls.charge('a', NOW_MS + 1_500);
    calls.charge('a', NOW_MS + 1_500);
    assert.equal(calls.isFull('a', NOW_MS + 2_499), true);
    assert.equal(calls.isFull('a', NOW_MS + 2_500), false);
  });

  test('survives a clock that steps back a little, and ends when it steps back by more than its length', () => {
    const calls = windows(1);
    calls.charge('a', NOW_MS);
    assert.equal(calls.isFull('a', NOW_MS - 500), true);
    assert.equal(calls.isFull('a', NOW_MS - 3_600_000), false);
  });

  test('that is refunded to nothing never began', () => {
    const calls = windows(1);
    calls.charge('a', NOW_MS);
    calls.refund('a', NOW_MS + 10);
    assert.equal(calls.size, 0);
    calls.charge('a', NOW_MS + 500);
    assert.equal(calls.isFull('a', NOW_MS + 1_400), true);
  });

  test('that has ended is not refunded, so a count never falls below the truth', () => {
    const calls = windows(1);
    calls.charge('a', NOW_MS);
    calls.refund('a', NOW_MS + 1_000);
    calls.charge('a', NOW_MS + 1_000);
    calls.refund('b', NOW_MS);
    assert.equal(calls.isFull('a', NOW_MS + 1_000), true);
  });
});

describe('memory', () => {
  test('holds the newest half at least, and forgets the oldest first', () => {
    const calls = windows(1, 4);
    const keys = ['a', 'b', 'c', 'd', 'e'];
    for (const [i, key] of keys.entries()) calls.charge(key, NOW_MS + i);
    assert.deepEqual(
      keys.filter((key) => calls.isFull(key, NOW_MS + 10)),
      ['c', 'd', 'e'],
    );
  });

  test('counts a window that began anew among the newest', () => {
    const calls = windows(1, 4);
    for (const key of ['a', 'b', 'c']) calls.charge(key, NOW_MS);
    for (const key of ['a', 'd', 'e']) calls.charge(key, NOW_MS + 1_000);
    assert.equal(calls.isFull('a', NOW_MS + 1_002), true);
  });

  test('stays bounded under a mix of everything', () => {
    const calls = windows(2, 50);
    let state = 1;
    for (let i = 0; i < 20_000; i++) {
      state = (state * 48_271) % 2_147_483_647;
      const key = `k${state % 200}`;
      if (state % 7 === 0) calls.refund(key, NOW_MS + i);
      else calls.charge(key, NOW_MS + i);
      assert.equal(calls.size <= 50, true);
    }
  });
});
