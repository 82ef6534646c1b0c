import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { CutAnswer, type LiveBody, type LiveChunk, type StreamedBody, type StreamSink } from './answer.ts';

const NEW_LINE = '\r\n';

/** A chunk of bodies that are written in several pieces. */
export function liveChunk(text: string): LiveChunk {
  const { framed, payload } = emptyChunk(Buffer.byteLength(text));
  payload.write(text);
  return { framed, payload };
}

/** A chunk with the payloads of several, in their order. */
export function joinedChunk(payloads: readonly Buffer[]): LiveChunk {
  const { framed, payload } = emptyChunk(payloads.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of payloads) at += part.copy(payload, at);
  return { framed, payload };
}

/** One whose payload is to be filled. A chunk without bytes would end the body. */
function emptyChunk(bytes: number): LiveChunk {
  const head = `${bytes.toString(16)}${NEW_LINE}`;
  const framed = Buffer.allocUnsafe(head.length + bytes + NEW_LINE.length);
  framed.write(head, 'latin1');
  framed.write(NEW_LINE, head.length + bytes, 'latin1');
  return { framed, payload: framed.subarray(head.length, head.length + bytes) };
}

/** Hands the connection to a body that writes until one side ends it. The headers are sent at once. */
export function sendLive(response: ServerResponse, body: LiveBody): void {
  response.flushHeaders();
  const stream = body.attach(new ResponseSink(response));
  if (response.destroyed) stream.close();
  else response.once('close', () => stream.close());
}

/**
 * Sends a long body no faster than its reader takes it: each piece is made when the one before has been sent.
 * `writeHead` is called at the beginning. Resolves when all is sent or the reader has gone. An error of `open` rejects
 * before the head is written. After a later error the connection is cut, which shows the reader that the answer is
 * incomplete.
 */
export async function sendStreamed(
  response: ServerResponse,
  body: StreamedBody,
  writeHead: () => void,
): Promise<void> {
  await inTurnOn(response);
  await body.open();
  try {
    if (!isOpen(response)) return;
    writeHead();
    const take = (piece: Buffer) => {
      if (isOpen(response)) response.write(piece);
    };
    while (await body.next(take)) {
      if (response.writableNeedDrain) await drained(response, body.stallLimitMs);
      if (!isOpen(response)) return;
    }
    if (body.trailers !== undefined) response.addTrailers(body.trailers());
    response.end();
  } catch (error) {
    response.destroy();
    if (!(error instanceof CutAnswer)) throw error;
  } finally {
    body.close();
  }
}

/** A request that came before the answer to another of its connection was sent waits for that one, holding nothing. */
function inTurnOn(response: ServerResponse): Promise<void> {
  if (response.socket !== null || response.destroyed) return Promise.resolve();
  return new Promise((resolve) => response.once('socket', () => resolve()));
}

function isOpen(response: ServerResponse): boolean {
  return !response.destroyed && response.socket?.destroyed === false;
}

/** Cuts the connection when its reader takes longer than the limit. */
function drained(response: ServerResponse, limitMs?: number): Promise<void> {
  return new Promise((resolve) => {
    const limit = limitMs === undefined ? undefined : setTimeout(() => response.destroy(), limitMs);
    onDrained(response, response, () => {
      clearTimeout(limit);
      resolve();
    });
  });
}

/** Calls `listener` when the reader has taken everything that was written to `to`, or has gone. */
function onDrained(response: ServerResponse, to: ServerResponse | Socket, listener: () => void): void {
  const go = () => {
    to.off('drain', go);
    response.off('close', go);
    listener();
  };
  to.on('drain', go);
  response.on('close', go);
}

class ResponseSink implements StreamSink {
  readonly #response: ServerResponse;

  constructor(response: ServerResponse) {
    this.#response = response;
  }

  /**
   * Node would write the frame of a chunk in pieces of their own, which takes twice as long. An answer that waits behind
   * another of its connection has no socket yet, and one of HTTP/1.0 has no chunks.
   */
  write({ framed, payload }: LiveChunk): void {
    const { socket, chunkedEncoding, writableEnded } = this.#response;
    if (writableEnded) return;
    if (socket === null || !chunkedEncoding) this.#response.write(payload);
    else if (socket.writable) socket.write(framed);
  }

  get pendingBytes(): number {
    const { socket } = this.#response;
    return socket === null ? this.#response.writableLength : socket.writableLength;
  }

  onDrained(listener: () => void): void {
    const response = this.#response;
    if (response.destroyed) listener();
    else onDrained(response, response.socket ?? response, listener);
  }

  /** To end an answer of Node twice with a text is an error that nobody hears, which ends the process. */
  end(last: string): void {
    if (this.#response.writableEnded) return;
    if (last === '') this.#response.end();
    else this.#response.end(last);
  }

  destroy(): void {
    this.#response.destroy();
  }
}
