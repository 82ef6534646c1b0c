import type { FieldError } from '../lib/fieldError.ts';
import { ERRORS, type ErrorCode } from './errors.ts';

/** What a request is answered with. `body` is JSON: text, its bytes, or made while it is read; null when there is none. */
export interface Answer {
  readonly status: number;
  readonly body: string | Buffer | StreamedBody | LiveBody | null;
  readonly headers?: Readonly<Record<string, string>>;
  /** How it is handed over where it is large, or one of many at once. */
  readonly handover?: Handover;
}

/** The body of an answer that is too long to be made whole before it is read: made and sent piece by piece. */
export interface StreamedBody {
  /** Its length where that is known before it is made. */
  readonly bytes: number | null;
  /** How long its reader may take for what was handed over by one call of `next`; without it, as any connection. */
  readonly stallLimitMs?: number;
  /** Waits until it may begin. Rejects with Overloaded when too many wait already, and with NotBegun. */
  open(): Promise<void>;
  /** Makes the next piece and hands it over; false when it was the last. */
  next(take: (piece: Buffer) => void): Promise<boolean>;
  /** To be called once after `open`, whether all of it was taken or not. */
  close(): void;
}

/** A streamed body could not begin. Another answer is sent instead. */
export class NotBegun extends Error {
  override name = 'NotBegun';
  readonly answer: Answer;

  constructor(answer: Answer) {
    super('the answer could not begin');
    this.answer = answer;
  }
}

/** A streamed body cannot be made whole any more, by no fault of this service: the connection is cut, and nothing is logged. */
export class CutAnswer extends Error {
  override name = 'CutAnswer';
}

/** A body that goes on until one side ends it. */
export interface LiveBody {
  /** Begins to write; the answer's headers are sent. */
  attach(sink: StreamSink): { close(): void };
}

/** An answer whose body is there. */
export interface TextAnswer extends Answer {
  readonly body: string;
}

/** `{ data, meta }` with status 200. */
export function dataAnswer(data: unknown, meta: Readonly<Record<string, unknown>> = {}): TextAnswer {
  return { status: 200, body: JSON.stringify({ data, meta }) };
}

/** `{ data, meta }` with status 200 from JSON text: for polled routes, which write it straight from memory. */
export function jsonAnswer(dataJson: string, metaJson = '{}'): TextAnswer {
  return { status: 200, body: `{"data":${dataJson},"meta":${metaJson}}` };
}

/** A page of a list with `meta.pagination`. */
export function listAnswer(items: readonly unknown[], page: { limit: number; offset: number }): TextAnswer {
  return dataAnswer(items, { pagination: { limit: page.limit, offset: page.offset, count: items.length } });
}

/** `{ error: { code, message } }` with the code's status. */
export function errorAnswer(code: ErrorCode, message: string = ERRORS[code][1]): TextAnswer {
  return { status: ERRORS[code][0], body: JSON.stringify({ error: { code, message } }) };
}

/** `{ error: <string> }`: how v2 says that a permission is missing or a limit exceeded. */
export function plainErrorAnswer(status: number, message: string): TextAnswer {
  return { status, body: JSON.stringify({ error: message }) };
}

/** `{ error: { code: VALIDATION_ERROR, message, details } }` with every invalid field, status 422. */
export function validationAnswer(details: readonly FieldError[]): TextAnswer {
  const [status, message] = ERRORS.VALIDATION_ERROR;
  return { status, body: JSON.stringify({ error: { code: 'VALIDATION_ERROR', message, details } }) };
}

/** The answer to a method that a path does not have: OPTIONS gets the list of methods, any other gets 405. */
export function methodAnswer(method: string, allowed: readonly string[]): Answer {
  const headers = { Allow: [...allowed, 'OPTIONS'].join(', ') };
  if (method === 'OPTIONS') return { status: 204, body: null, headers };
  return { ...errorAnswer('METHOD_NOT_ALLOWED'), headers };
}

/** Where a stream is written to. */
export interface StreamSink {
  write(bytes: Buffer): void;
  /** Bytes that were written and not yet taken by the reader. */
  readonly pendingBytes: number;
  /** Calls `listener` when the reader has taken everything, once. */
  onDrained(listener: () => void): void;
  end(last: string): void;
  /** Cuts the connection: whoever does not read would not see an end. */
  destroy(): void;
}

/** How an answer is handed to its connection: in its turn among many, and counted until it was taken. */
export interface Handover {
  /** Calls `write` when it is this answer's turn. */
  inTurn(write: () => void): void;
  /** To be called when the reader has taken all of it, or has gone. Further calls do nothing. */
  done(): void;
}
