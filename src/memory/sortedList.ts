/** Blocks are split beyond this length: insertion moves at most this many references. */
const BLOCK_MAX = 512;

/** IMEIs are ordered as text, ids as numbers. */
type Key = string | number;

/**
 * Values in ascending order of a unique key, with insertion, removal and rank in O(√n): short sorted blocks
 * in a row. A plain sorted array would move half a million references for each new device of a large fleet.
 */
export class SortedList<T, K extends Key> {
  readonly #keyOf: (value: T) => K;
  #blocks: T[][] = [[]];
  #size = 0;

  constructor(keyOf: (value: T) => K) {
    this.#keyOf = keyOf;
  }

  get size(): number {
    return this.#size;
  }

  /** Adds `value`; a value with the same key is replaced. */
  put(value: T): void {
    const key = this.#keyOf(value);
    const b = this.#blockFor(key);
    const block = this.#blocks[b] as T[];
    const i = this.#lowerBound(block, key);
    const present = block[i];
    if (present !== undefined && this.#keyOf(present) === key) {
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
    if (present === undefined || this.#keyOf(present) !== key) return false;
    block.splice(i, 1);
    this.#size--;
    if (block.length === 0 && this.#blocks.length > 1) this.#blocks.splice(b, 1);
    return true;
  }

  /** How many values have a key below `key`. */
  rank(key: K): number {
    const b = this.#blockFor(key);
    let rank = 0;
    for (let i = 0; i < b; i++) rank += (this.#blocks[i] as T[]).length;
    return rank + this.#lowerBound(this.#blocks[b] as T[], key);
  }

  /** The value at `index` (0 = smallest key). */
  at(index: number): T | undefined {
    if (index < 0 || index >= this.#size) return undefined;
    let rest = index;
    for (const block of this.#blocks) {
      if (rest < block.length) return block[rest];
      rest -= block.length;
    }
    return undefined;
  }

  /** Up to `limit` values from `index` on. */
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

  /** The last block whose first key is not above `key`. */
  #blockFor(key: K): number {
    let low = 0;
    let high = this.#blocks.length - 1;
    while (low < high) {
      const mid = (low + high + 1) >> 1;
      const first = (this.#blocks[mid] as T[])[0] as T;
      if (this.#keyOf(first) <= key) low = mid;
      else high = mid - 1;
    }
    return low;
  }

  #lowerBound(block: T[], key: K): number {
    let low = 0;
    let high = block.length;
    while (low < high) {
      const mid = (low + high) >> 1;
      if (this.#keyOf(block[mid] as T) < key) low = mid + 1;
      else high = mid;
    }
    return low;
  }
}

/**
 * The page [offset, offset + limit) of two lists merged in key order, in O(log² n + limit): finds how many of the
 * skipped values come from each list by bisection on ranks.
 */
export function mergedPage<T, K extends Key>(
  a: SortedList<T, K>,
  b: SortedList<T, K>,
  keyOf: (value: T) => K,
  offset: number,
  limit: number,
): T[] {
  let low = 0;
  let high = Math.min(offset, a.size);
  while (low < high) {
    const mid = (low + high) >> 1;
    const key = keyOf(a.at(mid) as T);
    if (mid + b.rank(key) < offset) low = mid + 1;
    else high = mid;
  }
  const fromA = a.slice(low, limit);
  const fromB = b.slice(offset - low, limit);
  const out: T[] = [];
  let i = 0;
  let j = 0;
  while (out.length < limit && (i < fromA.length || j < fromB.length)) {
    const left = fromA[i];
    const right = fromB[j];
    if (right === undefined || (left !== undefined && keyOf(left) < keyOf(right))) {
      out.push(left as T);
      i++;
    } else {
      out.push(right);
      j++;
    }
  }
  return out;
}
