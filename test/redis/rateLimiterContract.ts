import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import type { LimitRequest, RateLimiter, RateLimits } from '../../src/redis/rateLimiter.ts';
import { asks } from './pod.ts';

const NOW_MS = Date.parse('2026-03-01T12:00:00Z');
const ALICE = '203.0.113.1';
const BOB = '203.0.113.2';

/** What every form of the rate limiter promises; `open` gives an unused one with windows of normal length. */
export function rateLimiterContract(
  open: (t: TestContext, limits: RateLimits) => Promise<RateLimiter>,
  skip: string | false = false,
): void {
  /** The verdicts in short, one call after the other. */
  const ask = async (
    limiter: RateLimiter,
    times: number,
    request: Partial<LimitRequest>,
  ): Promise<string[]> => {
    const verdicts: string[] = [];
    for (let i = 0; i < times; i++) {
      const verdict = await limiter.check(asks(request), NOW_MS);
      verdicts.push(verdict.kind === 'limited' ? verdict.limit : verdict.kind);
    }
    return verdicts;
  };
  const times = (count: number, verdict: string): string[] => new Array<string>(count).fill(verdict);

  describe('every rate limiter', { skip }, () => {
    test('lets as many calls through as each limit says, and names the one that is full', async (t) => {
      const limiter = await open(t, { ipMinute: 3, keyMinute: 4, keyHour: 6 });
      assert.deepEqual(await ask(limiter, 4, { ip: ALICE }), [...times(3, 'pass'), 'ip_minute']);
      assert.deepEqual(await ask(limiter, 5, { keyId: 1 }), [...times(4, 'pass'), 'key_minute']);
      const hourly = await open(t, { ipMinute: 9, keyMinute: 9, keyHour: 2 });
      assert.deepEqual(await ask(hourly, 3, { keyId: 1 }), [...times(2, 'pass'), 'key_hour']);
    });

    test('counts each address and each key for itself', async (t) => {
      const limiter = await open(t, { ipMinute: 1, keyMinute: 1, keyHour: 1 });
      assert.deepEqual(await ask(limiter, 1, { ip: ALICE, keyId: 1 }), ['pass']);
      assert.deepEqual(await ask(limiter, 1, { ip: BOB, keyId: 1 }), ['key_minute']);
      assert.deepEqual(await ask(limiter, 1, { ip: BOB, keyId: 2 }), ['pass']);
    });

    test('names the address first, then the minute, then the hour', async (t) => {
      const limiter = await open(t, { ipMinute: 1, keyMinute: 1, keyHour: 1 });
      await ask(limiter, 1, { ip: ALICE, keyId: 1 });
      assert.deepEqual(await ask(limiter, 1, { ip: ALICE, keyId: 1 }), ['ip_minute']);
      assert.deepEqual(await ask(limiter, 1, { keyId: 1 }), ['key_minute']);
    });

    test('charges a call that the key is refused to nothing, not even to its address', async (t) => {
      const limiter = await open(t, { ipMinute: 3, keyMinute: 2, keyHour: 9 });
      await ask(limiter, 2, { keyId: 1 });
      assert.deepEqual(await ask(limiter, 9, { ip: ALICE, keyId: 1 }), times(9, 'key_minute'));
      assert.deepEqual(await ask(limiter, 4, { ip: ALICE, keyId: 2 }), [
        'pass',
        'pass',
        'key_minute',
        'key_minute',
      ]);
      assert.deepEqual(await ask(limiter, 2, { ip: ALICE }), ['pass', 'ip_minute']);
    });

    test('charges a call that the address is refused to no key', async (t) => {
      const limiter = await open(t, { ipMinute: 1, keyMinute: 2, keyHour: 9 });
      await ask(limiter, 1, { ip: ALICE });
      assert.deepEqual(await ask(limiter, 5, { ip: ALICE, keyId: 1 }), times(5, 'ip_minute'));
      assert.deepEqual(await ask(limiter, 3, { keyId: 1 }), ['pass', 'pass', 'key_minute']);
    });

    test('charges a call that the hour refuses to no minute', async (t) => {
      const limiter = await open(t, { ipMinute: 9, keyMinute: 0, keyHour: 1 });
      const both = await open(t, { ipMinute: 9, keyMinute: 2, keyHour: 1 });
      assert.deepEqual(await ask(limiter, 3, { keyId: 1 }), ['pass', 'key_hour', 'key_hour']);
      assert.deepEqual(await ask(both, 4, { keyId: 1 }), ['pass', ...times(3, 'key_hour')]);
    });

    test('gives the address its count back when the second half of the call is refused', async (t) => {
      const limiter = await open(t, { ipMinute: 2, keyMinute: 1, keyHour: 9 });
      await ask(limiter, 1, { keyId: 1 });
      for (let call = 0; call < 5; call++) {
        assert.deepEqual(await ask(limiter, 1, { ip: ALICE }), ['pass']);
        assert.deepEqual(await ask(limiter, 1, { keyId: 1, refundIp: ALICE }), ['key_minute']);
      }
      assert.deepEqual(await ask(limiter, 3, { ip: ALICE }), ['pass', 'pass', 'ip_minute']);
    });

    test('gives nothing back when the second half passes, nor to an address without a count', async (t) => {
      const limiter = await open(t, { ipMinute: 1, keyMinute: 1, keyHour: 9 });
      await ask(limiter, 1, { ip: ALICE });
      assert.deepEqual(await ask(limiter, 1, { keyId: 1, refundIp: ALICE }), ['pass']);
      assert.deepEqual(await ask(limiter, 1, { ip: ALICE }), ['ip_minute']);
      assert.deepEqual(await ask(limiter, 3, { keyId: 1, refundIp: BOB }), times(3, 'key_minute'));
      assert.deepEqual(await ask(limiter, 2, { ip: BOB }), ['pass', 'ip_minute']);
    });

    test('has no limit where the limit is 0', async (t) => {
      const limiter = await open(t, { ipMinute: 0, keyMinute: 0, keyHour: 0 });
      assert.deepEqual(await ask(limiter, 20, { ip: ALICE, keyId: 1 }), times(20, 'pass'));
      assert.deepEqual(await ask(limiter, 20, { keyId: 1, refundIp: ALICE }), times(20, 'pass'));
    });
  });
}
