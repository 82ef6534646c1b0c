import { NODATA, NOTFOUND, Resolver } from 'node:dns/promises';
import { isIP } from 'node:net';
import type { CidrSet } from '../../access/cidrSet.ts';
import { type IpAddress, parseIpAddress } from '../../access/ipAddress.ts';
import { parseSafeAddress, parseSafeAnswer } from './addressSafety.ts';
import type { ExchangeError } from './postOnce.ts';
import { postOnce } from './postOnce.ts';
import type { ConnectionOwner, ReceiverConnections } from './receiverConnections.ts';
import { validateWebhookUrl } from './urlSafety.ts';

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
  /** Certificates (PEM) trusted instead of the well-known ones. */
  readonly ca?: string;
}

/** A short code for the reason of a missing answer. */
export type SendError = ExchangeError | DnsError;

/** `durationMs` is whole milliseconds from DNS to the end; any status code counts as answered. */
export type SendResult =
  | { readonly kind: 'answered'; readonly statusCode: number; readonly durationMs: number }
  | { readonly kind: 'failed'; readonly error: SendError; readonly durationMs: number }
  | { readonly kind: 'unsafe' | 'unsent' };

const DEADLINE_MS = 10_000;

/**
 * One attempt: validates the URL again, resolves its host once, checks every address, and sends one POST to one of
 * them. `unsafe`: no packet was sent to the host. `unsent`: the process stalled, and the request was not sent. Never rejects.
 */
export async function sendWebhook(
  connections: ReceiverConnections,
  request: WebhookRequest,
): Promise<SendResult> {
  const { headers, body, owner, allowNets, deadlineMs = DEADLINE_MS, resolve = resolveHost, ca } = request;
  const { sendUntilMs = Number.POSITIVE_INFINITY } = request;
  const validated = validateWebhookUrl(request.url, allowNets);
  if (!validated.ok) return { kind: 'unsafe' };
  const url = new URL(validated.value);
  const startedMs = performance.now();
  const deadline = new AbortController();
  const { signal } = deadline;
  const timer = setTimeout(() => deadline.abort(), deadlineMs);
  try {
    const targets = await findTargets(url.hostname, allowNets, resolve, signal);
    if (targets.kind === 'unsafe') return targets;
    const outcome =
      targets.kind === 'failed'
        ? targets
        : await postOnce({
            url,
            headers,
            body,
            addresses: targets.addresses,
            connections,
            owner,
            ca,
            signal,
            untilMs: Math.min(startedMs + deadlineMs, sendUntilMs),
          });
    if (outcome.kind === 'unsent') return outcome;
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

type DnsError = Extract<Resolution, { kind: 'failed' }>['error'];

/**
 * The addresses of `hostname`, the host of a WHATWG URL. A literal is its own address, a localhost name means the
 * loopback, and any other name is resolved once. Every address is checked. `timeout` when the signal aborts first.
 */
export async function findTargets(
  hostname: string,
  allowNets: CidrSet,
  resolve: Resolve,
  signal: AbortSignal,
): Promise<Targets> {
  const literal = hostname.replace(/^\[(.*)\]$/, '$1');
  if (isIP(literal) !== 0) return check([parseSafeAddress(literal, allowNets)]);
  if (isLocalhost(hostname)) return check(allowedLoopbacks(allowNets));
  const resolution = await Promise.race([resolve(hostname, signal), timeout(signal)]);
  if (resolution.kind === 'failed') return resolution;
  if (resolution.addresses.length === 0) return { kind: 'failed', error: 'dns_not_found' };
  return check(resolution.addresses.map((address) => parseSafeAnswer(address, allowNets)));
}

/** All addresses must be safe: it must not matter which of them the connection uses. */
function check(addresses: readonly (IpAddress | null)[]): Targets {
  const safe = addresses.filter((address) => address !== null);
  const isSafe = safe.length > 0 && safe.length === addresses.length;
  return isSafe ? { kind: 'addresses', addresses: safe } : { kind: 'unsafe' };
}

/** RFC 6761 section 6.3: these names mean the loopback, and are not sent to a DNS server. */
function isLocalhost(hostname: string): boolean {
  return hostname === 'localhost' || hostname.endsWith('.localhost');
}

function allowedLoopbacks(allowNets: CidrSet): IpAddress[] {
  return ['127.0.0.1', '::1']
    .map(parseIpAddress)
    .filter((address) => address !== null)
    .filter((address) => allowNets.has(address));
}

function timeout(signal: AbortSignal): Promise<Targets & { kind: 'failed' }> {
  return new Promise((resolve) => {
    const onAbort = () => resolve({ kind: 'failed', error: 'timeout' });
    if (signal.aborted) onAbort();
    else signal.addEventListener('abort', onAbort, { once: true });
  });
}

/** The addresses of a host name as text, at least one; or why there is none. */
type Resolution =
  | { readonly kind: 'addresses'; readonly addresses: readonly string[] }
  | { readonly kind: 'failed'; readonly error: 'dns_not_found' | 'dns_failed' };

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
