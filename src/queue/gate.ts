/**
 * Admission of a call to the hot path: is there room in its limits, and does memory hold the newest version of the
 * worlds it looks into? Asked once per call, answered by this process alone or by Redis for all pods together.
 *
 * Protocol: on 'stale' or 'unverified' the caller makes sure of its memory (waits for the change feed, or reads the
 * worlds' versions in Postgres), gives back missing versions (WorldVersions.restore), and asks again with
 * `ip: null`, `refundIp` set to the address and `verified: true`. A verified request is never stale.
 */
export interface Gate {
  /**
   * Never throws, never rejects; `nowMs` is epoch milliseconds. Order: IP limit, versions, key per minute, key per
   * hour. Only what passes is charged: a refused call costs none of the limits, a stale one its IP limit only.
   */
  admit(request: GateRequest, nowMs: number): GateVerdict | Promise<GateVerdict>;
}

export interface GateRequest {
  /** Counts against the limit of this address; null: it was counted by an earlier request of the same call. */
  readonly ip: string | null;
  /** Counts against the limits of this key; null: not known yet, or refused before its limits. */
  readonly keyId: number | null;
  /** Gets its count back when a limit of the key refuses the call; null: nothing was counted before. */
  readonly refundIp: string | null;
  /** The worlds the key looks into, and the versions of them that memory holds, in the same order. */
  readonly worldIds: readonly number[];
  readonly versions: readonly number[];
  /** True: memory was compared with Postgres after this call began, so the versions need no further look. */
  readonly verified: boolean;
}

export type GateVerdict =
  | { readonly kind: 'pass' }
  | { readonly kind: 'limited'; readonly limit: LimitName }
  /** Redis knows newer versions than memory, or none. The key's limits are not charged. */
  | { readonly kind: 'stale'; readonly worlds: readonly StaleWorld[] }
  /** Redis could not vouch for the versions. The key's limits are not charged. */
  | { readonly kind: 'unverified' };

export type LimitName = 'ip_minute' | 'key_minute' | 'key_hour';

/** A missing version comes with a ticket, which proves to `restore` that no writer spoke in between. */
export type StaleWorld =
  | { readonly worldId: number; readonly state: 'newer'; readonly version: number }
  | { readonly worldId: number; readonly state: 'missing'; readonly ticket: string };

/** Calls per window; 0 switches a limit off. */
export interface GateLimits {
  readonly ipMinute: number;
  readonly keyMinute: number;
  readonly keyHour: number;
}

export interface GateOptions {
  readonly limits: GateLimits;
  /** Lengths of the windows; tests shorten them. */
  readonly minuteMs?: number;
  readonly hourMs?: number;
}

export const MINUTE_MS = 60_000;
export const HOUR_MS = 3_600_000;

// Verdicts without data are shared, so that a passing call allocates nothing.
export const PASS: GateVerdict = Object.freeze({ kind: 'pass' });
export const UNVERIFIED: GateVerdict = Object.freeze({ kind: 'unverified' });
export const LIMITED: Readonly<Record<LimitName, GateVerdict>> = Object.freeze({
  ip_minute: Object.freeze({ kind: 'limited', limit: 'ip_minute' }),
  key_minute: Object.freeze({ kind: 'limited', limit: 'key_minute' }),
  key_hour: Object.freeze({ kind: 'limited', limit: 'key_hour' }),
});
