import { type Element, HeldElement } from './heldElement.ts';

/**
 * Cuts a JSON body, in UTF-8, as it comes: into the elements of a top-level array, or the one object that is the body.
 * Each is to be given to JSON.parse.
 *
 * The body is valid JSON exactly when it `isWhole` at its end and JSON.parse takes every element: only commas outside
 * strings and brackets cut, and what stands around the cuts is checked here. So a batch can be read in small steps,
 * and nothing of it must be kept but its points.
 */
export class JsonElements {
  readonly #take: (element: Element) => void;
  readonly #held = new HeldElement();
  #place: 'before' | 'opened' | 'element' | 'object' | 'behind' | 'broken' = 'before';
  /** Of brackets, and whether a string is open: in the element that has begun. */
  #depth = 0;
  #inString = false;
  #isEscaped = false;

  constructor(take: (element: Element) => void) {
    this.#take = take;
  }

  /** The text so far is no beginning of JSON. */
  get isBroken(): boolean {
    return this.#place === 'broken';
  }

  /** The text so far is a whole body. */
  get isWhole(): boolean {
    return this.#place === 'behind';
  }

  push(bytes: Buffer): void {
    for (let at = 0; at < bytes.length; ) {
      if (this.#place === 'element' || this.#place === 'object') at = this.#readElement(bytes, at);
      else if (isSpace(bytes[at])) at++;
      else at = this.#readMark(bytes, at);
    }
  }

  /** What is not blank and stands outside of elements; returns where to go on. */
  #readMark(bytes: Buffer, at: number): number {
    const code = bytes[at];
    if (this.#place === 'before' && code === OPEN_BRACKET) this.#place = 'opened';
    else if (this.#place === 'before' && code === OPEN_BRACE) {
      this.#place = 'object';
      return at;
    } else if (this.#place === 'opened') {
      this.#place = code === CLOSE_BRACKET ? 'behind' : 'element';
      if (this.#place === 'element') return at;
    } else {
      this.#place = 'broken';
      return bytes.length;
    }
    return at + 1;
  }

  /** Goes to the end of this element, or of this piece; returns where to go on. */
  #readElement(bytes: Buffer, from: number): number {
    let depth = this.#depth;
    for (let at = from; at < bytes.length; at++) {
      const code = bytes[at];
      if (this.#inString) {
        at = this.#readString(bytes, at);
      } else if (code === QUOTE) {
        this.#inString = true;
      } else if (code === COMMA) {
        if (depth === 0) return this.#end(bytes, from, at, 'element') + 1;
      } else if (code === OPEN_BRACE || code === OPEN_BRACKET) {
        depth++;
      } else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) {
        if (depth === 0) return this.#end(bytes, from, at, code === CLOSE_BRACKET ? 'behind' : 'broken') + 1;
        depth--;
        if (depth === 0 && this.#place === 'object') return this.#end(bytes, from, at + 1, 'behind');
      }
    }
    this.#depth = depth;
    this.#held.hold(bytes, from);
    return bytes.length;
  }

  /** Where the string ends that is open at `from`, or the last place of this piece. */
  #readString(bytes: Buffer, from: number): number {
    for (let at = from; at < bytes.length; at++) {
      if (this.#isEscaped) this.#isEscaped = false;
      else if (bytes[at] === BACKSLASH) this.#isEscaped = true;
      else if (bytes[at] === QUOTE) {
        this.#inString = false;
        return at;
      }
    }
    return bytes.length - 1;
  }

  #end(bytes: Buffer, from: number, to: number, place: 'element' | 'behind' | 'broken'): number {
    this.#depth = 0;
    this.#place = place;
    if (place !== 'broken') this.#take(this.#held.end(bytes, from, to));
    return to;
  }
}

const QUOTE = 0x22;
const COMMA = 0x2c;
const BACKSLASH = 0x5c;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

/** JSON white space (RFC 8259 section 2). */
export const isSpace = (code: number | undefined): boolean =>
  code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09;
