import type { LogFollower } from '../changelog/appliedTransactions.memory.ts';
import { FRESH_MS } from '../changelog/pods.sql.ts';
import { DeadlineExceeded, MINUTE_MS, withDeadline } from '../lib/time.ts';
import type { Sql } from '../postgres/sql.ts';
import { isUnavailable } from '../postgres/sqlErrors.ts';
import type {
  LimitName,
  LimitRequest,
  LimitVerdict,
  RateLimiter,
  StaleWorld,
  WorldVersions,
} from '../redis/rateLimiter.ts';
import { UNVERIFIED } from '../redis/rateLimiter.ts';
import { endingWith, IN_POSTGRES, IN_REDIS, type Span } from '../traces/span.ts';
import { bearerToken, fingerprint, type KeyState, type ShownKey } from './credentials.ts';
import type { ClientAddress } from './ipAddress.ts';
import { selectKeyState } from './keys.sql.ts';
import type { KeyUse } from './keyUse.ts';
import { ANYBODY } from './scopes.ts';
import { selectSession } from './sessions.sql.ts';

/** While Postgres is lost, keys are authorized from memory for this long after memory was last compared with it. */
export const TRUST_MEMORY_MS = MINUTE_MS;
/** A call waits this long for Postgres to confirm what Redis could not. */
export const VERIFY_DEADLINE_MS = 2_000;
const LOAD_TRIES = 10;

export type AccessDecision =
  | { readonly kind: 'granted'; readonly caller: KeyState }
  | {
      readonly kind: 'denied';
      readonly code: KeyDenial | 'API_KEY_REQUIRED' | 'API_KEY_INVALID';
      /** When the key expired, in epoch milliseconds. */
      readonly endedAtMs?: number;
    }
  | { readonly kind: 'limited'; readonly limit: LimitName };

export interface AuthorizerPorts {
  readonly sql: Sql;
  /** Memory, of which the versions of worlds are asked. */
  readonly fleet: { worldVersion(worldId: number): number };
  readonly keyring: Keyring;
  readonly rateLimiter: RateLimiter;
  readonly follower: LogFollower & { readonly isUnresponsive: boolean };
  readonly versions: Pick<WorldVersions, 'restore' | 'knowsNewer'>;
  readonly keyUse: Pick<KeyUse, 'note'>;
}

const KEY_REQUIRED: AccessDecision = { kind: 'denied', code: 'API_KEY_REQUIRED' };
const KEY_INVALID: AccessDecision = { kind: 'denied', code: 'API_KEY_INVALID' };

/**
 * Decides on each call in the fixed order: IP limit, key present, known, not revoked, owner active, allowlist, key
 * limits. A polling call costs at most one round trip to Redis and none to Postgres: the rate limiter counts the call
 * and compares the versions of the key's worlds with those in memory. Where it cannot confirm that memory is current,
 * memory first catches up with Postgres. Rejects when that is needed and Postgres does not answer.
 */
export class Authorizer {
  readonly #ports: AuthorizerPorts;
  readonly #loading = new Map<string, Promise<KeyState | undefined>>();

  constructor(ports: AuthorizerPorts) {
    this.#ports = ports;
  }

