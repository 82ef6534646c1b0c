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
