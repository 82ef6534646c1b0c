/**
 * Room for `length` numbers, all 0, which is held for long. Small pieces are cut from common pages: V8 keeps account
 * of every ArrayBuffer by itself, and with a few hundred thousand of them a collection was seen to stop the process
 * for more than half a second. A page lives as long as any piece of it, so a piece must never be transferred.
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
