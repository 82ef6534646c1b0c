import type { CidrSet } from './ipAddress.ts';
import type { ScopeMask } from './scopes.ts';

/** How many keys are cached; the one loaded first is dropped first. */
const KEYRING_MAX = 200_000;

export type IsDropped = (keyId: number, accountId: number) => boolean;

/** A cache of API keys by fingerprint (hex), as they were last read from Postgres. */
export class Keyring {
  readonly #byFingerprint = new Map<string, KeyState>();
  /** Raised whenever keys are dropped, so that a load overtaken by a change is not cached. */
  #epoch = 0;
  readonly #listeners = new Set<(isDropped: IsDropped) => void>();

  get epoch(): number {
    return this.#epoch;
  }

  get size(): number {
    return this.#byFingerprint.size;
  }

  get(fingerprint: string): KeyState | undefined {
    return this.#byFingerprint.get(fingerprint);
  }

  /** Caches a key that was read while `epoch` was current. False, without effect, when keys were dropped since. */
  put(fingerprint: string, key: KeyState, epoch: number): boolean {
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

/** All that memory has of an API key: enough to decide on a call without a query. */
export interface KeyState {
  /** For a session, its negated id, so that it never equals the id of a key. */
  readonly id: number;
  readonly accountId: number;
  /** The worlds it looks into: its account's first, then its organization's, if any. */
  readonly worldIds: readonly number[];
  readonly scopes: ScopeMask;
  /** The addresses that it may be used from; null: all. */
  readonly allowlist: CidrSet | null;
  readonly revoked: boolean;
  readonly ownerActive: boolean;
  /** How far back the owner's plan lets history be read. */
  readonly historyDays: number;
  /** When a session ends, in epoch milliseconds; not set for a key. */
  readonly endsAtMs?: number;
}
