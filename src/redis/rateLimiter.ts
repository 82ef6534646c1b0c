import { HOUR_MS, MINUTE_MS } from '../lib/time.ts';
/**
 * Decides two things about a call: is it within its limits, and does memory hold the newest version of the worlds it
 * reads? Asked once per call. Answered by this process alone, or by Redis for all pods together.
 *
 * Protocol: on 'stale' or 'unverified' the caller verifies its memory. It waits for the change log, or reads the
 * versions of the worlds in Postgres. It writes missing versions back (WorldVersions.restore). Then it asks again with
 * `ip: null`, `refundIp` set to the address and `verified: true`. A verified request is never stale.
 */
export interface RateLimiter {
  /**
   * Never throws and never rejects. `nowMs` is epoch milliseconds. Order: IP limit, versions, key per minute, key per
   * hour. A limited call is charged to no limit, a stale one to its IP limit only.
   */
  check(request: LimitRequest, nowMs: number): LimitVerdict | Promise<LimitVerdict>;
}

export interface LimitRequest {
  /** Charged to the limit of this address; null: an earlier request of the same call was charged. */
  readonly ip: string | null;
  /** Charged to the limits of this key; null: the key is not known, or the call is denied before its limits. */
  readonly keyId: number | null;
  /** This address is refunded when a limit of the key is reached; null: it was not charged before. */
  readonly refundIp: string | null;
  /** The worlds that the key reads, and their versions in memory, in the same order. */
  readonly worldIds: readonly number[];
  readonly versions: readonly number[];
  /** True: memory was compared with Postgres after this call began, so the versions are not checked. */
  readonly verified: boolean;
}

export type LimitVerdict =
  | { readonly kind: 'pass' }
  | { readonly kind: 'limited'; readonly limit: LimitName }
  /** Redis knows newer versions than memory, or none. The key's limits are not charged. */
  | { readonly kind: 'stale'; readonly worlds: readonly StaleWorld[] }
  /** Redis could not confirm the versions. The key's limits are not charged. */
  | { readonly kind: 'unverified' };

export type LimitName = 'ip_minute' | 'key_minute' | 'key_hour';

/** A missing version comes with a ticket. With it `restore` knows that no writer published one in between. */
export type StaleWorld =
  | { readonly worldId: number; readonly state: 'newer'; readonly version: number }
  | { readonly worldId: number; readonly state: 'missing'; readonly ticket: string };

/** Calls per window; 0 switches a limit off. */
export interface RateLimits {
  readonly ipMinute: number;
  readonly keyMinute: number;
  readonly keyHour: number;
}

export interface RateLimiterOptions {
  readonly limits: RateLimits;
  /** Lengths of the windows; tests shorten them. */
  readonly minuteMs?: number;
  readonly hourMs?: number;
}

// Verdicts without data are shared, so that a passing call allocates nothing.
export const PASS: LimitVerdict = Object.freeze({ kind: 'pass' });
export const UNVERIFIED: LimitVerdict = Object.freeze({ kind: 'unverified' });
export const LIMITED: Readonly<Record<LimitName, LimitVerdict>> = Object.freeze({
  ip_minute: Object.freeze({ kind: 'limited', limit: 'ip_minute' }),
  key_minute: Object.freeze({ kind: 'limited', limit: 'key_minute' }),
  key_hour: Object.freeze({ kind: 'limited', limit: 'key_hour' }),
});

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

interface Window<K> {
  readonly key: K;
  startMs: number;
  count: number;
  older: Window<K> | null;
  newer: Window<K> | null;
}

/** Expired windows dropped for each new one: more than one, so that none are left over, and few, so that it is quick. */
const SWEEP_PER_INSERT = 2;

/**
 * Counts calls per key in windows of one length, each starting with its first call. A limit of 0 counts nothing.
 *
 * At most `maxTracked` windows are stored, in the order of their starts. When all of them are live, the oldest is
 * dropped. So a flood of new addresses gives some callers a fresh window early. It never limits a caller early.
 */
export class FixedWindows<K extends string | number> {
  readonly #limit: number;
  readonly #lengthMs: number;
  readonly #maxTracked: number;
  readonly #byKey = new Map<K, Window<K>>();
  #oldest: Window<K> | null = null;
  #newest: Window<K> | null = null;

  constructor(limit: number, lengthMs: number, maxTracked: number) {
    this.#limit = limit;
    this.#lengthMs = lengthMs;
    this.#maxTracked = maxTracked;
  }

  /** How many windows are stored, expired ones included. */
  get size(): number {
    return this.#byKey.size;
  }

  isFull(key: K, nowMs: number): boolean {
    if (this.#limit === 0) return false;
    const window = this.#byKey.get(key);
    return window !== undefined && window.count >= this.#limit && this.#isLive(window, nowMs);
  }

  /** Counts one call. The caller has asked `isFull`. */
  charge(key: K, nowMs: number): void {
    if (this.#limit === 0) return;
    const known = this.#byKey.get(key);
    if (known !== undefined && this.#isLive(known, nowMs)) {
      known.count++;
      return;
    }
    if (known === undefined) this.#makeRoom(nowMs);
    else this.#unlink(known);
    const window = known ?? { key, startMs: nowMs, count: 0, older: null, newer: null };
    if (known === undefined) this.#byKey.set(key, window);
    window.startMs = nowMs;
    window.count = 1;
    this.#append(window);
  }

  /** Uncounts one call. A window without calls is dropped. */
  refund(key: K, nowMs: number): void {
    const window = this.#byKey.get(key);
    if (window === undefined || !this.#isLive(window, nowMs)) return;
    window.count--;
    if (window.count === 0) this.#remove(window);
  }

  /** A window in the future is not live either: the clock was set back by more than its length. */
  #isLive(window: Window<K>, nowMs: number): boolean {
    return Math.abs(nowMs - window.startMs) < this.#lengthMs;
  }

  #makeRoom(nowMs: number): void {
    for (let i = 0; i < SWEEP_PER_INSERT && this.#oldest !== null; i++) {
      if (this.#isLive(this.#oldest, nowMs)) break;
      this.#remove(this.#oldest);
    }
    if (this.#byKey.size >= this.#maxTracked && this.#oldest !== null) this.#remove(this.#oldest);
  }

  #remove(window: Window<K>): void {
    this.#unlink(window);
    this.#byKey.delete(window.key);
  }

  #append(window: Window<K>): void {
    window.older = this.#newest;
    window.newer = null;
    if (this.#newest === null) this.#oldest = window;
    else this.#newest.newer = window;
    this.#newest = window;
  }

  #unlink(window: Window<K>): void {
    if (window.older === null) this.#oldest = window.newer;
    else window.older.newer = window.newer;
    if (window.newer === null) this.#newest = window.older;
    else window.newer.older = window.older;
  }
}
