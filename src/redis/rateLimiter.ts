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

/**
 * Publishes the newest version of a world to all pods, so that none answers from older memory. Every method resolves to
 * false when it could not: then a writer must wait until the pods have followed the change log.
 */
export interface WorldVersions {
  /** Called by a writer before its commit, so that no pod can miss the version between commit and publication. */
  publish(worldId: number, version: number): Promise<boolean>;
  /** Called by a writer after its commit and before its answer: Redis may have been emptied since the publication. */
  confirm(worldId: number, version: number): Promise<boolean>;
  /**
   * Called by a reader that found the version missing and then read it in Postgres. Changes nothing when the ticket is
   * gone: then a writer has published a version in between, and this one may be older.
   */
  restore(worldId: number, version: number, ticket: string): Promise<boolean>;
  /**
   * Whether Redis knows a newer version of one of the worlds; false when it does not answer either. Called by a reader that
   * cannot ask Postgres and whose versions Redis has not compared, perhaps because it was slow.
   */
  knowsNewer(worldIds: readonly number[], versions: readonly number[]): Promise<boolean>;
}

/** For a single process, which has no other pods to tell. */
export const localWorldVersions: WorldVersions = {
  publish: async () => true,
  confirm: async () => true,
  restore: async () => true,
  knowsNewer: async () => false,
};

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

/** Windows kept per limit: about 8 MB when full. */
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

interface Window {
  startMs: number;
  count: number;
}

/**
 * Counts calls per key in windows of one length, each starting with its first call. A limit of 0 counts nothing.
 *
 * At most `maxTracked` windows are stored, in two halves: when the newer half is full, the older one is dropped. So a
 * flood of new addresses gives some callers a fresh window early. It never limits a caller early.
 */
export class FixedWindows<K extends string | number> {
  readonly #limit: number;
  readonly #lengthMs: number;
  readonly #halfTracked: number;
  #newer = new Map<K, Window>();
  #older = new Map<K, Window>();

  constructor(limit: number, lengthMs: number, maxTracked: number) {
    this.#limit = limit;
    this.#lengthMs = lengthMs;
    this.#halfTracked = maxTracked / 2;
  }

  /** How many windows are stored, expired ones included. */
  get size(): number {
    return this.#newer.size + this.#older.size;
  }

  isFull(key: K, nowMs: number): boolean {
    if (this.#limit === 0) return false;
    return (this.#live(key, nowMs)?.count ?? 0) >= this.#limit;
  }

  /** Counts one call. The caller has asked `isFull`. */
  charge(key: K, nowMs: number): void {
    if (this.#limit === 0) return;
    const window = this.#live(key, nowMs);
    if (window !== undefined) window.count++;
    else this.#begin(key, nowMs);
  }

  /** Uncounts one call. A window without calls is dropped. */
  refund(key: K, nowMs: number): void {
    const window = this.#live(key, nowMs);
    if (window === undefined) return;
    window.count--;
    if (window.count > 0) return;
    this.#newer.delete(key);
    this.#older.delete(key);
  }

  /** A window in the future is not live either: the clock was set back by more than its length. */
  #live(key: K, nowMs: number): Window | undefined {
    const window = this.#newer.get(key) ?? this.#older.get(key);
    return window !== undefined && Math.abs(nowMs - window.startMs) < this.#lengthMs ? window : undefined;
  }

  #begin(key: K, nowMs: number): void {
    const expired = this.#newer.get(key);
    if (expired !== undefined) {
      expired.startMs = nowMs;
      expired.count = 1;
      return;
    }
    this.#older.delete(key);
    if (this.#newer.size >= this.#halfTracked) {
      this.#older = this.#newer;
      this.#newer = new Map();
    }
    this.#newer.set(key, { startMs: nowMs, count: 1 });
  }
}
