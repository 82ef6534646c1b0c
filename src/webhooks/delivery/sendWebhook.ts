import { NODATA, NOTFOUND, Resolver } from 'node:dns/promises';
import { once } from 'node:events';
import type { ClientRequest, IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import { TLSSocket } from 'node:tls';
import type { CidrSet, IpAddress } from '../../access/ipAddress.ts';
import { invariant } from '../../lib/errors.ts';
import type { Span } from '../../traces/span.ts';
import { answerBeginning } from '../delivery.ts';
import type { ConnectionOwner, OwnedOptions, ReceiverConnections } from './receiverConnections.ts';
import { parseSafeAddress, parseSafeAnswer, validateWebhookUrl } from './urlSafety.ts';

export interface WebhookRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** JSON text, sent in UTF-8. */
  readonly body: string;
  /** The endpoint, whose kept connection may serve. */
  readonly owner: ConnectionOwner;
  /** Addresses that are allowed although they are not public. */
  readonly allowNets: CidrSet;
  /** From DNS to the last byte of the answer. */
  readonly deadlineMs?: number;
  /** By performance.now(). Nothing is sent later, even if the process stalls: the result is `unsent`. */
  readonly sendUntilMs?: number;
  readonly resolve?: Resolve;
  /** That of the attempt; its receiver learns of the part that is the request. Null: it is not traced. */
  readonly span?: Span | null;
  /** Certificates (PEM) trusted instead of the well-known ones. */
  readonly ca?: string;
}

/** A short code for the reason of a missing answer. */
export type SendError = ExchangeError | DnsError;

/** `durationMs` is whole milliseconds from DNS to the end; any status code counts as answered. */
export type SendResult =
  | (Answered & { readonly durationMs: number })
  | { readonly kind: 'failed'; readonly error: SendError; readonly durationMs: number }
  | { readonly kind: 'unsafe' | 'unsent' };

interface Answered {
  readonly kind: 'answered';
  readonly statusCode: number;
  /** How its body begins (see answerBeginning). */
  readonly answer: string;
}

const DEADLINE_MS = 10_000;

/**
 * One attempt: validates the URL again, resolves its host once, checks every address, and sends one POST to one of
 * them. `unsafe`: no packet was sent to the host. `unsent`: the process stalled, and the request was not sent. Never rejects.
 */
export async function sendWebhook(
  connections: ReceiverConnections,
  request: WebhookRequest,
): Promise<SendResult> {
  const { allowNets, deadlineMs = DEADLINE_MS, resolve = resolveHost } = request;
  const { sendUntilMs = Number.POSITIVE_INFINITY } = request;
  const validated = validateWebhookUrl(request.url, allowNets);
  if (!validated.ok) return { kind: 'unsafe' };
  const url = new URL(validated.value);
  const startedMs = performance.now();
  const untilMs = Math.min(startedMs + deadlineMs, sendUntilMs);
  const deadline = new AbortController();
  const { signal } = deadline;
  const timer = setTimeout(() => deadline.abort(), deadlineMs);
  try {
    request.span?.step('resolve address');
    const targets = await findTargets(url.hostname, allowNets, resolve, signal);
    const post = { ...request, url, connections, signal, untilMs };
    const outcome =
      targets.kind === 'addresses' ? await postTraced({ ...post, addresses: targets.addresses }) : targets;
    if (outcome.kind === 'unsafe' || outcome.kind === 'unsent') return outcome;
    return { ...outcome, durationMs: Math.round(performance.now() - startedMs) };
  } finally {
    clearTimeout(timer);
  }
}

/** The checked addresses that a delivery may connect to, at least one; or why there is none. */
type Targets =
  | { readonly kind: 'addresses'; readonly addresses: readonly IpAddress[] }
  | { readonly kind: 'unsafe' }
  | { readonly kind: 'failed'; readonly error: 'timeout' | DnsError };

/**
 * The addresses of `hostname`, the host of a WHATWG URL. A literal is its own address, a localhost name means the
 * loopback (RFC 6761 section 6.3), and any other name is resolved once. Every address is checked. `timeout` when the
 * signal aborts first.
 */
export async function findTargets(
  hostname: string,
  allowNets: CidrSet,
  resolve: Resolve,
  signal: AbortSignal,
): Promise<Targets> {
  const literal = withoutBrackets(hostname);
  if (isIP(literal) !== 0) return check([parseSafeAddress(literal, allowNets)]);
  if (hostname === 'localhost' || hostname.endsWith('.localhost')) {
    const loopbacks = ['127.0.0.1', '::1'].map((text) => parseSafeAddress(text, allowNets));
    return check(loopbacks.filter((address) => address !== null));
  }
  const timeout = once(signal, 'abort').then(() => ({ kind: 'failed', error: 'timeout' }) as const);
  const resolution = await Promise.race([resolve(hostname, signal), timeout]);
  if (resolution.kind === 'failed') return resolution;
  if (resolution.addresses.length === 0) return { kind: 'failed', error: 'dns_not_found' };
  return check(resolution.addresses.map((address) => parseSafeAnswer(address, allowNets)));
}

