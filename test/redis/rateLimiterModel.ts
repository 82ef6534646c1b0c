import fc from 'fast-check';
import type { LimitRequest, LimitVerdict, RateLimiter, RateLimits } from '../../src/redis/rateLimiter.ts';
import { asks } from './pod.ts';

/** Small ones, of which 0 is none: one in which the minute is the narrowest, one in which the hour or the address is. */
export const SMALL_LIMITS: readonly RateLimits[] = [
  { ipMinute: 4, keyMinute: 3, keyHour: 5 },
  { ipMinute: 0, keyMinute: 0, keyHour: 2 },
  { ipMinute: 1, keyMinute: 2, keyHour: 0 },
];
const IPS = ['203.0.113.1', '203.0.113.2', '2001:db8::1'];
const KEYS = [1, 2];

export interface Step {
  readonly request: LimitRequest;
  /** Time that passes before the call. */
  readonly laterMs: number;
}

const nullable = <T>(values: readonly T[]) => fc.constantFrom<T | null>(null, ...values);

/** Calls of few callers in any order, first and second halves of a call among them. */
export const steps = (maxLaterMs: number): fc.Arbitrary<Step[]> =>
  fc.array(
    fc.record({
      request: fc.oneof(
        fc.record({ ip: nullable(IPS), keyId: nullable(KEYS) }).map(asks),
        fc.record({ refundIp: nullable(IPS), keyId: nullable(KEYS), verified: fc.constant(true) }).map(asks),
      ),
      laterMs: fc.oneof(
        { weight: 6, arbitrary: fc.constant(0) },
        { weight: 1, arbitrary: fc.nat(maxLaterMs) },
      ),
    }),
    { maxLength: 60 },
  );

/** The limits in the plainest words: what a rate limiter must answer, and in which order, one call at a time. */
export class RateLimiterModel implements RateLimiter {
  readonly #limits: RateLimits;
  readonly #lengthsMs: Readonly<Record<keyof RateLimits, number>>;
  readonly #windows = new Map<string, { startMs: number; count: number }>();

  constructor(limits: RateLimits, minuteMs: number, hourMs: number) {
    this.#limits = limits;
    this.#lengthsMs = { ipMinute: minuteMs, keyMinute: minuteMs, keyHour: hourMs };
  }

  check({ ip, keyId, refundIp }: LimitRequest, nowMs: number): LimitVerdict {
    if (this.#isFull('ipMinute', ip, nowMs)) return { kind: 'limited', limit: 'ip_minute' };
    const isMinuteFull = this.#isFull('keyMinute', keyId, nowMs);
    if (isMinuteFull || this.#isFull('keyHour', keyId, nowMs)) {
      const refunded = this.#window('ipMinute', refundIp, nowMs);
      if (refunded !== undefined && --refunded.count === 0) this.#windows.delete(`ipMinute ${refundIp}`);
      return { kind: 'limited', limit: isMinuteFull ? 'key_minute' : 'key_hour' };
    }
    this.#charge('ipMinute', ip, nowMs);
    this.#charge('keyMinute', keyId, nowMs);
    this.#charge('keyHour', keyId, nowMs);
    return { kind: 'pass' };
  }

  #window(limit: keyof RateLimits, who: string | number | null, nowMs: number) {
    const window = this.#windows.get(`${limit} ${who}`);
    return window !== undefined && nowMs < window.startMs + this.#lengthsMs[limit] ? window : undefined;
  }

  #isFull(limit: keyof RateLimits, who: string | number | null, nowMs: number): boolean {
    const count = this.#window(limit, who, nowMs)?.count ?? 0;
    return this.#limits[limit] > 0 && count >= this.#limits[limit];
  }

  #charge(limit: keyof RateLimits, who: string | number | null, nowMs: number): void {
    if (who === null || this.#limits[limit] === 0) return;
    const window = this.#window(limit, who, nowMs);
    if (window !== undefined) window.count++;
    else this.#windows.set(`${limit} ${who}`, { startMs: nowMs, count: 1 });
  }
}
