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
