import { fail, ok, type Result } from '../../lib/result.ts';
import type { Steps } from '../../lib/workTurns.ts';
import type { Fix } from '../fix.ts';
import { type ParsedPoint, parsePoint, REJECTIONS, type Rejection } from './parsePoint.ts';

/** A parsed body of POST /positions. `index` counts its points from 0; blank NDJSON lines are skipped. */
export interface Batch {
  readonly fixes: readonly { readonly index: number; readonly fix: Fix }[];
  readonly rejected: readonly ({ readonly index: number } & Rejection)[];
  readonly ignored: readonly { readonly index: number; readonly field: string }[];
}

/** Why the body as a whole is rejected; then nothing of it is stored. */
export type BatchError = 'INVALID_BODY' | 'TOO_MANY';

export const MAX_POINTS = 10_000;

/** So much text is read in a step: half a millisecond at most, whatever it holds (tiny elements cost the most). */
const STEP_BYTES = 4_096;

/**
 * Reads a body of /positions as it comes, and keeps nothing of it but its points. One bad point costs none of its
 * neighbours.
 *
 * - json: an array of points, or one. Text that is not JSON is INVALID_BODY as a whole.
 * - ndjson: one point a line. A line that is not JSON is a rejected point, but when no line at all is JSON,
 *   the body is something else and INVALID_BODY as a whole. An empty body is a batch of no points.
 * - An element that is too large for a point (MAX_ELEMENT_BYTES, MAX_ELEMENT_VALUES) is rejected unread.
 * - More than MAX_POINTS points: TOO_MANY.
 */
export class BatchReader {
  readonly #nowMs: number;
  readonly #oldestMs: number;
  readonly #isJson: boolean;
  readonly #cutter: JsonElements | NdjsonLines;
  readonly #fixes: { index: number; fix: Fix }[] = [];
  readonly #rejected: ({ index: number } & Rejection)[] = [];
  readonly #ignored: { index: number; field: string }[] = [];
  #count = 0;
  #unparseable = 0;
  #error: BatchError | null = null;
  /** How many bytes of a byte order mark were skipped at the beginning. */
  #mark = 0;

  constructor(format: 'json' | 'ndjson', nowMs: number, oldestMs: number) {
    this.#nowMs = nowMs;
    this.#oldestMs = oldestMs;
    const take: Take = (text, elements) => this.#take(text, elements);
    this.#isJson = format === 'json';
    this.#cutter = this.#isJson ? new JsonElements(take) : new NdjsonLines(take);
  }

  /** Nothing that still comes can change the outcome. */
  get hasFailed(): boolean {
    return this.#error !== null;
  }

