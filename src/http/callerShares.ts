/** Callers that are told apart; the others count as one. */
const CALLERS_MAX = 4_096;
/** What is older than two of these does not count. */
const WINDOW_MS = 2_000;

/**
 * What each caller asks for of late, and how much of it may go on when there is not enough for all: the same for each, but
 * nobody gets more than they ask for (max-min fairness; Bertsekas and Gallager, Data Networks, section 6.5.2). So a caller
 * who asks for little is not refused because of one who asks for much.
 */
export class CallerShares<Caller> {
  readonly #asked = new RecentSums<Caller>(WINDOW_MS, CALLERS_MAX);
  /** Parts of calls that are still to be refused: with a share of a third, every third call makes one. */
  readonly #owed = new Map<Caller | null, number>();
  /** What a caller may ask for without being refused anything. */
  #level = Number.POSITIVE_INFINITY;

  /** `kept`: how much of all that is asked for may go on, from 0 to 1. */
  share(kept: number, nowMs: number): void {
    this.#asked.advance(nowMs);
    const asked = [...this.#asked.sums()].sort((a, b) => a - b);
    this.#level = levelOf(asked, kept);
    for (const caller of this.#owed.keys()) if (this.#asked.of(caller) === 0) this.#owed.delete(caller);
  }

  /** Counts a call that asks for so much. Whether it has to be refused. */
  isRefused(caller: Caller, cost: number): boolean {
    const known = this.#asked.add(caller, cost);
    const asked = this.#asked.of(known);
    const refused = asked > this.#level ? 1 - this.#level / asked : 0;
    const owed = (this.#owed.get(known) ?? 0) + refused;
    const isRefused = owed >= 1;
    this.#owed.set(known, isRefused ? owed - 1 : owed);
    return isRefused;
  }
}

/** Up to which each may have what they ask for so that together they get that much of it. `asked`: least first. */
function levelOf(asked: readonly number[], kept: number): number {
  let left = kept * asked.reduce((sum, each) => sum + each, 0);
  for (const [n, each] of asked.entries()) {
    const fair = left / (asked.length - n);
    if (each > fair) return fair;
    left -= each;
  }
  return kept === 0 ? 0 : Number.POSITIVE_INFINITY;
}

/** Sums by key over the last while, in two halves of which the older counts less and less. */
export class RecentSums<Key> {
  readonly #windowMs: number;
  readonly #keysMax: number;
  /** null: all keys that are not told apart. */
  #recent = new Map<Key | null, number>();
  #before = new Map<Key | null, number>();
  #fromMs = 0;
  #beforeWeight = 0;

  constructor(windowMs: number, keysMax: number) {
    this.#windowMs = windowMs;
    this.#keysMax = keysMax;
  }

  /** Returns the key under which it counts. */
  add(key: Key, amount: number): Key | null {
    const sums = this.#recent;
    const known = sums.has(key) || sums.size < this.#keysMax ? key : null;
    sums.set(known, (sums.get(known) ?? 0) + amount);
    return known;
  }

  of(key: Key | null): number {
    return (this.#recent.get(key) ?? 0) + this.#beforeWeight * (this.#before.get(key) ?? 0);
  }

  *sums(): Generator<number> {
    for (const key of new Set([...this.#recent.keys(), ...this.#before.keys()])) yield this.of(key);
  }

  advance(nowMs: number): void {
    const elapsedMs = nowMs - this.#fromMs;
    if (elapsedMs >= this.#windowMs) {
      this.#before = elapsedMs < 2 * this.#windowMs ? this.#recent : new Map();
      this.#recent = new Map();
      this.#fromMs = nowMs;
    }
    this.#beforeWeight = 1 - (nowMs - this.#fromMs) / this.#windowMs;
  }
}
