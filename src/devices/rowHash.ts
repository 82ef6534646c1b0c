/** What rows are found by; `field` says by which of their keys. No two rows of a hash have the same. */
export interface RowKeys {
  /** A number from 0 to 2^53. */
  keyHead(row: number, field: number): number;
  /** Tells rows with the same head apart. */
  keyTail(row: number, field: number): number;
}

/** Tables of their own for parts of the keys: one that grows is copied in a fraction of a millisecond. */
const PART_BITS = 11;
const INITIAL_PLACES = 4;

/**
 * Finds rows by their keys: numbers of rows in open tables, at most three quarters full, in some 7 bytes for each. Row 0
 * means that there is none.
 */
export class RowHash {
  readonly #keys: RowKeys;
  readonly #field: number;
  readonly #parts: (Uint32Array | undefined)[] = new Array(2 ** PART_BITS).fill(undefined);
  readonly #counts = new Uint32Array(2 ** PART_BITS);

  constructor(keys: RowKeys, field: number) {
    this.#keys = keys;
    this.#field = field;
  }

  /** The row with this key, or 0. */
  find(head: number, tail: number): number {
    const hash = hashOf(head);
    const table = this.#parts[hash >>> (32 - PART_BITS)];
    return table === undefined ? 0 : (table[this.#placeOf(table, hash, head, tail)] as number);
  }

  /** Adds a row, in place of the one with its key if there is one. */
  put(row: number): void {
    const head = this.#head(row);
    const hash = hashOf(head);
    const part = hash >>> (32 - PART_BITS);
    let table = this.#parts[part];
    if (table === undefined || 4 * (this.#counts[part] as number) >= 3 * table.length)
      table = this.#grow(part);
    const place = this.#placeOf(table, hash, head, this.#tail(row));
    if (table[place] === 0) this.#counts[part] = (this.#counts[part] as number) + 1;
    table[place] = row;
  }

  /** Removes the row, unless another one has its key by now. Its key must still be that with which it was added. */
  remove(row: number): void {
    const head = this.#head(row);
    const hash = hashOf(head);
    const part = hash >>> (32 - PART_BITS);
    const table = this.#parts[part];
    if (table === undefined) return;
    const mask = table.length - 1;
    let hole = this.#placeOf(table, hash, head, this.#tail(row));
    if (table[hole] !== row) return;
    this.#counts[part] = (this.#counts[part] as number) - 1;
    // Rows behind the hole that are not at home move up, so that no search ends before them.
    for (let place = (hole + 1) & mask; table[place] !== 0; place = (place + 1) & mask) {
      const home = hashOf(this.#head(table[place] as number)) & mask;
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
    for (let place = hash & mask; ; place = (place + 1) & mask) {
      const row = table[place] as number;
      if (row === 0 || (this.#head(row) === head && this.#tail(row) === tail)) return place;
    }
  }

  #grow(part: number): Uint32Array {
    const present = this.#parts[part] ?? NO_ROWS;
    const table = new Uint32Array(Math.max(INITIAL_PLACES, 2 * present.length));
    const mask = table.length - 1;
    for (const row of present) {
      if (row === 0) continue;
      let place = hashOf(this.#head(row)) & mask;
      while (table[place] !== 0) place = (place + 1) & mask;
      table[place] = row;
    }
    this.#parts[part] = table;
    return table;
  }
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
