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
  /** At least one checked address. The connection goes to one of them, whatever DNS answers by now. */
  readonly addresses: readonly IpAddress[];
  /** Certificates (PEM) trusted instead of the well-known ones. */
  readonly ca: string | undefined;
  /** Ends the exchange as `timeout`. */
  readonly signal: AbortSignal;
  /** When the signal is due, by performance.now(). Nothing is sent later, even if the signal itself comes late. */
  readonly untilMs: number;
}

export type Exchange =
  | { readonly kind: 'answered'; readonly statusCode: number }
  | { readonly kind: 'failed'; readonly error: ExchangeError };

const USER_AGENT = 'fleet-tracking-service';
/** Of the answer's body; the rest is not read. The head has the limit of node:http, also 16 KB. */
const MAX_BODY_BYTES = 16 * 1024;
/** 1xx answers before the real one. */
const MAX_INTERIM_ANSWERS = 8;
const MAX_ADDRESSES = 8;

/**
 * Sends one POST over a connection of its own. TLS is verified against the name in the URL. No redirect is followed, no
 * proxy is used, and no connection is reused. The answer counts when its body has ended or has reached 16 KB. Never
 * rejects.
 */
export function postOnce(post: Post): Promise<Exchange> {
  const { signal, untilMs, body } = post;
  return new Promise((resolve) => {
    let request: ClientRequest | null = null;
    const onAbort = () => finish({ kind: 'failed', error: 'timeout' });
    const finish = (exchange: Exchange) => {
      signal.removeEventListener('abort', onAbort);
      resolve(exchange);
      request?.destroy();
    };
    if (signal.aborted) return onAbort();
    signal.addEventListener('abort', onAbort, { once: true });
    try {
      request = open(post);
    } catch {
      return finish({ kind: 'failed', error: 'invalid_request' }); // a header or path that HTTP cannot carry
    }
    follow(request, finish);
    // A process that stalled reads its sockets before its timers. It may find the connection ready long after another
    // pod has taken over the endpoint.
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

/** Calls `settle` at least once. Only the first call counts: later errors come from closing the connection. */
function follow(request: ClientRequest, finish: (exchange: Exchange) => void): void {
  let response: IncomingMessage | null = null;
  let bodyBytes = 0;
  let interimAnswers = 0;
  const finishAnswered = ({ statusCode = 0 }: IncomingMessage) => finish({ kind: 'answered', statusCode });
  // An error after a complete answer changes nothing.
  const finishFailed = (error: ExchangeError) =>
    response?.complete ? finishAnswered(response) : finish({ kind: 'failed', error });
  const onError = (error: unknown) => finishFailed(exchangeError(error, request.socket));

  request.on('error', onError);
  request.on('close', () => finishFailed('connection_reset'));
  request.on('information', () => {
    if (++interimAnswers > MAX_INTERIM_ANSWERS) finishFailed('invalid_response');
  });
  request.on('response', (incoming: IncomingMessage) => {
    response = incoming;
    incoming.on('error', onError);
    incoming.on('end', () => finishAnswered(incoming));
    incoming.on('data', (chunk: Buffer) => {
      bodyBytes += chunk.length;
      if (bodyBytes >= MAX_BODY_BYTES) finishAnswered(incoming);
    });
  });
}

/** A lookup that returns these addresses. The list must not be empty: calling back with [] kills the process. */
function pinned(addresses: readonly IpAddress[]): LookupFunction {
  const answers = addresses.slice(0, MAX_ADDRESSES).map(({ text, family }) => ({ address: text, family }));
  const [first] = answers;
  invariant(first, 'a connection needs an address');
  return (_hostname, options, callback) => {
    if (options.all) callback(null, answers);
    else callback(null, first.address, first.family);
  };
}
