/** Rings of one key within this time become one more ring at its end. */
const QUIET_MS = 20;

/** Passes the first ring of a key on at once, and all that follow within 20 ms as one, 20 ms after the first. */
export class Coalescer<K> {
  readonly #act: (key: K) => void;
  /** The keys that rang lately; the keys are few and fixed. */
  readonly #quiet = new Map<K, { timer: NodeJS.Timeout; rangAgain: boolean }>();
  #isClosed = false;

  constructor(act: (key: K) => void) {
    this.#act = act;
  }

  ring(key: K): void {
    if (this.#isClosed) return;
    const quiet = this.#quiet.get(key);
    if (quiet !== undefined) {
      quiet.rangAgain = true;
      return;
    }
    this.#quiet.set(key, { timer: setTimeout(() => this.#endQuiet(key), QUIET_MS), rangAgain: false });
    this.#act(key);
  }

  close(): void {
    this.#isClosed = true;
    for (const { timer } of this.#quiet.values()) clearTimeout(timer);
    this.#quiet.clear();
  }

  #endQuiet(key: K): void {
    const rangAgain = this.#quiet.get(key)?.rangAgain === true;
    this.#quiet.delete(key);
    if (rangAgain) this.ring(key);
  }
}
