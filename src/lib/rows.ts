import { invariant } from './errors.ts';
import { passingNumbers, radixOrder, release } from './radixOrder.ts';
import type { Steps } from './workTurns.ts';

/**
 * Rows of a page. Memory grows by a page, so nothing is copied for that. Only the first one begins small and is copied as
 * it grows: many of those who keep rows have few.
 */
const PAGE_BITS = 12;
const FIRST_ROWS = 2 ** 6;
const PAGE_ROWS = 2 ** PAGE_BITS;
const IN_PAGE = PAGE_ROWS - 1;

/**
 * Rows of numbers without an object for each. Each row has some fields of eight bytes, any of which may be two whole numbers
 * of four instead. Row 0 exists from the beginning; others are taken and given back.
 */
export class RowPages {
  readonly #rowDoubles: number;
  readonly #rowInts: number;
  readonly #doubles: Float64Array[] = [];
  readonly #ints: Uint32Array[] = [];
  readonly #free: number[] = [];
  #used = 0;
  /** For how many rows there is memory. */
  #room = 0;

  constructor(rowDoubles: number) {
    this.#rowDoubles = rowDoubles;
    this.#rowInts = 2 * rowDoubles;
    this.take();
  }

  /** Above all rows that were ever taken. */
  get end(): number {
    return this.#used;
  }

