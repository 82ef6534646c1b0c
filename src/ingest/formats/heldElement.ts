/** What a batch is cut into: the text of one point, or what is too large to be one. */
export type Element = string | typeof OVERSIZED;

/** An element that is longer, or made of more values, than any point. It is not read. */
export const OVERSIZED = Symbol('larger than any point');

/** A point has a dozen short members; whole messages of some trackers, as text in an unknown member, fit as well. */
export const MAX_ELEMENT_BYTES = 16_384;
/** Values cost more than text: so many of them are built in less than a millisecond. */
export const MAX_ELEMENT_VALUES = 1_000;

/** One element of a batch that comes in pieces: keeps what earlier pieces had of it, as far as it may be a point. */
export class HeldElement {
  #kept: Buffer | null = null;
  #bytes = 0;

  get isEmpty(): boolean {
    return this.#bytes === 0;
  }

  /** The element goes on behind this piece. */
  hold(bytes: Buffer, from: number): void {
    const length = bytes.length - from;
    if (this.#bytes + length <= MAX_ELEMENT_BYTES) {
      this.#kept ??= Buffer.allocUnsafeSlow(MAX_ELEMENT_BYTES);
      bytes.copy(this.#kept, this.#bytes, from);
    }
    this.#bytes += length;
  }

  /** The element ends in this piece, before `to`. */
  end(bytes: Buffer, from: number, to: number): Element {
    const held = this.#bytes;
    const length = held + to - from;
    this.#bytes = 0;
    if (length > MAX_ELEMENT_BYTES) return OVERSIZED;
    if (held === 0) return textOf(bytes, from, to);
    const kept = this.#kept as Buffer;
    bytes.copy(kept, held, from, to);
    return textOf(kept, 0, length);
  }
}

function textOf(bytes: Buffer, from: number, to: number): Element {
  // Shorter ones are not even counted.
  const isRich =
    to - from > MAX_ELEMENT_VALUES && hasMoreValues(bytes.subarray(from, to), MAX_ELEMENT_VALUES);
  return isRich ? OVERSIZED : bytes.toString('utf8', from, to);
}

const QUOTE = 0x22;
const COMMA = 0x2c;
const BACKSLASH = 0x5c;
const OPEN_BRACKET = 0x5b;
const OPEN_BRACE = 0x7b;

/**
 * Whether JSON text, in UTF-8, may hold more than `max` values, for it is they that make JSON.parse slow and its result
 * large. Counted are commas and opening brackets outside of strings: an empty object or array counts as two.
 */
export function hasMoreValues(text: Uint8Array, max: number): boolean {
  let values = 1;
  let inString = false;
  for (let at = 0; at < text.length && values <= max; at++) {
    const code = text[at];
    if (code === QUOTE) inString = !inString;
    else if (inString) {
      if (code === BACKSLASH) at++;
    } else if (code === COMMA || code === OPEN_BRACE || code === OPEN_BRACKET) values++;
  }
  return values > max;
}
