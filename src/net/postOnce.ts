import type { ClientRequest, IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { LookupFunction } from 'node:net';
import type { IpAddress } from '../access/ipAddress.ts';
import { invariant } from '../base/invariant.ts';
import { type ExchangeError, exchangeError } from './exchangeError.ts';
import { newAgent, sharedAgent } from './sharedTls.ts';

export interface Post {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  /** JSON text, sent in UTF-8. */
  readonly body: string;
  /** Checked; the connection goes to one of these, whatever DNS says by now. At least one. */
  readonly addresses: readonly IpAddress[];
  /** Certificates (PEM) trusted instead of the well-known ones. */
  readonly ca: string | undefined;
  /** Ends the exchange as `timeout`. */
  readonly signal: AbortSignal;
  /** When the signal is due, by performance.now(): nothing is sent later, even if the signal comes late. */
  readonly untilMs: number;
}

export type Exchange =
  | { readonly kind: 'answered'; readonly statusCode: number }
  | { readonly kind: 'failed'; readonly error: ExchangeError };

const USER_AGENT = 'fleet-tracking-service';
/** Of the answer's body; what comes after it is cut off. Its head has the limit of node:http, 16 KB too. */
const MAX_BODY_BYTES = 16 * 1024;
/** 1xx answers before the real one. */
const MAX_INTERIM_ANSWERS = 8;
const MAX_ADDRESSES = 8;

/**
 * One POST over a connection of its own: TLS verified by the name in the URL, no redirect followed, no proxy, no
 * connection kept for later. The answer counts when its body has ended or was cut off at 16 KB. Never rejects.
 */
export function postOnce(post: Post): Promise<Exchange> {
  const { signal, untilMs, body } = post;
  return new Promise((resolve) => {
    let request: ClientRequest | null = null;
    const onAbort = () => settle({ kind: 'failed', error: 'timeout' });
    const settle = (exchange: Exchange) => {
      signal.removeEventListener('abort', onAbort);
      resolve(exchange);
      request?.destroy();
    };
    if (signal.aborted) return onAbort();
    signal.addEventListener('abort', onAbort, { once: true });
    try {
      request = open(post);
    } catch {
      return settle({ kind: 'failed', error: 'invalid_request' }); // a header or path that HTTP cannot carry
    }
    follow(request, settle);
    // A process that stood still reads its sockets before its timers: it may find its connection ready long after
    // somebody else has taken over.
    const send = (): void => {
      if (performance.now() < untilMs) request?.end(body);
      else onAbort();
    };
    request.once('socket', (socket) => socket.once('secureConnect', send));
  });
}

function open({ url, headers, body, addresses, ca }: Post): ClientRequest {
  const hostname = url.hostname.replace(/^\[(.*)\]$/, '$1');
  return httpsRequest({
    method: 'POST',
    hostname,
    port: url.port === '' ? 443 : Number(url.port),
    path: url.pathname + url.search,
    headers: {
      ...headers,
      'User-Agent': USER_AGENT,
      'Content-Length': Buffer.byteLength(body),
      Connection: 'close',
    },
    ...(ca === undefined ? { agent: sharedAgent() } : { agent: newAgent(), ca }),
    lookup: pinned(addresses),
    rejectUnauthorized: true,
  });
}

/** Calls `settle` at least once; only the first call counts. Errors after it are those of the cut. */
function follow(request: ClientRequest, settle: (exchange: Exchange) => void): void {
  let response: IncomingMessage | null = null;
  let bodyBytes = 0;
  let interimAnswers = 0;
  const settleAnswered = ({ statusCode = 0 }: IncomingMessage) => settle({ kind: 'answered', statusCode });
  // What goes wrong behind a complete answer does not undo it.
  const settleFailed = (error: ExchangeError) =>
    response?.complete ? settleAnswered(response) : settle({ kind: 'failed', error });
  const onError = (error: unknown) => settleFailed(exchangeError(error, request.socket));

  request.on('error', onError);
  request.on('close', () => settleFailed('connection_reset'));
  request.on('information', () => {
    if (++interimAnswers > MAX_INTERIM_ANSWERS) settleFailed('invalid_response');
  });
  request.on('response', (incoming: IncomingMessage) => {
    response = incoming;
    incoming.on('error', onError);
    incoming.on('end', () => settleAnswered(incoming));
    incoming.on('data', (chunk: Buffer) => {
      bodyBytes += chunk.length;
      if (bodyBytes >= MAX_BODY_BYTES) settleAnswered(incoming);
    });
  });
}

/** A look-up that knows the answer. It must have one: calling back with an empty list kills the process. */
function pinned(addresses: readonly IpAddress[]): LookupFunction {
  const answers = addresses.slice(0, MAX_ADDRESSES).map(({ text, family }) => ({ address: text, family }));
  const [first] = answers;
  invariant(first, 'a connection needs an address');
  return (_hostname, options, callback) => {
    if (options.all) callback(null, answers);
    else callback(null, first.address, first.family);
  };
}
