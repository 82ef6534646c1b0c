import { invariant } from '../lib/errors.ts';
import type { Steps } from '../lib/workTurns.ts';

/** Blocks are split beyond this length: insertion moves at most this many references. */
const BLOCK_MAX = 512;
/** Of a block that is filled: some values can be added before it is split. */
const FILLED = 400;

/** Below 0: the first key comes before the second; 0: they are equal. */
export type Order<K> = (a: K, b: K) => number;

/** IMEIs as text, ids as numbers. */
function byValue(a: unknown, b: unknown): number {
  return (a as string) < (b as string) ? -1 : a === b ? 0 : 1;
}

/** Values in ascending order of a unique key, by their places in it. */
export interface Ranked<T, K> {
  readonly keyOf: (value: T) => K;
  readonly order: Order<K>;
  readonly size: number;
  /** The value at `index` (0 = smallest key). */
  at(index: number): T | undefined;
  /** Up to `limit` values from `index` on. */
  slice(index: number, limit: number): T[];
  /** How many values have a key below `key`. */
  rank(key: K): number;
}

/**
 * Values in ascending order of a unique key, with insertion, removal and rank in O(√n), in a list of short sorted
 * blocks. A plain sorted array would move half a million references for each new device of a large fleet.
 */
export class SortedList<T, K> implements Ranked<T, K> {
  readonly keyOf: (value: T) => K;
  readonly order: Order<K>;
  #blocks: T[][] = [[]];
  #size = 0;

  /** `order` is of keys that are neither text nor numbers. */
  constructor(keyOf: (value: T) => K, order: Order<K> = byValue) {
    this.keyOf = keyOf;
    this.order = order;
  }

  get size(): number {
    return this.#size;
  }

  /** Fills an empty list with values in their order. The list must not be used before the last step. */
  *fill(sorted: ArrayLike<T>): Steps<void> {
    invariant(this.#size === 0, 'a list that is filled is empty');
    for (let at = 0; at < sorted.length; at += FILLED) {
      const length = Math.min(FILLED, sorted.length - at);
      this.#blocks[at / FILLED] = Array.from({ length }, (_, n) => sorted[at + n] as T);
      yield;
    }
    this.#size = sorted.length;
  }

  /** Adds `value`; a value with the same key is replaced. */
  put(value: T): void {
    const key = this.keyOf(value);
    const b = this.#blockFor(key);
    const block = this.#blocks[b] as T[];
    const i = this.#lowerBound(block, key);
    const present = block[i];
    if (present !== undefined && this.order(this.keyOf(present), key) === 0) {
      block[i] = value;
      return;
    }
    block.splice(i, 0, value);
    this.#size++;
    if (block.length > BLOCK_MAX) this.#blocks.splice(b + 1, 0, block.splice(BLOCK_MAX >> 1));
  }

  remove(key: K): boolean {
    const b = this.#blockFor(key);
    const block = this.#blocks[b] as T[];
    const i = this.#lowerBound(block, key);
    const present = block[i];
    if (present === undefined || this.order(this.keyOf(present), key) !== 0) return false;
    block.splice(i, 1);
    this.#size--;
    if (block.length === 0 && this.#blocks.length > 1) this.#blocks.splice(b, 1);
    return true;
  }

  rank(key: K): number {
    const b = this.#blockFor(key);
    let rank = 0;
    for (let i = 0; i < b; i++) rank += (this.#blocks[i] as T[]).length;
    return rank + this.#lowerBound(this.#blocks[b] as T[], key);
  }

  at(index: number): T | undefined {
    if (index < 0 || index >= this.#size) return undefined;
    let rest = index;
    for (const block of this.#blocks) {
      if (rest < block.length) return block[rest];
      rest -= block.length;
    }
    return undefined;
  }

  slice(index: number, limit: number): T[] {
    const out: T[] = [];
    let rest = index;
    for (const block of this.#blocks) {
      if (out.length >= limit) break;
      if (rest >= block.length) {
        rest -= block.length;
        continue;
      }
      for (let i = rest; i < block.length && out.length < limit; i++) out.push(block[i] as T);
      rest = 0;
    }
    return out;
  }

  /** Up to `limit` values whose keys are not below `key`. Does not look at those before, unlike `slice` at a rank. */
  from(key: K, limit: number): T[] {
    const first = this.#blockFor(key);
    const out: T[] = [];
    for (let b = first; b < this.#blocks.length && out.length < limit; b++) {
      const block = this.#blocks[b] as T[];
      const from = b === first ? this.#lowerBound(block, key) : 0;
      for (let i = from; i < block.length && out.length < limit; i++) out.push(block[i] as T);
    }
    return out;
  }

  /** The last block whose first key is not above `key`. */
  #blockFor(key: K): number {
    let low = 0;
    let high = this.#blocks.length - 1;
    while (low < high) {
      const mid = (low + high + 1) >> 1;
      const first = (this.#blocks[mid] as T[])[0] as T;
      if (this.order(this.keyOf(first), key) <= 0) low = mid;
      else high = mid - 1;
    }
    return low;
  }

  #lowerBound(block: T[], key: K): number {
    let low = 0;
    let high = block.length;
    while (low < high) {
      const mid = (low + high) >> 1;
      if (this.order(this.keyOf(block[mid] as T), key) < 0) low = mid + 1;
      else high = mid;
    }
    return low;
  }
}

/**
 * The page [offset, offset + limit) of a few lists of one order, merged, in O(log² n + limit). No key is in two of them.
 * Bisection on ranks finds how many of the skipped values come from each list.
 */
export function mergedPage<T, K>(lists: readonly Ranked<T, K>[], offset: number, limit: number): T[] {
  const [first] = lists;
  if (first === undefined) return [];
  if (lists.length === 1) return first.slice(offset, limit);
  const { keyOf, order } = first;
  const parts = lists.map((list) => list.slice(skipped(list, lists, offset), limit));
  const next = parts.map(() => 0);
  const page: T[] = [];
  while (page.length < limit) {
    let from = -1;
    let least: T | undefined;
    for (const [n, part] of parts.entries()) {
      const value = part[next[n] as number];
      if (value === undefined) continue;
      if (least === undefined || order(keyOf(value), keyOf(least)) < 0) [from, least] = [n, value];
    }
    if (least === undefined) break;
    page.push(least);
    next[from] = (next[from] as number) + 1;
  }
  return page;
}

/** How many values of a list are among the first `offset` of all lists. */
function skipped<T, K>(list: Ranked<T, K>, lists: readonly Ranked<T, K>[], offset: number): number {
  let low = 0;
  let high = Math.min(offset, list.size);
  while (low < high) {
    const mid = (low + high) >> 1;
    const key = list.keyOf(list.at(mid) as T);
    const rank = lists.reduce((sum, other) => sum + other.rank(key), 0);
    if (rank < offset) low = mid + 1;
    else high = mid;
  }
  return low;
}
