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

/** Small pages: of a thousand rows one may have a number. */
const SPARSE_BITS = 6;
const IN_SPARSE = 2 ** SPARSE_BITS - 1;

/** A whole number from 0 to 2^32 - 1 for each row: 0 for most. */
export class SparseRows {
  readonly #pages: (Uint32Array | undefined)[] = [];

  get(row: number): number {
    return this.#pages[row >>> SPARSE_BITS]?.[row & IN_SPARSE] ?? 0;
  }

  set(row: number, value: number): void {
    let page = this.#pages[row >>> SPARSE_BITS];
    if (page === undefined) {
      page = new Uint32Array(2 ** SPARSE_BITS);
      this.#pages[row >>> SPARSE_BITS] = page;
    }
    page[row & IN_SPARSE] = value;
  }
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

/**
 * Cuts zeroed arrays of numbers from common pages, because V8 tracks each ArrayBuffer separately: with a few hundred
 * thousand of them, a garbage collection stopped the process for more than half a second. The first page has 2 KB, each
 * next one twice as much, up to 32 KB. A page is kept as long as any array in it, so arrays that are dropped together have
 * pages of their own, and none must ever be transferred.
 */
export class NumberPages {
  #page = new ArrayBuffer(0);
  #pageNumbers = FIRST_PAGE_NUMBERS / 2;
  /** Of the page. */
  #usedNumbers = 0;
  #numbers = 0;

  /** Large arrays have memory of their own. */
  take(length: number): Float64Array {
    if (length > MAX_PIECE) return new Float64Array(length);
    if (this.#usedNumbers + length > this.#numbers) {
      this.#pageNumbers = Math.min(2 * this.#pageNumbers, PAGE_NUMBERS);
      this.#numbers = Math.max(this.#pageNumbers, length);
      this.#page = new ArrayBuffer(this.#numbers * Float64Array.BYTES_PER_ELEMENT);
      this.#usedNumbers = 0;
    }
    const at = this.#usedNumbers * Float64Array.BYTES_PER_ELEMENT;
    this.#usedNumbers += length;
    return new Float64Array(this.#page, at, length);
  }
}

const FIRST_PAGE_NUMBERS = 2 ** 8;
/** The last array of a page of 32 KB keeps no more alive than some seventeen areas of twenty vertices. */
const PAGE_NUMBERS = 2 ** 12;
const MAX_PIECE = PAGE_NUMBERS / 4;
