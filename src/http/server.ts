import type { RequestListener, Server } from 'node:http';
import { Server as NetServer, type Socket } from 'node:net';
import { MINUTE_MS } from '../lib/time.ts';
import { type ErrorCode, errorAnswer } from './answer.ts';
import { checkedRequests, endSilent, V3 } from './exchange.ts';

// Not an import: see exchange.ts.
const { createServer, STATUS_CODES } = process.getBuiltinModule('node:http');

/** Bounds against slow clients. Keep-alive lasts longer than the idle time-out of common load balancers, 60 s. */
const HEADERS_TIMEOUT_MS = 10_000;
const REQUEST_TIMEOUT_MS = MINUTE_MS;
const KEEP_ALIVE_TIMEOUT_MS = 75_000;
const MAX_HEADER_BYTES = 16 * 1024;
const CHECK_INTERVAL_MS = 5_000;
/** Nothing sent or taken on a connection for this long, such as an answer that is never read. */
const SILENCE_TIMEOUT_MS = 150_000;
/** How long a client whose request cannot be read has to read why. */
const LINGER_MS = 1_000;
/** Of one connection: more than a client has use for that pipelines to hide the latency (RFC 9112 section 9.3.2). */
export const WAITING_REQUESTS_MAX = 64;
/** How often a closing server looks for connections that became idle. */
const SWEEP_INTERVAL_MS = 50;

/**
 * An HTTP server with time limits for slow clients, and a bound for those that do not wait for answers. A request that is
 * not HTTP gets the error envelope, too.
 */
export function createHttpServer(listener: RequestListener): Server {
  const checked = boundPipelines(checkedRequests(listener));
  const server = createServer(
    {
      headersTimeout: HEADERS_TIMEOUT_MS,
      requestTimeout: REQUEST_TIMEOUT_MS,
      keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
      maxHeaderSize: MAX_HEADER_BYTES,
      connectionsCheckingInterval: CHECK_INTERVAL_MS,
      optimizeEmptyRequests: true,
      // Node would answer without a word: see answerBadHost.
      requireHostHeader: false,
    },
    checked,
  );
  // Only their bytes are limited: Node ignores headers beyond a count, and one of those could be the X-Forwarded-For
  // that the proxy has added after the caller's own.
  server.maxHeadersCount = 0;
  server.setTimeout(SILENCE_TIMEOUT_MS);
  endSilent(server);
  server.on('clientError', answerUnreadable);
  // RFC 9110 section 10.1.1 leaves it to the server whether an expectation that it does not know matters.
  server.on('checkExpectation', checked);
  return server;
}

/**
 * Cuts a connection on which more requests wait for the answers to those before them. Node reads 64 KB of a connection at
 * once: more than two thousand short requests, which would all be begun in one turn of the event loop, and whose answers
 * would all be kept for a client that reads none. What such a connection holds is freed when it is cut. Calls that come
 * one after the other cost a comparison.
 */
function boundPipelines(listener: RequestListener): RequestListener {
  const waiting = new WeakMap<Socket, number>();
  const count = (socket: Socket, change: 1 | -1): number => {
    const now = (waiting.get(socket) ?? 0) + change;
    waiting.set(socket, now);
    return now;
  };
  return (request, response) => {
    const { socket } = request;
    if (socket.destroyed) return; // cut, and Node goes on to the end of what it has read
    if (response.socket === null) {
      if (count(socket, 1) > WAITING_REQUESTS_MAX) {
        socket.destroy();
        return;
      }
      response.once('socket', () => count(socket, -1));
    }
    listener(request, response);
  };
}

/** Listens and returns the port that was taken. The error says which it could not have. */
export function listen(server: Server, port: number, host: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const giveUp = (cause: NodeJS.ErrnoException) =>
      reject(
        new Error(
          `cannot listen on ${host}, port ${port}: ${LISTEN_PROBLEMS[cause.code ?? ''] ?? cause.code}`,
          { cause },
        ),
      );
    server.once('error', giveUp);
    server.listen(port, host, () => {
      server.off('error', giveUp);
      const address = server.address();
      resolve(typeof address === 'object' && address !== null ? address.port : port);
    });
  });
}

const LISTEN_PROBLEMS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'another process listens there',
  EACCES: 'this user may not',
  EADDRNOTAVAIL: 'this machine does not have that address',
  ENOTFOUND: 'there is no such host',
};

/**
 * Stops accepting, lets requests in flight finish for at most `graceMs`, then closes all connections. Idle connections
 * are kept for `idleMs`: a proxy may be sending on one at this moment, and a request on a closed connection is lost
 * unless its method is idempotent (RFC 9112 section 9.3.1). Requests in that time are answered.
 */
export async function close(server: Server, graceMs: number, idleMs = 0): Promise<void> {
  if (!server.listening) return;
  // What still comes on an open connection is answered, as its last request.
  server.prependListener('request', (_request, response) => {
    response.shouldKeepAlive = false;
  });
  const closed = new Promise<void>((resolve) => server.once('close', resolve));
  // Not the close of HTTP servers, which begins by cutting idle connections.
  NetServer.prototype.close.call(server);
  let sweep: NodeJS.Timeout | undefined;
  const idle = setTimeout(() => {
    server.close(); // cuts them, and ends the timer that looks for slow clients
    sweep = setInterval(() => server.closeIdleConnections(), SWEEP_INTERVAL_MS);
  }, idleMs);
  const cut = setTimeout(() => server.closeAllConnections(), graceMs);
  await closed;
  server.close(); // for its timer, when all had left before
  clearTimeout(idle);
  clearInterval(sweep);
  clearTimeout(cut);
}

/** Node could not read a request: answer on the bare socket and hang up. */
function answerUnreadable(error: UnreadableRequest, socket: Socket): void {
  if (!socket.writable || error.code === 'ECONNRESET') {
    socket.destroy();
    return;
  }
  // A 408 would cross a first request that the client sends at this moment, and be taken for its answer.
  socket.end(socket.bytesRead === 0 ? '' : refusal(error));
  // A client that does not hang up would keep the memory of its request, such as the beginning of a large body.
  setTimeout(() => socket.destroy(), LINGER_MS).unref();
}

function refusal({ code: reason = '', rawPacket }: UnreadableRequest): string {
  const [status, code, message] = UNREADABLE[reason] ?? NOT_HTTP;
  const { body } = errorAnswer(code, message);
  const [, target = ''] = rawPacket?.toString('latin1', 0, TARGET_BYTES).split(' ') ?? [];
  const beta = V3.test(target) ? 'X-API-Status: beta\r\n' : '';
  return (
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nConnection: close\r\n${beta}Content-Type: application/json; charset=utf-8\r\n` +
    `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
  );
}

interface UnreadableRequest extends NodeJS.ErrnoException {
  /** What came last, which mostly begins with the request line. */
  readonly rawPacket?: Buffer;
}

/** Enough for a method and the beginning of the target. */
const TARGET_BYTES = 32;

const NOT_HTTP = [400, 'BAD_REQUEST', 'the request is not valid HTTP'] as const;

/** The answers by the code of Node's error. */
const UNREADABLE: Readonly<Record<string, readonly [status: number, code: ErrorCode, message: string]>> = {
  HPE_HEADER_OVERFLOW: [431, 'HEADERS_TOO_LARGE', 'the request headers are too large'],
  ERR_HTTP_REQUEST_TIMEOUT: [408, 'BAD_REQUEST', 'the request was not complete in time'],
};
