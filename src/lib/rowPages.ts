/** Rows of a page. Memory grows by a page, so nothing is copied for that. */
const PAGE_BITS = 12;
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
    if (this.#used === PAGE_ROWS * this.#doubles.length) {
      const page = new ArrayBuffer(PAGE_ROWS * this.#rowDoubles * Float64Array.BYTES_PER_ELEMENT);
      this.#doubles.push(new Float64Array(page));
      this.#ints.push(new Uint32Array(page));
    }
    return this.#used++;
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