  /** `span`: that of the admission of the call, if it is traced. */
  authorize(
    shown: ShownKey,
    client: ClientAddress,
    nowMs: number,
    span: Span | null = null,
  ): AccessDecision | Promise<AccessDecision> {
    if (shown.kind !== 'key') {
      const denial = shown.kind === 'none' ? KEY_REQUIRED : KEY_INVALID;
      return thenAtOnce(this.#countAddress(client, nowMs), (limited) => limited ?? denial);
    }
    const call: PendingCall = { client, nowMs, fingerprint: shown.fingerprint, span };
    const key = this.#ports.keyring.get(call.fingerprint);
    if (key === undefined) return this.#authorizeUnknown(call);
    return this.#decide(call, key, client.network, null);
  }

  /**
   * A call of the application. The sessions of an account share the limits of one key, so logging in again does not reset
   * them. A token that is missing, malformed, unknown, ended or expired, or whose account is inactive, is
   * API_KEY_REQUIRED in each case, so the answer does not show whether a token was ever valid.
   *
   * Sessions are not in memory. One read of Postgres per call makes a logout hold at once on every pod; people make few
   * calls. What they read from memory is as current as for a key.
   *
   * @param authorization the Authorization headers of the request, as they came
   */
  async authorizeSession(
    authorization: readonly string[],
    client: ClientAddress,
    nowMs: number,
  ): Promise<AccessDecision> {
    const limited = await this.#countAddress(client, nowMs);
    if (limited !== null) return limited;
    const token = bearerToken(authorization);
    if (token === null) return KEY_REQUIRED;
    const reading = selectSession(this.#ports.sql, fingerprint(token));
    const caller = await withDeadline(reading, VERIFY_DEADLINE_MS, 'reading a session');
    if (caller === undefined) return KEY_REQUIRED;
    // Ids of keys are positive, so the negated id of the account can identify all its sessions.
    const { rateLimiter } = this.#ports;
    const request = (verified: boolean) =>
      this.#request(caller.worldIds, null, -caller.accountId, client.network, verified);
    const first = this.#isFresh() ? await rateLimiter.check(request(false), nowMs) : UNVERIFIED;
    if (first.kind === 'limited') return first;
    if (first.kind !== 'pass') {
      const stale = first.kind === 'stale' ? first.worlds : [];
      await this.#bringUp(stale, first.kind === 'unverified' ? caller.worldIds : []);
      const verdict = await rateLimiter.check(request(true), nowMs);
      if (verdict.kind === 'limited') return verdict;
    }
    return { kind: 'granted', caller };
  }

  /** The account of a key in memory, whether or not it opens anything. */
  knownAccount(shown: ShownKey): number | undefined {
    return shown.kind === 'key' ? this.#ports.keyring.get(shown.fingerprint)?.accountId : undefined;
  }

  /** A call that needs no credentials: only its address is counted. */
  async authorizeAnybody(client: ClientAddress, nowMs: number): Promise<AccessDecision> {
    return (await this.#countAddress(client, nowMs)) ?? { kind: 'granted', caller: NOBODY };
  }

  /** The address is counted before Postgres is asked for the key. */
  async #authorizeUnknown(call: PendingCall): Promise<AccessDecision> {
    const limited = await this.#countAddress(call.client, call.nowMs);
    if (limited !== null) return limited;
    const key = await this.#load(call.fingerprint);
    if (key === undefined) return KEY_INVALID;
    return this.#decide(call, key, null, call.client.network);
  }

  #decide(
    call: PendingCall,
    key: KeyState,
    ip: string | null,
    refundIp: string | null,
  ): AccessDecision | Promise<AccessDecision> {
    const isFresh = this.#isFresh();
    const denial = denialOf(key, call.client, call.nowMs);
    const keyId = isFresh && denial === null ? key.id : null;
    const request = this.#request(key.worldIds, ip, keyId, refundIp, false);
    return thenAtOnce(this.#check(request, call), (verdict) => {
      if (verdict.kind === 'limited') return verdict;
      if (verdict.kind === 'pass' && isFresh) return this.#outcome(call, key, denial);
      const stale = verdict.kind === 'stale' ? verdict.worlds : [];
      return this.#verify(call, stale, verdict.kind === 'unverified' ? key.worldIds : []);
    });
  }

