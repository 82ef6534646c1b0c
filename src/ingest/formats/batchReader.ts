import { parseJsonText } from '../../lib/parseJson.ts';
import { fail, ok, type Result } from '../../lib/result.ts';
import type { Steps } from '../../lib/workTurns.ts';
import type { Fix } from '../fix.ts';
import { type Element, OVERSIZED } from './heldElement.ts';
import { JsonElements } from './jsonElements.ts';
import { NdjsonLines } from './ndjsonLines.ts';
import { type ParsedPoint, parsePoint } from './parsePoint.ts';
import { OVERSIZED_POINT, REJECTIONS, type Rejection } from './rejection.ts';

/** A parsed body of POST /positions. `index` counts its points from 0; blank NDJSON lines are no points. */
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
  readonly #json: JsonElements | null;
  readonly #lines: NdjsonLines | null;
  readonly #fixes: { index: number; fix: Fix }[] = [];
  readonly #rejected: ({ index: number } & Rejection)[] = [];
  readonly #ignored: { index: number; field: string }[] = [];
  #count = 0;
  #unparseable = 0;
  #error: BatchError | null = null;
  /** How many bytes of a byte order mark were passed over at the beginning. */
  #mark = 0;

  constructor(format: 'json' | 'ndjson', nowMs: number, oldestMs: number) {
    this.#nowMs = nowMs;
    this.#oldestMs = oldestMs;
    const take = (element: Element) => this.#take(element);
    this.#json = format === 'json' ? new JsonElements(take) : null;
    this.#lines = format === 'json' ? null : new NdjsonLines(take);
  }

  /** Nothing that still comes can change the outcome. */
  get hasFailed(): boolean {
    return this.#error !== null;
  }

  /** Reads the next piece of the body. */
  *read(piece: Buffer): Steps<void> {
    for (let at = this.#passMark(piece); at < piece.length && !this.hasFailed; at += STEP_BYTES) {
      const bytes = piece.subarray(at, at + STEP_BYTES);
      this.#json?.push(bytes);
      this.#lines?.push(bytes);
      if (this.#json?.isBroken === true) this.#error ??= 'INVALID_BODY';
      yield;
    }
  }

  /** The batch, when the body has come to its end. */
  finish(): Result<Batch, BatchError> {
    this.#lines?.end();
    if (this.#json?.isWhole === false || this.#isSomethingElse()) this.#error ??= 'INVALID_BODY';
    if (this.#error !== null) return fail(this.#error);
    return ok({ fixes: this.#fixes, rejected: this.#rejected, ignored: this.#ignored });
  }

  #isSomethingElse(): boolean {
    return this.#unparseable > 0 && this.#unparseable === this.#count;
  }

  #take(element: Element): void {
    if (this.#error !== null) return;
    if (this.#count === MAX_POINTS) {
      this.#error = 'TOO_MANY';
      return;
    }
    const index = this.#count++;
    const point = element === OVERSIZED ? fail(OVERSIZED_POINT) : this.#parse(element);
    if (!point.ok) {
      this.#rejected.push({ index, code: point.error.code, message: point.error.message });
      return;
    }
    this.#fixes.push({ index, fix: point.value.fix });
    for (const field of point.value.ignored) this.#ignored.push({ index, field });
  }

  #parse(text: string): Result<ParsedPoint, Rejection> {
    const value = parseJsonText(text);
    if (value === undefined) {
      this.#unparseable++;
      if (this.#json !== null) this.#error = 'INVALID_BODY';
      return fail(REJECTIONS.INVALID_BODY);
    }
    return parsePoint(value, this.#nowMs, this.#oldestMs);
  }

  /** Some clients write one; RFC 8259 section 8.1 lets a parser pass over it. Returns where the text begins. */
  #passMark(piece: Buffer): number {
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
