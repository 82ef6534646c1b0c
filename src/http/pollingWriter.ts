import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import helmet from 'helmet';
import { invariant } from '../lib/invariant.ts';
import type { Answer } from './answer.ts';
import { CommonHeaders } from './commonHeaders.ts';
import type { Observe } from './measure.ts';
import type { PollingEntry } from './pollingTable.ts';
import { whenGone } from './send.ts';
import { type StreamedBody, sendStreamed } from './streamedBody.ts';
import { UNKNOWN_PARAMETERS_HEADER } from './unknownParameters.ts';

interface Waiting {
  readonly response: ServerResponse;
  readonly entry: PollingEntry;
  readonly answer: Answer;
  readonly startedAtMs: number;
}

/**
 * Writes answers with the same headers that the app sets. All answers of a turn of the event loop are written together
 * at its end. Written one by one, each would wake a reader that has just gone idle, on this machine or in the network
 * card, which costs more than the rest of the answer.
 */
export class PollingWriter {
  readonly #observe: Observe;
  readonly #fail: (error: unknown, request: IncomingMessage) => Answer;
  readonly #heads: Readonly<Record<PollingEntry['version'], CommonHeaders>>;
  #waiting: Waiting[] = [];

  /** `fail` gives the answer to a request whose own cannot be sent. */
  constructor(observe: Observe, fail: (error: unknown, request: IncomingMessage) => Answer) {
    this.#observe = observe;
    this.#fail = fail;
    const security = securityHeaders();
    this.#heads = {
      v2: new CommonHeaders(security),
      v3: new CommonHeaders([...security, 'X-API-Status', 'beta']),
    };
  }

  put(response: ServerResponse, entry: PollingEntry, answer: Answer, startedAtMs: number): void {
    const waiting = { response, entry, answer, startedAtMs };
    const { handover } = answer;
    if (handover !== undefined) {
      whenGone(response, handover.done);
      handover.inTurn(() => this.#write(waiting));
    } else if (this.#waiting.push(waiting) === 1) {
      setImmediate(() => this.#flush());
    }
  }

  #flush(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const one of waiting) this.#write(one);
  }

  #write(waiting: Waiting): void {
    const { response, entry, answer } = waiting;
    const { status, body, headers } = answer;
    if (body !== null && typeof body !== 'string' && !Buffer.isBuffer(body)) {
      invariant(!('attach' in body), 'a stream is not polled');
      void this.#writeLong(waiting, body);
      return;
    }
    const head = this.#heads[entry.version];
    const own: string[] = [];
    for (const name in headers) own.push(name, headers[name] as string);
    if (body === null) {
      response.writeHead(status, [...head.standing, ...own]).end();
    } else {
      const bytes = Buffer.byteLength(body);
      own.push('Content-Type', 'application/json; charset=utf-8', 'Content-Length', String(bytes));
      head.write(response, status, own);
      if (typeof body !== 'string') response.end(body);
      // Text of one byte per character needs no transcoding.
      else response.end(body, bytes === body.length ? 'latin1' : 'utf8');
    }
    this.#observed(waiting);
  }

  /** Never rejects. */
  async #writeLong(waiting: Waiting, body: StreamedBody): Promise<void> {
    const { response, entry, answer } = waiting;
    const own = ['Content-Type', 'application/json; charset=utf-8'];
    for (const name in answer.headers) own.push(name, answer.headers[name] as string);
    if (body.bytes !== null) own.push('Content-Length', String(body.bytes));
    try {
      await sendStreamed(response, body, () =>
        this.#heads[entry.version].write(response, answer.status, own),
      );
      if (response.writableFinished) this.#observed(waiting);
      else response.once('finish', () => this.#observed(waiting));
    } catch (error) {
      const failed = this.#fail(error, response.req);
      const unknown = answer.headers?.[UNKNOWN_PARAMETERS_HEADER];
      const marked =
        unknown === undefined ? failed : { ...failed, headers: { [UNKNOWN_PARAMETERS_HEADER]: unknown } };
      if (!response.headersSent) this.#write({ ...waiting, answer: marked });
    }
  }

  #observed({ entry, answer, startedAtMs }: Waiting): void {
    this.#observe(entry.pattern, 'GET', answer.status, (performance.now() - startedAtMs) / 1000);
  }
}

/** Names and values that helmet gives to every answer, taken from helmet itself. */
function securityHeaders(): string[] {
  const given: string[] = [];
  const request = new IncomingMessage(new Socket());
  const response = new ServerResponse(request);
  response.setHeader = (name, value) => {
    given.push(name, String(value));
    return response;
  };
  helmet()(request, response, () => undefined);
  return given;
}