  #outcome({ nowMs }: PendingCall, caller: KeyState, denial: KeyDenial | null): AccessDecision {
    if (denial !== null) {
      const { revoked, endsAtMs } = caller;
      const hasEnded = denial === 'API_KEY_REVOKED' && !revoked && endsAtMs !== undefined;
      return { kind: 'denied', code: denial, ...(hasEnded && { endedAtMs: endsAtMs }) };
    }
    this.#ports.keyUse.note(caller.id, nowMs);
    return { kind: 'granted', caller };
  }

  /**
   * Brings memory up to date with Postgres and decides again; the address has been counted. `uncompared`: worlds whose
   * versions Redis could not compare.
   */
  async #verify(
    call: PendingCall,
    worlds: readonly StaleWorld[],
    uncompared: readonly number[],
  ): Promise<AccessDecision> {
    call.span?.step('catch up', IN_POSTGRES);
    await this.#bringUp(worlds, uncompared);
    call.span?.step('decide again');
    const key = this.#ports.keyring.get(call.fingerprint) ?? (await this.#load(call.fingerprint));
    if (key === undefined) return KEY_INVALID;
    const denial = denialOf(key, call.client, call.nowMs);
    const keyId = denial === null ? key.id : null;
    const request = this.#request(key.worldIds, null, keyId, call.client.network, true);
    const verdict = await this.#check(request, call);
    return verdict.kind === 'limited' ? verdict : this.#outcome(call, key, denial);
  }

  /**
   * Catches up with Postgres and gives Redis the versions that it lacks. When Postgres is lost but nobody knows of
   * anything newer than memory, memory may answer.
   */
  async #bringUp(worlds: readonly StaleWorld[], uncompared: readonly number[]): Promise<void> {
    const { fleet, follower, versions } = this.#ports;
    try {
      if (follower.isUnresponsive) throw new DeadlineExceeded('Postgres does not answer');
      await withDeadline(follower.catchUp(), VERIFY_DEADLINE_MS, 'reading the change log');
    } catch (error) {
      const newerExists = worlds.some(({ state }) => state === 'newer');
      if (newerExists || !isUnavailable(error) || follower.applied.heldLagMs() > TRUST_MEMORY_MS) throw error;
      const present = uncompared.map((worldId) => fleet.worldVersion(worldId));
      if (present.length > 0 && (await versions.knowsNewer(uncompared, present))) throw error;
      return;
    }
    for (const world of worlds) {
      if (world.state === 'missing') {
        await versions.restore(world.worldId, fleet.worldVersion(world.worldId), world.ticket);
      }
    }
  }

  #isFresh(): boolean {
    return this.#ports.follower.applied.writesLagMs() <= FRESH_MS;
  }

  #request(
    worldIds: readonly number[],
    ip: string | null,
    keyId: number | null,
    refundIp: string | null,
    verified: boolean,
  ): LimitRequest {
    const versions = worldIds.map((worldId) => this.#ports.fleet.worldVersion(worldId));
    return { ip, keyId, refundIp, worldIds, versions, verified };
  }

  #check(request: LimitRequest, { nowMs, span }: PendingCall): LimitVerdict | Promise<LimitVerdict> {
    const verdict = this.#ports.rateLimiter.check(request, nowMs);
    if (span === null || !(verdict instanceof Promise)) return verdict;
    return endingWith(verdict, span.child('limits and versions', IN_REDIS));
  }

  /** Counts a call whose caller is not known yet, so no version is asked for. Null when it is within the limit. */
  #countAddress({ network }: ClientAddress, nowMs: number): Limited | null | Promise<Limited | null> {
    const request = this.#request([], network, null, null, true);
    return thenAtOnce(this.#ports.rateLimiter.check(request, nowMs), (verdict) =>
      verdict.kind === 'limited' ? verdict : null,
    );
  }

  /** Reads a key once for all calls that wait for it; again when a change may have overtaken the read. */
  #load(fingerprint: string): Promise<KeyState | undefined> {
    let loading = this.#loading.get(fingerprint);
    if (loading === undefined) {
      loading = withDeadline(this.#read(fingerprint), VERIFY_DEADLINE_MS, 'reading a key').finally(() =>
        this.#loading.delete(fingerprint),
      );
      this.#loading.set(fingerprint, loading);
    }
    return loading;
  }

  async #read(fingerprint: string): Promise<KeyState | undefined> {
    const { sql, keyring } = this.#ports;
    for (let attempt = 0; attempt < LOAD_TRIES; attempt++) {
      const epoch = keyring.epoch;
      const key = await selectKeyState(sql, fingerprint);
      if (key === undefined || keyring.put(fingerprint, key, epoch)) return key;
    }
    throw new DeadlineExceeded('keys change faster than one can be read');
  }
}

