import { fail, ok, type Result } from '../base/result.ts';
import type { Fix } from './fix.ts';
import { jsonElements, ndjsonLines } from './jsonElements.ts';
import { type ParsedPoint, parsePoint } from './parsePoint.ts';
import type { Rejection } from './rejection.ts';

/** A parsed body of POST /positions. `index` counts its points from 0; blank NDJSON lines are no points. */
export interface Batch {
  readonly fixes: readonly { readonly index: number; readonly fix: Fix }[];
  readonly rejected: readonly ({ readonly index: number } & Rejection)[];
  readonly ignored: readonly { readonly index: number; readonly field: string }[];
}

/** Why the body as a whole is refused; then nothing of it is stored. */
export type BatchFailure = 'INVALID_BODY' | 'TOO_MANY';

export const MAX_POINTS = 10_000;

/** A point has a dozen short fields; a longer piece is rejected without being parsed. */
const MAX_POINT_LENGTH = 65_536;

/** After so many points, or so much text, the parser gives way. */
const SLICE_POINTS = 500;
const SLICE_LENGTH = 262_144;

/**
 * Parses a body of /positions in slices of a few milliseconds: the generator yields between them, so that its
 * driver can let other requests in, and returns the batch. One bad point costs none of its neighbours.
 *
 * - json: an array of points, or one. Text that is not JSON is INVALID_BODY as a whole.
 * - ndjson: one point a line. A line that is not JSON is a rejected point, but when no line at all is JSON,
 *   the body is something else and INVALID_BODY as a whole. An empty body is a batch of no points.
 * - More than MAX_POINTS points: TOO_MANY.
 */
export function* parseBatch(
  body: string | Buffer,
  format: 'json' | 'ndjson',
  nowMs: number,
  oldestMs: number,
): Generator<undefined, Result<Batch, BatchFailure>> {
  const text = withoutByteOrderMark(typeof body === 'string' ? body : body.toString('utf8'));
  const batch = new BatchBuilder();
  let unparseable = 0;
  let sliceLength = 0;
  for (const piece of format === 'json' ? jsonElements(text) : ndjsonLines(text)) {
    if (piece === null) return fail('INVALID_BODY');
    if (batch.count === MAX_POINTS) return fail('TOO_MANY');
    const value = piece.length > MAX_POINT_LENGTH ? OVERSIZED : parseJson(piece);
    if (value === UNPARSEABLE) {
      if (format === 'json') return fail('INVALID_BODY');
      unparseable++;
    }
    batch.add(parsePoint(value, nowMs, oldestMs));
    sliceLength += piece.length;
    if (batch.count % SLICE_POINTS === 0 || sliceLength >= SLICE_LENGTH) {
      sliceLength = 0;
      yield;
    }
  }
  return unparseable > 0 && unparseable === batch.count ? fail('INVALID_BODY') : ok(batch);
}

class BatchBuilder implements Batch {
  readonly fixes: { index: number; fix: Fix }[] = [];
  readonly rejected: ({ index: number } & Rejection)[] = [];
  readonly ignored: { index: number; field: string }[] = [];
  count = 0;

  add(point: Result<ParsedPoint, Rejection>): void {
    const index = this.count++;
    if (!point.ok) {
      this.rejected.push({ index, code: point.error.code, message: point.error.message });
      return;
    }
    this.fixes.push({ index, fix: point.value.fix });
    for (const field of point.value.ignored) this.ignored.push({ index, field });
  }
}

// Not objects, so that parsePoint rejects them as INVALID_BODY.
const UNPARSEABLE = Symbol('not JSON');
const OVERSIZED = Symbol('longer than any point');

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return UNPARSEABLE; // the only thing that JSON.parse throws is a SyntaxError
  }
}

/** Some clients write one; RFC 8259 section 8.1 lets a parser pass over it. */
function withoutByteOrderMark(text: string): string {
  return text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
}