  /** A row that nobody uses. It is 0 in all fields, or as it was given back. */
  take(): number {
    const freed = this.#free.pop();
    if (freed !== undefined) return freed;
    if (this.#used === this.#room) this.#grow();
    return this.#used++;
  }

  #grow(): void {
    const isFirst = this.#room < PAGE_ROWS;
    const rows = isFirst ? Math.max(FIRST_ROWS, 2 * this.#room) : PAGE_ROWS;
    const doubles = new Float64Array(rows * this.#rowDoubles);
    const number = isFirst ? 0 : this.#doubles.length;
    if (isFirst && this.#room > 0) doubles.set(this.#doubles[0] as Float64Array);
    this.#doubles[number] = doubles;
    this.#ints[number] = new Uint32Array(doubles.buffer);
    this.#room = isFirst ? rows : this.#room + rows;
  }

  free(row: number): void {
    this.#free.push(row);
  }

  clear(row: number): void {
    const from = (row & IN_PAGE) * this.#rowDoubles;
    (this.#doubles[row >>> PAGE_BITS] as Float64Array).fill(0, from, from + this.#rowDoubles);
  }

  double(row: number, field: number): number {
    return (this.#doubles[row >>> PAGE_BITS] as Float64Array)[
      (row & IN_PAGE) * this.#rowDoubles + field
    ] as number;
  }

  setDouble(row: number, field: number, value: number): void {
    (this.#doubles[row >>> PAGE_BITS] as Float64Array)[(row & IN_PAGE) * this.#rowDoubles + field] = value;
  }

  /** A whole number from 0 to 2^32 - 1; `field` n and the one after it are the halves of the double n / 2. */
  int(row: number, field: number): number {
    return (this.#ints[row >>> PAGE_BITS] as Uint32Array)[(row & IN_PAGE) * this.#rowInts + field] as number;
  }

  setInt(row: number, field: number, value: number): void {
    (this.#ints[row >>> PAGE_BITS] as Uint32Array)[(row & IN_PAGE) * this.#rowInts + field] = value;
  }
}

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
    const place = this.#placeOf(table, hash, head, this.#keys.keyTail(row, this.#field));
    const present = (table[place] as number) & ROW_MASK;
    if (present === 0) this.#counts[part] = (this.#counts[part] as number) + 1;
    table[place] = entryOf(hash, row);
    return present;
  }

  /** Adds many rows with keys that no row has yet. It fills one part after the other, which then stays in the processor's cache. */
  *fill(rows: ArrayLike<number>): Steps<void> {
    const hashes = passingNumbers(rows.length);
    const order = yield* radixOrder(rows.length, (n) => {
      const row = rows[n] as number;
      invariant(row <= ROW_MASK, 'a number of a row fits into an entry');
      const hash = hashOf(this.#head(row));
      hashes[n] = hash;
      return hash >>> PART_SHIFT;
    });
    const partAt = (at: number): number => (hashes[order[at] as number] as number) >>> PART_SHIFT;
    for (let from = 0, to = 0; from < order.length; from = to) {
      const part = partAt(from);
      while (to < order.length && partAt(to) === part) to++;
      const table = this.#tableFor(part, to - from);
      for (let at = from; at < to; at++) {
        const n = order[at] as number;
        insert(table, hashes[n] as number, entryOf(hashes[n] as number, rows[n] as number));
      }
      this.#counts[part] = (this.#counts[part] as number) + to - from;
      yield;
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
    let hole = this.#placeOf(table, hash, head, this.#keys.keyTail(row, this.#field));
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

  /** Where the row with this key is, or would be. */
  #placeOf(table: Uint32Array, hash: number, head: number, tail: number): number {
    const mask = table.length - 1;
    const tag = entryOf(hash, 0);
    for (let place = hash & mask; ; place = (place + 1) & mask) {
      const entry = table[place] as number;
      if (entry === 0) return place;
      if (((entry ^ tag) & ~ROW_MASK) !== 0) continue;
      const row = entry & ROW_MASK;
      if (this.#head(row) === head && this.#keys.keyTail(row, this.#field) === tail) return place;
    }
  }

  /** The table of a part, with room for that many more rows. */
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

/** Records begin at multiples of this many bytes. */
const UNIT_BYTES = 8;
const UNIT_BITS = 17;
/** A page is a megabyte; a text that is longer has one of its own. */
const PAGE_UNITS = 2 ** UNIT_BITS;
/** Before each text: how many bytes it has, and in the highest bit whether they are UTF-8 and not Latin-1. */
const HEADER_BYTES = 4;
const IS_UTF8 = 0x8000_0000;

/**
 * Many short well-formed texts as bytes in a few large buffers, where each would take 24 bytes more as a string, and a
 * reference to it that the garbage collector follows. A text is known by a number above 0. What is freed is taken again
 * by texts of about the same length.
 */
export class TextArena {
  /** Texts are known by the number of their page, from 1 on, times PAGE_UNITS, plus their first unit in it. */
  readonly #pages: (Buffer | undefined)[] = [undefined];
  readonly #freePages: number[] = [];
  /** By units: records that were freed. */
  readonly #free = new Map<number, number[]>();
  /** The page that is being filled, and the next unit in it. */
  #page = 0;
  #next = PAGE_UNITS;

  /** The bytes of all pages. */
  get bytes(): number {
    return this.#pages.reduce((sum, page) => sum + (page?.length ?? 0), 0);
  }

  put(text: string): number {
    const isUtf8 = WIDE.test(text);
    const bytes = isUtf8 ? Buffer.byteLength(text) : text.length;
    const ref = this.#take(unitsOf(bytes));
    const page = this.#pages[ref >>> UNIT_BITS] as Buffer;
    const at = (ref & (PAGE_UNITS - 1)) * UNIT_BYTES;
    page.writeUInt32LE(isUtf8 ? (bytes | IS_UTF8) >>> 0 : bytes, at);
    page.write(text, at + HEADER_BYTES, isUtf8 ? 'utf8' : 'latin1');
    return ref;
  }

  /** Puts a text of `length` ASCII characters. */
  putAscii(text: Uint8Array, length: number): number {
    const ref = this.#take(unitsOf(length));
    const page = this.#pages[ref >>> UNIT_BITS] as Buffer;
    const at = (ref & (PAGE_UNITS - 1)) * UNIT_BYTES;
    page.writeUInt32LE(length, at);
    for (let n = 0; n < length; n++) page[at + HEADER_BYTES + n] = text[n] as number;
    return ref;
  }

  text(ref: number): string {
    const page = this.#pages[ref >>> UNIT_BITS] as Buffer;
    const from = (ref & (PAGE_UNITS - 1)) * UNIT_BYTES + HEADER_BYTES;
    const header = headerAt(page, from);
    return header < IS_UTF8
      ? page.toString('latin1', from, from + header)
      : page.toString('utf8', from, from + header - IS_UTF8);
  }

  free(ref: number): void {
    const page = this.#pages[ref >>> UNIT_BITS] as Buffer;
    if (page.length > PAGE_UNITS * UNIT_BYTES) {
      this.#pages[ref >>> UNIT_BITS] = undefined;
      this.#freePages.push(ref >>> UNIT_BITS);
      return;
    }
    const header = headerAt(page, (ref & (PAGE_UNITS - 1)) * UNIT_BYTES + HEADER_BYTES);
    const units = unitsOf(header % IS_UTF8);
    const free = this.#free.get(units);
    if (free === undefined) this.#free.set(units, [ref]);
    else free.push(ref);
  }

  #take(units: number): number {
    if (units > PAGE_UNITS) return this.#open(units) * PAGE_UNITS;
    const freed = this.#free.get(units)?.pop();
    if (freed !== undefined) return freed;
    if (this.#next + units > PAGE_UNITS) {
      this.#page = this.#open(PAGE_UNITS);
      this.#next = 0;
    }
    const ref = this.#page * PAGE_UNITS + this.#next;
    this.#next += units;
    return ref;
  }

  #open(units: number): number {
    const number = this.#freePages.pop() ?? this.#pages.length;
    this.#pages[number] = Buffer.allocUnsafeSlow(units * UNIT_BYTES);
    return number;
  }
}

const WIDE = /[^\0-\xff]/;

function unitsOf(textBytes: number): number {
  return Math.ceil((HEADER_BYTES + textBytes) / UNIT_BYTES);
}

function headerAt(page: Buffer, textAt: number): number {
  return page.readUInt32LE(textAt - HEADER_BYTES);
}

/**
 * Values of which many are equal, each kept once, while it is used. They are known by small numbers from 1 on; 0 is the
 * value that is given for it.
 */
export class Interned<T> {
  readonly #keyOf: (value: T) => string;
  readonly #byKey = new Map<string, number>();
  readonly #values: T[];
  readonly #uses: number[] = [0];
  readonly #free: number[] = [];
  /** What was used last: very often it comes again. */
  #last = 0;

  constructor(none: T, keyOf: (value: T) => string) {
    this.#values = [none];
    this.#keyOf = keyOf;
  }

  value(number: number): T {
    return this.#values[number] as T;
  }

  /** Its number. It is kept until it was released as often as it was used. */
  use(value: T): number {
    if (value === this.#values[0]) return 0;
    if (value !== this.#values[this.#last]) this.#last = this.#numberOf(value);
    this.#uses[this.#last] = (this.#uses[this.#last] as number) + 1;
    return this.#last;
  }

  release(number: number): void {
    if (number === 0) return;
    const uses = (this.#uses[number] as number) - 1;
    this.#uses[number] = uses;
    if (uses > 0) return;
    const [none] = this.#values as [T];
    this.#byKey.delete(this.#keyOf(this.#values[number] as T));
    this.#values[number] = none;
    this.#free.push(number);
  }

  #numberOf(value: T): number {
    const key = this.#keyOf(value);
    const known = this.#byKey.get(key);
    if (known !== undefined) return known;
    const number = this.#free.pop() ?? this.#values.length;
    this.#byKey.set(key, number);
    this.#values[number] = value;
    this.#uses[number] = 0;
    return number;
  }
}