type Limited = Extract<AccessDecision, { kind: 'limited' }>;

interface PendingCall {
  readonly client: ClientAddress;
  readonly nowMs: number;
  readonly fingerprint: string;
  readonly span: Span | null;
}

/** A caller who is not identified yet. Owns nothing, sees nothing. */
export const NOBODY: KeyState = {
  id: 0,
  accountId: 0,
  worldIds: [],
  scopes: ANYBODY,
  allowlist: null,
  revoked: false,
  ownerActive: true,
  historyDays: 0,
};

/** Goes on at once with a value, later with a promise: a single process needs no turn of the event loop. */
export function thenAtOnce<T, R>(value: T | Promise<T>, next: (value: T) => R | Promise<R>): R | Promise<R> {
  return value instanceof Promise ? value.then(next) : next(value);
}

/** Codes of the API document: a known key that opens nothing for this call. */
type KeyDenial = 'API_KEY_REVOKED' | 'API_KEY_OWNER_INACTIVE' | 'API_KEY_IP_BLOCKED';

/** The first reason to deny a call with a known key, in the fixed order; null when there is none. */
export function denialOf(
  key: KeyState,
  client: Pick<ClientAddress, 'address' | 'certain'>,
  nowMs: number,
): KeyDenial | null {
  if (key.revoked || (key.endsAtMs !== undefined && key.endsAtMs <= nowMs)) return 'API_KEY_REVOKED';
  if (!key.ownerActive) return 'API_KEY_OWNER_INACTIVE';
  if (key.allowlist === null) return null;
  return client.certain && key.allowlist.has(client.address) ? null : 'API_KEY_IP_BLOCKED';
}

/** How many keys are cached; the one loaded first is dropped first. */
const KEYRING_MAX = 200_000;

export type IsDropped = (keyId: number, accountId: number) => boolean;

/** A cache of API keys, or of shares, by fingerprint (hex), as they were last read from Postgres. */
export class Keyring<State extends Pick<KeyState, 'id' | 'accountId'> = KeyState> {
  readonly #byFingerprint = new Map<string, State>();
  /** Raised whenever keys are dropped, so that a load overtaken by a change is not cached. */
  #epoch = 0;
  readonly #listeners = new Set<(isDropped: IsDropped) => void>();

  get epoch(): number {
    return this.#epoch;
  }

  get size(): number {
    return this.#byFingerprint.size;
  }

  get(fingerprint: string): State | undefined {
    return this.#byFingerprint.get(fingerprint);
  }

  /** Caches a key that was read while `epoch` was current. False, without effect, when keys were dropped since. */
  put(fingerprint: string, key: State, epoch: number): boolean {
    if (epoch !== this.#epoch) return false;
    if (this.#byFingerprint.size >= KEYRING_MAX && !this.#byFingerprint.has(fingerprint)) {
      const oldest = this.#byFingerprint.keys().next().value;
      if (oldest !== undefined) this.#byFingerprint.delete(oldest);
    }
    this.#byFingerprint.set(fingerprint, key);
    return true;
  }

  /** Drops everything, for when changes may have been missed. */
  clear(): void {
    this.#epoch++;
    this.#byFingerprint.clear();
    this.#notify(() => true);
  }

  dropKeys(keyIds: ReadonlySet<number>, accountIds: ReadonlySet<number>): void {
    if (keyIds.size === 0 && accountIds.size === 0) return;
    this.#epoch++;
    const isDropped: IsDropped = (keyId, accountId) => keyIds.has(keyId) || accountIds.has(accountId);
    for (const [fingerprint, key] of this.#byFingerprint) {
      if (isDropped(key.id, key.accountId)) this.#byFingerprint.delete(fingerprint);
    }
    this.#notify(isDropped);
  }

  /** Calls `listener` when keys or accounts have changed, or may have; it must not throw. */
  onDropped(listener: (isDropped: IsDropped) => void): void {
    this.#listeners.add(listener);
  }

  #notify(isDropped: IsDropped): void {
    for (const listener of this.#listeners) listener(isDropped);
  }
}
