import { invariant } from './errors.ts';
import { passingNumbers, release } from './radixOrder.ts';
import type { Steps } from './workTurns.ts';

/** What rows are found by; `field` says by which of their keys. No two rows of a hash have the same. */
export interface RowKeys {
  /** A number from 0 to 2^53. */
  keyHead(row: number, field: number): number;
  /** Tells rows with the same head apart. */
  keyTail(row: number, field: number): number;
}

/** Tables of their own for parts of the keys: one that grows is copied in a fraction of a millisecond. */
const PART_BITS = 11;
const PARTS = 2 ** PART_BITS;
const PART_SHIFT = 32 - PART_BITS;
const LEAST_PLACES = 4;
/** Bits of the number of a row; the other bits of an entry are a part of the hash, its tag. */
const ROW_BITS = 26;
const ROW_MASK = 2 ** ROW_BITS - 1;

/** Rows that are added before other work has its turn: a fraction of a millisecond. */
const FILLED_PER_STEP = 4_096;

/**
 * Finds rows by their keys: numbers of rows in open tables, at most three quarters full, in some 7 bytes for each. Row 0
 * means that there is none. An entry has six bits of the hash too, so hardly any row is read but the one that is found:
 * rows are far away in memory.
 */
export class RowHash {
  readonly #keys: RowKeys;
  readonly #field: number;
  readonly #parts: (Uint32Array | undefined)[] = new Array(PARTS).fill(undefined);
  readonly #counts = new Uint32Array(PARTS);

  constructor(keys: RowKeys, field: number) {
    this.#keys = keys;
    this.#field = field;
  }

  /** The row with this key, or 0. */
  find(head: number, tail: number): number {
    const hash = hashOf(head);
    const table = this.#parts[hash >>> PART_SHIFT];
    if (table === undefined) return 0;
    return (table[this.#placeOf(table, hash, head, tail)] as number) & ROW_MASK;
  }

  /** Adds a row, in place of the one with its key, which is returned; 0: there was none. */
  put(row: number): number {
    invariant(row <= ROW_MASK, 'a number of a row fits into an entry');
    const head = this.#head(row);
    const hash = hashOf(head);
    const part = hash >>> PART_SHIFT;
    const table = this.#tableFor(part, 1);
    const place = this.#placeOf(table, hash, head, this.#tail(row));
    const present = (table[place] as number) & ROW_MASK;
    if (present === 0) this.#counts[part] = (this.#counts[part] as number) + 1;
    table[place] = entryOf(hash, row);
    return present;
  }

  /**
   * Adds many rows with keys that no row has yet, in the order of their parts: each part is then in the cache of the processor
   * while it is filled, so a row takes a fifth of the time of `put`.
   */
  *fill(rows: ArrayLike<number>): Steps<void> {
    const { length } = rows;
    const hashes = passingNumbers(length);
    const ends = new Uint32Array(PARTS);
    for (let n = 0; n < length; n++) {
      const hash = hashOf(this.#head(rows[n] as number));
      hashes[n] = hash;
      const part = hash >>> PART_SHIFT;
      ends[part] = (ends[part] as number) + 1;
      if (n % FILLED_PER_STEP === 0) yield;
    }
    for (let part = 0, sum = 0; part < PARTS; part++) {
      const added = ends[part] as number;
      ends[part] = sum;
      sum += added;
      if (added > 0) this.#tableFor(part, added);
      this.#counts[part] = (this.#counts[part] as number) + added;
    }
    const order = passingNumbers(length);
    for (let n = 0; n < length; n++) {
      const part = (hashes[n] as number) >>> PART_SHIFT;
      const at = ends[part] as number;
      order[at] = n;
      ends[part] = at + 1;
      if (n % FILLED_PER_STEP === 0) yield;
    }
    for (let at = 0; at < length; at++) {
      const n = order[at] as number;
      const hash = hashes[n] as number;
      insert(this.#parts[hash >>> PART_SHIFT] as Uint32Array, hash, entryOf(hash, rows[n] as number));
      if (at % FILLED_PER_STEP === 0) yield;
    }
    release(hashes);
    release(order);
  }

  /** Removes the row, unless another one has its key by now. Its key must still be that with which it was added. */
  remove(row: number): void {
    const head = this.#head(row);
    const hash = hashOf(head);
    const part = hash >>> PART_SHIFT;
    const table = this.#parts[part];
    if (table === undefined) return;
    const mask = table.length - 1;
    let hole = this.#placeOf(table, hash, head, this.#tail(row));
    if (((table[hole] as number) & ROW_MASK) !== row) return;
    this.#counts[part] = (this.#counts[part] as number) - 1;
    // Rows behind the hole that are not at home move up, so that no search ends before them.
    for (let place = (hole + 1) & mask; table[place] !== 0; place = (place + 1) & mask) {
      const home = hashOf(this.#head((table[place] as number) & ROW_MASK)) & mask;
      if (((place - home) & mask) < ((place - hole) & mask)) continue;
      table[hole] = table[place] as number;
      hole = place;
    }
    table[hole] = 0;
  }

  #head(row: number): number {
    return this.#keys.keyHead(row, this.#field);
  }

  #tail(row: number): number {
    return this.#keys.keyTail(row, this.#field);
  }

  /** Where the row with this key is, or would be. */
  #placeOf(table: Uint32Array, hash: number, head: number, tail: number): number {
    const mask = table.length - 1;
    const tag = entryOf(hash, 0);
    for (let place = hash & mask; ; place = (place + 1) & mask) {
      const entry = table[place] as number;
      if (entry === 0) return place;
      if (((entry ^ tag) & ~ROW_MASK) !== 0) continue;
      const row = entry & ROW_MASK;
      if (this.#head(row) === head && this.#tail(row) === tail) return place;
    }
  }

  /** The table of a part, with places for so many rows more. */
  #tableFor(part: number, added: number): Uint32Array {
    const present = this.#parts[part] ?? NO_ROWS;
    const rows = (this.#counts[part] as number) + added;
    if (4 * rows <= 3 * present.length) return present;
    let places = Math.max(LEAST_PLACES, present.length);
    while (4 * rows > 3 * places) places *= 2;
    const table = new Uint32Array(places);
    for (const entry of present) if (entry !== 0) insert(table, hashOf(this.#head(entry & ROW_MASK)), entry);
    this.#parts[part] = table;
    return table;
  }
}

/** Puts an entry whose key is not in the table. */
function insert(table: Uint32Array, hash: number, entry: number): void {
  const mask = table.length - 1;
  let place = hash & mask;
  while (table[place] !== 0) place = (place + 1) & mask;
  table[place] = entry;
}

/** The bits of a hash that say neither the part nor, in tables of up to 32 768 places, the place. */
function entryOf(hash: number, row: number): number {
  return (((hash >>> 15) << ROW_BITS) | row) >>> 0;
}

const NO_ROWS = new Uint32Array(0);
const TWO_32 = 2 ** 32;

/** The finalizer of MurmurHash3: every bit of a key changes half of the bits, so ids in a row are spread. */
function hashOf(head: number): number {
  let hash = (head >>> 0) ^ Math.imul(Math.floor(head / TWO_32), 0x9e3779b1);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
