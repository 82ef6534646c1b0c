/** Small pages: of a thousand rows one may have a number. */
const PAGE_BITS = 6;
const IN_PAGE = 2 ** PAGE_BITS - 1;

/** A whole number from 0 to 2^32 - 1 for each row: 0 for most. */
export class SparseRows {
  readonly #pages: (Uint32Array | undefined)[] = [];

  get(row: number): number {
    return this.#pages[row >>> PAGE_BITS]?.[row & IN_PAGE] ?? 0;
  }

  set(row: number, value: number): void {
    let page = this.#pages[row >>> PAGE_BITS];
    if (page === undefined) {
      page = new Uint32Array(2 ** PAGE_BITS);
      this.#pages[row >>> PAGE_BITS] = page;
    }
    page[row & IN_PAGE] = value;
  }
}
