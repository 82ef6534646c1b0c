import type { ServerResponse } from 'node:http';
import type { Answer, LiveBody, StreamSink } from './answer.ts';
import { sendStreamed } from './body/streamedBody.ts';

/**
 * Writes an answer once; HEAD gets the same headers without the body. For a long body it returns a promise that
 * resolves when the body is sent. If it rejects, another answer may be sent unless the first has begun.
 */
export function send(
  response: ServerResponse,
  answer: Answer,
  method: string | undefined,
): Promise<void> | undefined {
  const { body, handover } = answer;
  if (handover !== undefined) {
    whenGone(response, handover.done);
    const { handover: _, ...rest } = answer;
    return new Promise((resolve) => handover.inTurn(() => resolve(send(response, rest, method))));
  }
  if (response.headersSent) return undefined;
  if (body === null || typeof body === 'string' || Buffer.isBuffer(body)) {
    writeHeaders(response, answer, body === null ? null : Buffer.byteLength(body));
    response.end(method === 'HEAD' || body === null ? undefined : body);
    return undefined;
  }
  if ('attach' in body) {
    writeHeaders(response, answer, null);
    if (method === 'HEAD') response.end();
    else sendLive(response, body);
    return undefined;
  }
  if (method !== 'HEAD') {
    return sendStreamed(response, body, () => writeHeaders(response, answer, body.bytes));
  }
  writeHeaders(response, answer, body.bytes);
  response.end();
  return undefined;
}

function writeHeaders(
  response: ServerResponse,
  { status, headers, body }: Answer,
  bytes: number | null,
): void {
  response.statusCode = status;
  for (const name in headers) response.setHeader(name, headers[name] as string);
  if (body !== null && headers?.['Content-Type'] === undefined) {
    response.setHeader('Content-Type', 'application/json; charset=utf-8');
  }
  if (bytes !== null) response.setHeader('Content-Length', bytes);
}

/**
 * Calls `listener` once all of an answer was taken by its connection, or the connection is gone: also of an answer that
 * waits behind another of its connection.
 */
export function whenGone(response: ServerResponse, listener: () => void): void {
  if (response.destroyed || response.req.socket.destroyed) listener();
  else response.once('close', listener);
}

/** Hands the connection to a body that writes until one side ends it. The headers are set, and are sent at once. */
function sendLive(response: ServerResponse, body: LiveBody): void {
  response.flushHeaders();
  const stream = body.attach(sinkOf(response));
  if (response.destroyed) stream.close();
  else response.once('close', () => stream.close());
}

function sinkOf(response: ServerResponse): StreamSink {
  return {
    write: (bytes) => void response.write(bytes),
    get pendingBytes() {
      return response.writableLength;
    },
    onDrained: (listener) => {
      if (response.destroyed) {
        listener();
        return;
      }
      const go = () => {
        response.off('drain', go).off('close', go);
        listener();
      };
      response.on('drain', go).on('close', go);
    },
    end: (last) => {
      if (last === '') response.end();
      else response.end(last);
    },
    destroy: () => void response.destroy(),
  };
}