function withoutBrackets(hostname: string): string {
  return hostname.replace(/^\[(.*)\]$/, '$1');
}

/** All addresses must be safe: it must not matter which of them the connection uses. */
function check(addresses: readonly (IpAddress | null)[]): Targets {
  const safe = addresses.filter((address) => address !== null);
  const isSafe = safe.length > 0 && safe.length === addresses.length;
  return isSafe ? { kind: 'addresses', addresses: safe } : { kind: 'unsafe' };
}

type DnsError = 'dns_not_found' | 'dns_failed';

/** The addresses of a host name as text; or why there is none. */
type Resolution =
  | { readonly kind: 'addresses'; readonly addresses: readonly string[] }
  | { readonly kind: 'failed'; readonly error: DnsError };

/** Resolves a host name. Never rejects. May stop early when the signal aborts. */
export type Resolve = (hostname: string, signal: AbortSignal) => Promise<Resolution>;

/** Per server and try. A second try waits twice as long, so a dead resolver fails within a delivery's deadline. */
const TRY_TIMEOUT_MS = 2_000;
const TRIES = 2;

/**
 * Asks DNS for A and AAAA at once, without the hosts file and without search domains. If only one of the two is
 * answered, its addresses are the answer. `servers` (address and port) replace those of the system.
 */
export async function resolveHost(
  hostname: string,
  signal: AbortSignal,
  servers?: readonly string[],
): Promise<Resolution> {
  // Its own resolver, because cancel() drops all open questions of a resolver.
  const resolver = new Resolver({ timeout: TRY_TIMEOUT_MS, tries: TRIES });
  if (servers) resolver.setServers(servers);
  const cancel = () => resolver.cancel();
  signal.addEventListener('abort', cancel, { once: true });
  const answers = await Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)]);
  signal.removeEventListener('abort', cancel);
  const addresses = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
  if (addresses.length > 0) return { kind: 'addresses', addresses };
  const isAbsent = answers.every((answer) => answer.status === 'fulfilled' || isAbsentError(answer.reason));
  return { kind: 'failed', error: isAbsent ? 'dns_not_found' : 'dns_failed' };
}

function isAbsentError(error: unknown): boolean {
  return error instanceof Error && 'code' in error && (error.code === NODATA || error.code === NOTFOUND);
}

interface Post extends Pick<WebhookRequest, 'headers' | 'body' | 'owner' | 'ca'> {
  readonly url: URL;
  /** At least one checked address. The connection goes to one of them, whatever DNS answers by now. */
  readonly addresses: readonly IpAddress[];
  readonly connections: ReceiverConnections;
  /** Ends the exchange as `timeout`. */
  readonly signal: AbortSignal;
  /** By performance.now(). Nothing is sent later, even if the signal comes late. */
  readonly untilMs: number;
}

async function postTraced(post: Post & Pick<WebhookRequest, 'span'>): Promise<Exchange> {
  const { span, url, headers } = post;
  if (!span) return postOnce(post);
  const request = span.step('POST', { 'http.request.method': 'POST', ...serverOf(url) });
  const outcome = await postOnce({ ...post, headers: { ...headers, traceparent: request.traceparent } });
  if (outcome.kind === 'answered') request.set({ 'http.response.status_code': outcome.statusCode });
  if (outcome.kind === 'answered' && outcome.statusCode >= 400) request.fail(String(outcome.statusCode));
  if (outcome.kind === 'failed') request.fail(outcome.error);
  return outcome;
}

/** Whom a URL names; its path and its query may be secrets. */
const serverOf = (url: URL) => ({ 'server.address': url.hostname, 'server.port': portOf(url) });

const portOf = ({ port }: URL): number => (port === '' ? 443 : Number(port));

type Exchange =
  | Answered
  /** The process stalled until it was too late to send, and nothing was sent. */
  | { readonly kind: 'unsent' }
  | { readonly kind: 'failed'; readonly error: ExchangeError };

const USER_AGENT = 'fleet-tracking-service';
/** How much of the answer's body is read. The limit for the head is that of node:http, also 16 KB. */
const MAX_BODY_BYTES = 16 * 1024;
/** 1xx answers before the real one. */
const MAX_INTERIM_ANSWERS = 8;
const MAX_ADDRESSES = 8;

/**
 * Sends one POST, over the kept connection of its owner if that goes to one of the addresses, otherwise over a new one.
 * TLS is verified against the name in the URL. No redirect is followed and no proxy is used. The answer counts when its
 * body has ended or has reached 16 KB; only after an answer that has ended is the connection kept.
 *
 * A receiver may close a kept connection just when a request is sent over it. Then the request is sent once more over a
 * new connection, within the same limits of time. Never rejects.
 */
