import { workedSince } from './pace.ts';
import type { WorkTurns } from './workTurns.ts';

/** Less is quick: it is not counted. */
const SLOW_MS = 0.25;
/** How long the slow answers to one account may take at once. */
const SHARE_MS = 4;
const WINDOW_MS = 100;

/**
 * Runs work without waiting for a turn, since it is nearly always quick. Some of it may still take milliseconds, and a
 * caller may ask hundreds of times at the same moment. So the work of an account with slow answers takes turns with all
 * other work until the window ends.
 */
export class AtOnce<Key> {
  readonly #turns: Pick<WorkTurns<Key>, 'once'>;
  /** Time spent on slow answers in this window, by account. */
  readonly #slowMs = new Map<Key, number>();
  #windowFromMs = 0;

  constructor(turns: Pick<WorkTurns<Key>, 'once'>) {
    this.#turns = turns;
  }

  /** What `work` returns; a promise of it where the account has used up its share. */
  run<T>(key: Key, work: () => T): T | Promise<T> {
    const fromMs = performance.now();
    if (fromMs - this.#windowFromMs > WINDOW_MS) {
      this.#windowFromMs = fromMs;
      this.#slowMs.clear();
    }
    const slowMs = this.#slowMs.get(key) ?? 0;
    if (slowMs >= SHARE_MS) return this.#turns.once(key, work);
    const result = work();
    const workedMs = workedSince(fromMs);
    if (workedMs >= SLOW_MS) this.#slowMs.set(key, slowMs + workedMs);
    return result;
  }
}
