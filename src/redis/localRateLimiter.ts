import { HOUR_MS, MINUTE_MS } from '../lib/durations.ts';
import { FixedWindows } from './fixedWindows.ts';
import {
  LIMITED,
  type LimitRequest,
  type LimitVerdict,
  PASS,
  type RateLimiter,
  type RateLimiterOptions,
} from './rateLimiter.ts';

/** Windows kept per limit: about 8 MB when full. With twice as many, the table grows in steps of 5 ms. */
const MAX_TRACKED = 50_000;

/**
 * The rate limiter of a single process. It answers at once and allocates nothing for a caller it knows. Versions are
 * never stale here, because only this process writes.
 */
export class LocalRateLimiter implements RateLimiter {
  readonly #ipMinute: FixedWindows<string>;
  readonly #keyMinute: FixedWindows<number>;
  readonly #keyHour: FixedWindows<number>;

  constructor({ limits, minuteMs = MINUTE_MS, hourMs = HOUR_MS }: RateLimiterOptions) {
    this.#ipMinute = new FixedWindows(limits.ipMinute, minuteMs, MAX_TRACKED);
    this.#keyMinute = new FixedWindows(limits.keyMinute, minuteMs, MAX_TRACKED);
    this.#keyHour = new FixedWindows(limits.keyHour, hourMs, MAX_TRACKED);
  }

  check({ ip, keyId, refundIp }: LimitRequest, nowMs: number): LimitVerdict {
    if (ip !== null && this.#ipMinute.isFull(ip, nowMs)) return LIMITED.ip_minute;
    if (keyId !== null) {
      const limited = this.#keyLimit(keyId, nowMs);
      if (limited !== null) {
        if (refundIp !== null) this.#ipMinute.refund(refundIp, nowMs);
        return limited;
      }
      this.#keyMinute.charge(keyId, nowMs);
      this.#keyHour.charge(keyId, nowMs);
    }
    if (ip !== null) this.#ipMinute.charge(ip, nowMs);
    return PASS;
  }

  #keyLimit(keyId: number, nowMs: number): LimitVerdict | null {
    if (this.#keyMinute.isFull(keyId, nowMs)) return LIMITED.key_minute;
    if (this.#keyHour.isFull(keyId, nowMs)) return LIMITED.key_hour;
    return null;
  }
}