async function postOnce(post: Post): Promise<Exchange> {
  post.connections.check(post.owner, post.addresses);
  const first = await exchange(post);
  if (first.kind !== 'closed') return first;
  const again = await exchange(post);
  if (again.kind === 'unsent') return { kind: 'failed', error: 'timeout' };
  return again.kind === 'closed' ? { kind: 'failed', error: 'connection_reset' } : again;
}

/** `closed`: a kept connection was closed before a byte of the answer came. */
type Outcome = Exchange | { readonly kind: 'closed' };

function exchange(post: Post): Promise<Outcome> {
  const { signal, untilMs, body } = post;
  return new Promise((resolve) => {
    let request: ClientRequest | null = null;
    const onAbort = () => finish({ kind: 'failed', error: 'timeout' }, false);
    const finish = (outcome: Outcome, isReusable: boolean) => {
      signal.removeEventListener('abort', onAbort);
      resolve(outcome);
      if (!isReusable) request?.destroy();
    };
    if (signal.aborted) return onAbort();
    signal.addEventListener('abort', onAbort, { once: true });
    try {
      request = open(post);
    } catch {
      return finish({ kind: 'failed', error: 'invalid_request' }, false); // a header or path that HTTP cannot carry
    }
    follow(request, finish);
    // A process that stalled reads its sockets before its timers. It may find the connection ready long after another
    // pod has taken over the endpoint.
    const send = (): void => {
      if (performance.now() < untilMs) request?.end(body);
      else finish({ kind: 'unsent' }, false);
    };
    request.once('socket', (socket) => {
      if (request?.reusedSocket) send();
      else socket.once('secureConnect', send);
    });
  });
}

function open({ url, headers, body, addresses, connections, owner, ca }: Post): ClientRequest {
  const options: OwnedOptions = {
    method: 'POST',
    hostname: withoutBrackets(url.hostname),
    port: portOf(url),
    path: url.pathname + url.search,
    headers: { ...headers, 'User-Agent': USER_AGENT, 'Content-Length': Buffer.byteLength(body) },
    agent: connections,
    owner,
    ...(ca !== undefined && { ca }),
    lookup: pinned(addresses),
    rejectUnauthorized: true,
  };
  return httpsRequest(options);
}

/** Calls `finish` at least once. Only the first call counts: later errors come from closing the connection. */
function follow(request: ClientRequest, finish: (outcome: Outcome, isReusable: boolean) => void): void {
  let response: IncomingMessage | null = null;
  let hasAnswerBegun = false;
  let bodyBytes = 0;
  const chunks: Buffer[] = [];
  let interimAnswers = 0;
  let answered: Answered | null = null;
  const finishAnswered = ({ statusCode = 0 }: IncomingMessage, isReusable = false) => {
    answered ??= { kind: 'answered', statusCode, answer: answerBeginning(chunks) };
    finish(answered, isReusable);
  };
  const finishFailed = (error: ExchangeError) => {
    // An error after a complete answer changes nothing.
    if (response?.complete) return finishAnswered(response);
    const isClosed = error === 'connection_reset' || error === 'connection_failed';
    const mayBeRepeated = request.reusedSocket && !hasAnswerBegun && isClosed;
    finish(mayBeRepeated ? { kind: 'closed' } : { kind: 'failed', error }, false);
  };
  const onError = (error: unknown) => finishFailed(exchangeError(error, request.socket));

  request.on('error', onError);
  request.on('close', () => finishFailed('connection_reset'));
  request.once('socket', (socket) => {
    const begin = () => {
      hasAnswerBegun = true;
    };
    socket.once('data', begin);
    request.once('close', () => socket.off('data', begin));
  });
  request.on('information', () => {
    if (++interimAnswers > MAX_INTERIM_ANSWERS) finishFailed('invalid_response');
  });
  request.on('response', (incoming: IncomingMessage) => {
    response = incoming;
    incoming.on('error', onError);
    // The receiver may answer before it has read the whole request.
    incoming.on('end', () => finishAnswered(incoming, request.writableFinished));
    incoming.on('data', (chunk: Buffer) => {
      bodyBytes += chunk.length;
      chunks.push(chunk);
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

/** Why an HTTPS exchange with a receiver failed. The owner reads it as last_error. */
type ExchangeError =
  | 'timeout'
  | 'connection_refused'
  | 'connection_failed'
  | 'connection_reset'
  | 'certificate_invalid'
  | 'tls_failed'
  | 'invalid_response'
  | 'invalid_request';

/** Classifies an error of node:https by its code and by the certificate check of the socket, never by its text. */
function exchangeError(error: unknown, socket: unknown): ExchangeError {
  if (socket instanceof TLSSocket && socket.authorizationError) return 'certificate_invalid';
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  if (code.startsWith('HPE_')) return 'invalid_response';
  if (code === 'EPROTO' || code.startsWith('ERR_SSL_') || code.startsWith('ERR_TLS_')) return 'tls_failed';
  if (code === 'ECONNREFUSED') return 'connection_refused';
  if (code === 'ECONNRESET' || code === 'EPIPE') return 'connection_reset';
  return 'connection_failed';
}
