import type { KeyState } from '../access/keyState.ts';

/** How many keys are remembered; the one loaded first is forgotten first. */
const KEYRING_MAX = 200_000;

/** Keys that were asked for, by fingerprint (hex), as Postgres last told them. */
export class Keyring {
  readonly #byFingerprint = new Map<string, KeyState>();
  /** Counts what was dropped, so that a load which was overtaken by a change is not remembered. */
  #epoch = 0;

  get epoch(): number {
    return this.#epoch;
  }

  get size(): number {
    return this.#byFingerprint.size;
  }

  get(fingerprint: string): KeyState | undefined {
    return this.#byFingerprint.get(fingerprint);
  }

  /** Remembers a key that was read while `epoch` was current; refuses (false) when something was dropped since. */
  put(fingerprint: string, key: KeyState, epoch: number): boolean {
    if (epoch !== this.#epoch) return false;
    if (this.#byFingerprint.size >= KEYRING_MAX && !this.#byFingerprint.has(fingerprint)) {
      const oldest = this.#byFingerprint.keys().next().value;
      if (oldest !== undefined) this.#byFingerprint.delete(oldest);
    }
    this.#byFingerprint.set(fingerprint, key);
    return true;
  }

  /** Forgets everything: for a reader who may have missed changes. */
  clear(): void {
    this.#epoch++;
    this.#byFingerprint.clear();
  }

  dropKeys(keyIds: ReadonlySet<number>, accountIds: ReadonlySet<number>): void {
    if (keyIds.size === 0 && accountIds.size === 0) return;
    this.#epoch++;
    for (const [fingerprint, key] of this.#byFingerprint) {
      if (keyIds.has(key.id) || accountIds.has(key.accountId)) this.#byFingerprint.delete(fingerprint);
    }
  }
}