  /** Reads the next piece of the body. */
  *read(piece: Buffer): Steps<void> {
    for (let at = this.#skipByteOrderMark(piece); at < piece.length && !this.hasFailed; at += STEP_BYTES) {
      this.#cutter.push(piece.subarray(at, at + STEP_BYTES));
      if (this.#cutter.isBroken) this.#error ??= 'INVALID_BODY';
      yield;
    }
  }

  /** The batch, when the body has come to its end. */
  finish(): Result<Batch, BatchError> {
    const isWhole = this.#cutter.end();
    const isSomethingElse = this.#unparseable > 0 && this.#unparseable === this.#count;
    if (!isWhole || isSomethingElse) this.#error ??= 'INVALID_BODY';
    if (this.#error !== null) return fail(this.#error);
    return ok({ fixes: this.#fixes, rejected: this.#rejected, ignored: this.#ignored });
  }

  /** Takes the text of `elements` elements, separated by commas. */
  #take(text: Element, elements: number): void {
    if (this.#error !== null) return;
    if (this.#count + elements > MAX_POINTS) {
      this.#error = 'TOO_MANY';
      return;
    }
    if (text === OVERSIZED) {
      this.#put(fail(OVERSIZED_POINT));
      return;
    }
    const values = this.#parse(text, elements);
    if (values !== null) {
      for (const value of values) this.#put(parsePoint(value, this.#nowMs, this.#oldestMs));
    } else if (this.#isJson) this.#error = 'INVALID_BODY';
    else {
      this.#unparseable++;
      this.#put(fail(REJECTIONS.INVALID_BODY));
    }
  }

  /** What these elements are; null: not all of them are JSON. A line of NDJSON is one element, whatever commas it has. */
  #parse(text: string, elements: number): unknown[] | null {
    try {
      const values: unknown[] = this.#isJson ? JSON.parse(`[${text}]`) : [JSON.parse(text)];
      return values.length === elements ? values : null;
    } catch {
      return null;
    }
  }

  #put(point: Result<ParsedPoint, Rejection>): void {
    const index = this.#count++;
    if (!point.ok) {
      this.#rejected.push({ index, code: point.error.code, message: point.error.message });
      return;
    }
    this.#fixes.push({ index, fix: point.value.fix });
    for (const field of point.value.ignored) this.#ignored.push({ index, field });
  }

  /** Some clients write one; RFC 8259 section 8.1 lets a parser skip it. Returns where the text begins. */
  #skipByteOrderMark(piece: Buffer): number {
    let at = 0;
    while (at < piece.length && this.#mark < BYTE_ORDER_MARK.length) {
      if (piece[at] !== BYTE_ORDER_MARK[this.#mark]) {
        this.#mark = BYTE_ORDER_MARK.length;
        break;
      }
      this.#mark++;
      at++;
    }
    return at;
  }
}

const BYTE_ORDER_MARK = [0xef, 0xbb, 0xbf];

const LINE_FEED = 0x0a;

type Take = (text: Element, elements: number) => void;

/** Cuts an NDJSON body, in UTF-8, as it comes: into its lines that are not blank, without the blanks before them. */
class NdjsonLines {
  readonly isBroken = false;
  readonly #take: Take;
  readonly #partial = new PartialElement();

  constructor(take: Take) {
    this.#take = take;
  }

  push(bytes: Buffer): void {
    for (let at = 0; at < bytes.length; ) {
      if (this.#partial.isEmpty && isSpace(bytes[at])) {
        at++;
        continue;
      }
      const end = bytes.indexOf(LINE_FEED, at);
      if (end === -1) {
        this.#partial.append(bytes, at);
        return;
      }
      this.#take(this.#partial.end(bytes, at, end), 1);
      at = end + 1;
    }
  }

  /** The last line may lack its line feed. */
  end(): true {
    if (!this.#partial.isEmpty) this.#take(this.#partial.end(Buffer.alloc(0), 0, 0), 1);
    return true;
  }
}

/**
 * Cuts a JSON body, in UTF-8, as it comes: into the elements of a top-level array, or the one object that is the body.
 * Short ones that came in one piece are taken together, as many as there are, which is faster. What is taken is to be given
 * to JSON.parse as an array.
 *
 * The body is valid JSON exactly when it was whole at its `end` and JSON.parse finds as many elements in each array as were
 * taken: only commas outside strings and brackets cut, and what stands around the cuts is checked here. So a batch can be
 * read in small steps, and nothing of it must be kept but its points.
 */
export class JsonElements {
  readonly #take: Take;
  readonly #partial = new PartialElement();
  /** Elements of this piece that are not taken yet: how many, from where to where. */
  #run = 0;
  #runFrom = 0;
  #runTo = 0;
  #state: 'before' | 'opened' | 'element' | 'object' | 'behind' | 'broken' = 'before';
  /** Of brackets, and whether a string is open: in the element that has begun. */
  #depth = 0;
  #inString = false;
  #isEscaped = false;

  constructor(take: Take) {
    this.#take = take;
  }

  /** No JSON begins like the text so far. */
  get isBroken(): boolean {
    return this.#state === 'broken';
  }

  /** Whether the text was a whole body. */
  end(): boolean {
    return this.#state === 'behind';
  }

  push(bytes: Buffer): void {
    for (let at = 0; at < bytes.length; ) {
      if (this.#state === 'element' || this.#state === 'object') at = this.#readElement(bytes, at);
      else if (isSpace(bytes[at])) at++;
      else at = this.#readMark(bytes, at);
    }
    this.#takeRun(bytes);
  }

  /** What is not blank and stands outside of elements; returns where to go on. */
  #readMark(bytes: Buffer, at: number): number {
    const code = bytes[at];
    if (this.#state === 'before' && code === OPEN_BRACKET) this.#state = 'opened';
    else if (this.#state === 'before' && code === OPEN_BRACE) {
      this.#state = 'object';
      return at;
    } else if (this.#state === 'opened') {
      this.#state = code === CLOSE_BRACKET ? 'behind' : 'element';
      if (this.#state === 'element') return at;
    } else {
      this.#state = 'broken';
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
        if (depth === 0 && this.#state === 'object') return this.#end(bytes, from, at + 1, 'behind');
      }
    }
    this.#depth = depth;
    this.#partial.append(bytes, from);
    return bytes.length;
  }

  /** Where the string ends that is open at `from`, or the last byte of this piece. */
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

  #end(bytes: Buffer, from: number, to: number, state: 'element' | 'behind' | 'broken'): number {
    this.#depth = 0;
    this.#state = state;
    if (state === 'broken') return to;
    if (this.#partial.isEmpty && to - from <= MAX_ELEMENT_VALUES) {
      if (this.#run++ === 0) this.#runFrom = from;
      this.#runTo = to;
    } else {
      this.#takeRun(bytes);
      this.#take(this.#partial.end(bytes, from, to), 1);
    }
    return to;
  }

  #takeRun(bytes: Buffer): void {
    if (this.#run > 0) this.#take(bytes.toString('utf8', this.#runFrom, this.#runTo), this.#run);
    this.#run = 0;
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
const isSpace = (code: number | undefined): boolean =>
  code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09;

/** What a batch is cut into: the text of points, or what is too large to be one. */
type Element = string | typeof OVERSIZED;

/** An element that is longer, or made of more values, than any point. It is not read. */
const OVERSIZED = Symbol('larger than any point');

/** A point has a dozen short members; whole messages of some trackers, as text in an unknown member, fit as well. */
export const MAX_ELEMENT_BYTES = 16_384;
/** Values cost more than text: this many are built in less than a millisecond. */
export const MAX_ELEMENT_VALUES = 1_000;

/** One element of a batch that comes in pieces: keeps what earlier pieces had of it, as far as it may be a point. */
class PartialElement {
  #kept: Buffer | null = null;
  #bytes = 0;

  get isEmpty(): boolean {
    return this.#bytes === 0;
  }

  /** Keeps the bytes of an element that continues in the next piece. */
  append(bytes: Buffer, from: number): void {
    const length = bytes.length - from;
    if (this.#bytes + length <= MAX_ELEMENT_BYTES) {
      this.#kept ??= Buffer.allocUnsafeSlow(MAX_ELEMENT_BYTES);
      bytes.copy(this.#kept, this.#bytes, from);
    }
    this.#bytes += length;
  }

  /** The element ends in this piece, before `to`. */
  end(bytes: Buffer, from: number, to: number): Element {
    const earlier = this.#bytes;
    const length = earlier + to - from;
    this.#bytes = 0;
    if (length > MAX_ELEMENT_BYTES) return OVERSIZED;
    if (earlier === 0) return textOf(bytes, from, to);
    const kept = this.#kept as Buffer;
    bytes.copy(kept, earlier, from, to);
    return textOf(kept, 0, length);
  }
}

function textOf(bytes: Buffer, from: number, to: number): Element {
  // Shorter ones are not even counted.
  const isRich =
    to - from > MAX_ELEMENT_VALUES && hasMoreValues(bytes.subarray(from, to), MAX_ELEMENT_VALUES);
  return isRich ? OVERSIZED : bytes.toString('utf8', from, to);
}

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

/** Of an element that is not read. */
export const OVERSIZED_POINT: Rejection = {
  code: 'INVALID_BODY',
  message: `the point is longer than ${MAX_ELEMENT_BYTES / 1_024} KB or has more than ${MAX_ELEMENT_VALUES} values`,
};
