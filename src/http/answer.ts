import type { ServerResponse } from 'node:http';
import { invariant } from '../lib/errors.ts';
import { type JsonError, MAX_JSON_VALUES } from '../lib/parseText.ts';
import { BODY_INVALID, type FieldError } from '../lib/result.ts';

/** The answer to a request. `body` is JSON: text, its bytes, or made while it is read; null when there is none. */
export interface Answer {
  readonly status: number;
  readonly body: string | Buffer | StreamedBody | LiveBody | null;
  readonly headers?: Readonly<Record<string, string>>;
  /** For an answer that is large, or one of many at once. */
  readonly handover?: Handover;
}

/** A body that is too long to be made whole before it is read. It is made and sent piece by piece. */
export interface StreamedBody {
  /** Its length where that is known before it is made. */
  readonly bytes: number | null;
  /** How long its reader may take for the piece of one call of `next`; without it, as long as any connection. */
  readonly stallLimitMs?: number;
  /** Waits until it may begin. Rejects with Overloaded when too many wait already, and with NotBegun. */
  open(): Promise<void>;
  /** Makes the next piece and hands it over; false when it was the last. */
  next(take: (piece: Buffer) => void): Promise<boolean>;
  /**
   * Headers that are known only at the end of the body. The header TRAILER_HEADER lists their names. They are sent only after a
   * chunked body, so neither over HTTP/1.0 nor for HEAD.
   */
  trailers?(): Readonly<Record<string, string>>;
  /** To be called once after `open`, whether all of it was taken or not. */
  close(): void;
}

/** Lists the names of the headers that follow a body (RFC 9110 section 6.6.2). It is not sent without a chunked body. */
export const TRAILER_HEADER = 'Trailer';

/** A body without end, such as a stream of events. */
export interface LiveBody {
  /** Begins to write; the answer's headers are sent. */
  attach(sink: StreamSink): { close(): void };
}

/** A piece of live bodies. It is made once, and written to any number of connections. */
export interface LiveChunk {
  /** As it is sent over HTTP/1.1 (RFC 9112, section 7.1): the payload between its length and the end of a line. */
  readonly framed: Buffer;
  /** A part of `framed`. */
  readonly payload: Buffer;
}

/** Where a stream is written to. After its end, which a slow reader may take late, further writes and ends do nothing. */
export interface StreamSink {
  write(chunk: LiveChunk): void;
  /** Bytes that were written and not yet taken by the reader. */
  readonly pendingBytes: number;
  /** Calls `listener` when the reader has taken everything, once. */
  onDrained(listener: () => void): void;
  end(last: string): void;
  /** Cuts the connection, because a reader who does not read would not see an end. */
  destroy(): void;
}

/** Hands an answer to its connection in its turn among many, and counts it until its reader has taken it. */
export interface Handover {
  /** Calls `write` when it is this answer's turn. */
  inTurn(write: () => void): void;
  /** Call it when the reader has taken all of the answer, or has gone. Further calls do nothing. */
  done(): void;
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

/** A streamed body cannot be completed, by no fault of this service. The connection is cut, and nothing is logged. */
export class CutAnswer extends Error {
  override name = 'CutAnswer';
}

/** An answer with a whole body. */
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

/** The answer to a body that gives no value. `not_said`: its type is not that of JSON. */
export function jsonErrorAnswer(error: JsonError | 'not_said'): TextAnswer {
  return error === 'too_many_values'
    ? errorAnswer('PAYLOAD_TOO_LARGE', `the body holds more than ${MAX_JSON_VALUES} values and names`)
    : validationAnswer([{ ...BODY_INVALID, message: JSON_ERRORS[error] }]);
}

const JSON_ERRORS = {
  not_json: BODY_INVALID.message,
  not_said: 'the body must say that it is JSON, by Content-Type: application/json',
  too_deep: 'the body is nested deeper than 64 levels',
};

/** The answer to a method that a path does not have: OPTIONS gets the list of methods, any other gets 405. */
export function methodAnswer(method: string, allowed: readonly string[]): Answer {
  const headers = { Allow: [...allowed, 'OPTIONS'].join(', ') };
  if (method === 'OPTIONS') return { status: 204, body: null, headers };
  return { ...errorAnswer('METHOD_NOT_ALLOWED'), headers };
}

/** Every error code, with its status and its usual message. */
export const ERRORS = {
  BAD_REQUEST: [400, 'a parameter is missing or invalid'],
  WEBHOOK_URL_INVALID: [400, 'the webhook URL is not acceptable'],
  IMEI_REQUIRED: [400, 'an IMEI is required'],
  COORDINATES_REQUIRED: [400, 'lat and lng are required'],
  INVALID_COORDINATES: [400, 'lat must be a number from -90 to 90, lng a number from -180 to 180'],
  INVALID_BODY: [400, 'the body cannot be read'],
  API_KEY_REQUIRED: [403, 'an API key is required in the header X-API-Key'],
  API_KEY_INVALID: [403, 'this API key is not known'],
  API_KEY_REVOKED: [403, 'this API key has been revoked'],
  API_KEY_OWNER_INACTIVE: [403, 'the owner of this API key is inactive'],
  API_KEY_IP_BLOCKED: [403, 'this API key may not be used from this address'],
  INSUFFICIENT_SCOPE: [403, 'this API key lacks the permission'],
  FORBIDDEN: [403, 'not allowed'],
  NOT_FOUND: [404, 'not found'],
  DEVICE_NOT_FOUND: [404, 'no device with this IMEI'],
  LOCATION_NOT_FOUND: [404, 'this device has not reported a position yet'],
  METHOD_NOT_ALLOWED: [405, 'this path does not support the method'],
  SHARE_ENDED: [410, 'this share has ended'],
  CURSOR_EXPIRED: [410, 'this cursor can no longer be followed; start again without one'],
  CONFLICT: [409, 'external_id is already used by another area'],
  PAYLOAD_TOO_LARGE: [413, 'the body is too large'],
  VALIDATION_ERROR: [422, 'the body is not valid'],
  TOO_COMPLEX: [422, 'the areas take longer to measure than a call may; simplify them'],
  HEADERS_TOO_LARGE: [431, 'the request headers are too large'],
  TOO_MANY_REQUESTS: [429, 'rate limit exceeded'],
  INTERNAL_ERROR: [500, 'internal error'],
  SERVICE_UNAVAILABLE: [503, 'the database cannot be reached; try again shortly'],
} as const satisfies Readonly<Record<string, readonly [status: number, message: string]>>;

export type ErrorCode = keyof typeof ERRORS;

/** Writes an answer that is there as a whole, unless one was begun. HEAD gets the same headers without the body. */
export function send(
  response: ServerResponse,
  { status, headers, body }: Answer,
  method: string | undefined,
): void {
  if (response.headersSent) return;
  invariant(body === null || typeof body === 'string', 'an answer outside of the API is text');
  response.statusCode = status;
  for (const name in headers) response.setHeader(name, headers[name] as string);
  if (body !== null) {
    response.setHeader('Content-Type', 'application/json; charset=utf-8');
    response.setHeader('Content-Length', Buffer.byteLength(body));
  }
  response.end(method === 'HEAD' || body === null ? undefined : body);
}
