/**
 * A zeroed array of `length` numbers that is kept for long. Small arrays are cut from common pages, because V8 tracks
 * every ArrayBuffer by itself: with a few hundred thousand of them, a garbage collection stopped the process for more
 * than half a second. A page is kept as long as any array in it, so an array must never be transferred.
 */
export function numbers(length: number): Float64Array {
  if (length > MAX_PIECE) return new Float64Array(length);
  if (used + length > PAGE) {
    page = new ArrayBuffer(PAGE * Float64Array.BYTES_PER_ELEMENT);
    used = 0;
  }
  const piece = new Float64Array(page, used * Float64Array.BYTES_PER_ELEMENT, length);
  used += length;
  return piece;
}

/** In numbers: 32 KB, some seventeen areas of twenty vertices: what the last one of a page keeps alive is no more than that. */
const PAGE = 2 ** 12;
const MAX_PIECE = PAGE / 4;

let page = new ArrayBuffer(0);
let used = PAGE;
