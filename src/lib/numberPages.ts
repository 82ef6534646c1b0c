/**
 * Cuts zeroed arrays of numbers from common pages of 32 KB, because V8 tracks each ArrayBuffer separately: with a few
 * hundred thousand of them, a garbage collection stopped the process for more than half a second. A page is kept as long
 * as any array in it, so arrays that are dropped together have pages of their own, and none must ever be transferred.
 */
export class NumberPages {
  #page = new ArrayBuffer(0);
  #used = PAGE;

  /** Large arrays have memory of their own. */
  take(length: number): Float64Array {
    if (length > MAX_PIECE) return new Float64Array(length);
    if (this.#used + length > PAGE) {
      this.#page = new ArrayBuffer(PAGE * Float64Array.BYTES_PER_ELEMENT);
      this.#used = 0;
    }
    const piece = new Float64Array(this.#page, this.#used * Float64Array.BYTES_PER_ELEMENT, length);
    this.#used += length;
    return piece;
  }
}

/** In numbers: 32 KB. The last array of a page keeps no more alive than some seventeen areas of twenty vertices. */
const PAGE = 2 ** 12;
const MAX_PIECE = PAGE / 4;
