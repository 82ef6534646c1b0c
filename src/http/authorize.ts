import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { AccessDecision, Authorizer } from '../access/authorizer.ts';
import type { KeyState } from '../access/credentials.ts';
import { readKey, type ShownKey } from '../access/credentials.ts';
import { type CidrSet, type ClientAddress, clientAddress } from '../access/ipAddress.ts';
import { ANYBODY, type ScopeMask, SESSION_ONLY, scopeNames, VIEWER, WRITING } from '../access/scopes.ts';
import { formatIso } from '../lib/time.ts';
import type { Span } from '../traces/span.ts';
import { type Answer, errorAnswer, plainErrorAnswer } from './answer.ts';
import type { ApiVersion, Route } from './route.ts';

export interface AuthorizePorts {
  readonly authorizer: Authorizer;
  readonly trustedProxies: CidrSet;
}

/**
 * Who calls, and whether the call may go on. Rejects when Postgres had to be asked and could not. On v1 and on the
 * management of webhooks a session counts as well as a key; with both headers X-API-Key decides. A login needs neither,
 * nor does what a link shows, so their headers are ignored.
 */
export function authorizeRequest(
  { authorizer, trustedProxies }: AuthorizePorts,
  request: IncomingMessage,
  version: ApiVersion,
  nowMs: number,
  span: Span | null,
): AccessDecision | Promise<AccessDecision> {
  const { apiKey, forwardedFor } = callerHeaders(request.rawHeaders);
  const { shown, client } = callerOf(request.socket, apiKey, forwardedFor, trustedProxies);
  if (version === 'share') return authorizer.authorizeAnybody(client, nowMs);
  if (takesSessions(version)) {
    if (isLogin(request)) return authorizer.authorizeAnybody(client, nowMs);
    // All of them: `headers` keeps the first and passes over the others without a word.
    if (shown.kind === 'none') {
      const { authorization = [] } = request.headersDistinct;
      return authorizer.authorizeSession(authorization, client, nowMs);
    }
  }
  return authorizer.authorize(shown, client, nowMs, span);
}

function takesSessions(version: ApiVersion): boolean {
  return version === 'v1' || version === 'webhooks';
}

function isLogin({ method, url }: IncomingMessage): boolean {
  return method === 'POST' && LOGIN.test(url ?? '');
}

const LOGIN = /^\/api\/v1\/session\/?(?:\?|$)/;

/** Where a call comes from. */
export function clientOf(
  { trustedProxies }: Pick<AuthorizePorts, 'trustedProxies'>,
  request: IncomingMessage,
): ClientAddress {
  const { apiKey, forwardedFor } = callerHeaders(request.rawHeaders);
  return callerOf(request.socket, apiKey, forwardedFor, trustedProxies).client;
}

/** The account of a key that memory knows, else the network of the address. Nothing is checked and nothing is counted. */
export function likelyCaller(
  { authorizer, trustedProxies }: AuthorizePorts,
  request: IncomingMessage,
): number | string {
  const { apiKey, forwardedFor } = callerHeaders(request.rawHeaders);
  const { shown, client } = callerOf(request.socket, apiKey, forwardedFor, trustedProxies);
  return authorizer.knownAccount(shown) ?? client.network;
}

/** By whom a call that continues a trace is counted: the account of its key, and all whose key is not in memory as one. */
export function tracedCaller(ports: AuthorizePorts, request: IncomingMessage): number {
  const caller = likelyCaller(ports, request);
  return typeof caller === 'number' ? caller : 0;
}

/** Counts a call that needs no credentials by its address. The answer that refuses it; null: it may go on. */
export async function countAnybody(
  { authorizer, trustedProxies }: AuthorizePorts,
  request: IncomingMessage,
  nowMs: number,
): Promise<Answer | null> {
  const { apiKey, forwardedFor } = callerHeaders(request.rawHeaders);
  const { client } = callerOf(request.socket, apiKey, forwardedFor, trustedProxies);
  const decision = await authorizer.authorizeAnybody(client, nowMs);
  return decision.kind === 'granted' ? null : deniedAnswer(decision, 'share');
}

/** The answer to a call that was not let in. */
export function deniedAnswer(
  decision: Exclude<AccessDecision, { kind: 'granted' }>,
  version: ApiVersion,
): Answer {
  if (decision.kind === 'denied') {
    if (decision.endedAtMs !== undefined)
      return errorAnswer(decision.code, `this API key ended at ${formatIso(decision.endedAtMs)}`);
    return decision.code === 'API_KEY_REQUIRED' && takesSessions(version)
      ? errorAnswer(
          decision.code,
          'an API key in X-API-Key, or a session in Authorization: Bearer, is required',
        )
      : errorAnswer(decision.code);
  }
  const message = limitMessage(decision.limit);
  return version === 'v2' ? plainErrorAnswer(429, message) : errorAnswer('TOO_MANY_REQUESTS', message);
}

type LimitName = Extract<AccessDecision, { kind: 'limited' }>['limit'];

const LIMIT_NAMES: Readonly<Record<LimitName, string>> = {
  ip_minute: 'requests per IP address per minute',
  key_minute: 'requests per key per minute',
  key_hour: 'requests per key per hour',
};

/** Names the limit that is exceeded. */
export function limitMessage(limit: LimitName): string {
  return `rate limit exceeded: ${LIMIT_NAMES[limit]}`;
}

/** The header X-API-Version belongs to v1: v2 accepts no other value in it, v3 does not look at it. */
export function rejectApiVersion(request: IncomingMessage, version: ApiVersion): Answer | null {
  if (version !== 'v2') return null;
  const { apiVersion } = callerHeaders(request.rawHeaders);
  return apiVersion === undefined || apiVersion === 'v1'
    ? null
    : errorAnswer('BAD_REQUEST', 'the header X-API-Version must not be set');
}

/** The answer to a caller whose permissions do not open a route; null when they do. */
export function refuseScope(version: ApiVersion, route: Route, caller: KeyState): Answer | null {
  const { method, scopes, needsAllScopes = false } = route;
  if (isDeniedToViewer(caller.scopes, method, scopes)) return errorAnswer('INSUFFICIENT_SCOPE', VIEWERS_READ);
  const shared = caller.scopes & scopes;
  const isOpen = needsAllScopes ? shared === scopes : shared !== 0;
  if (version === 'v1' && (method !== 'GET' || scopes === SESSION_ONLY)) {
    // On v1 a key reads only: everything but GET takes a session, or comes before one. So does what is about a session.
    return isOpen && (caller.scopes & (SESSION_ONLY | ANYBODY)) !== 0
      ? null
      : errorAnswer('FORBIDDEN', 'this takes a session; an API key may only read here');
  }
  if (isOpen)
    return caller.worldIds.groups === undefined || route.isOpenToGroups ? null : refuseGroups(version);
  const message = scopeError(scopes, needsAllScopes);
  return version === 'v2' ? plainErrorAnswer(403, message) : errorAnswer('INSUFFICIENT_SCOPE', message);
}

/** A route that is not said to be limited is closed, so none is forgotten. */
function refuseGroups(version: ApiVersion): Answer {
  return version === 'v2'
    ? plainErrorAnswer(403, GROUPS_ONLY)
    : errorAnswer('INSUFFICIENT_SCOPE', GROUPS_ONLY);
}

const GROUPS_ONLY = 'this API key sees only devices of its groups, and the answer cannot be limited to them';
/** True when this is a viewer at a route that writes. Routes of GET and HEAD read. */
export function isDeniedToViewer(caller: ScopeMask, method: string, route: ScopeMask): boolean {
  return (caller & VIEWER) !== 0 && method !== 'GET' && (route & WRITING) !== 0 && (route & VIEWER) === 0;
}

const VIEWERS_READ = 'this account is a viewer: it reads, and changes nothing';

/** Names the permissions of which one is missing. */
export function scopeError(scopes: ScopeMask, needsAll = false): string {
  return `this API key lacks the permission ${scopeNames(scopes).join(needsAll ? ' and ' : ' or ')}`;
}

/** Identifies the caller by two headers and the peer's address. */
interface Caller {
  readonly shown: ShownKey;
  readonly client: ClientAddress;
}

interface LastCaller extends Caller {
  readonly apiKey: string | undefined;
  readonly forwardedFor: string | undefined;
}

/**
 * The caller of a request. Clients that poll keep their connection open. While the headers of a connection stay the
 * same, the hash of the key and the address are those of its last request. They are dropped with the connection.
 */
export function callerOf(
  socket: Socket,
  apiKey: string | undefined,
  forwardedFor: string | undefined,
  trustedProxies: CidrSet,
): Caller {
  const last = lastCallers.get(socket);
  if (last !== undefined && last.apiKey === apiKey && last.forwardedFor === forwardedFor) return last;
  const client = clientAddress(socket.remoteAddress, forwardedFor, trustedProxies);
  const caller = { shown: readKey(apiKey), client, apiKey, forwardedFor };
  lastCallers.set(socket, caller);
  return caller;
}

const lastCallers = new WeakMap<Socket, LastCaller>();

/** The headers that name a caller; undefined for a missing one. */
interface CallerHeaders {
  readonly apiKey: string | undefined;
  readonly forwardedFor: string | undefined;
  readonly apiVersion: string | undefined;
}

/**
 * Picks the caller's headers out of Node's flat list of names and values; several of one name are joined by commas
 * (RFC 9110 section 5.3). `request.headers` says the same, but sorts every header of the request into an object first.
 */
export function callerHeaders(rawHeaders: readonly string[]): CallerHeaders {
  let apiKey: string | undefined;
  let forwardedFor: string | undefined;
  let apiVersion: string | undefined;
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] as string;
    const value = rawHeaders[at + 1] as string;
    // Lengths first: hardly any other header is lower-cased for this.
    if (name.length === 9 && name.toLowerCase() === 'x-api-key') apiKey = joined(apiKey, value);
    else if (name.length === 13 && name.toLowerCase() === 'x-api-version')
      apiVersion = joined(apiVersion, value);
    else if (name.length === 15 && name.toLowerCase() === 'x-forwarded-for')
      forwardedFor = joined(forwardedFor, value);
  }
  return { apiKey, forwardedFor, apiVersion };
}

/** The value of one header by its name in lower case, found in the same way; undefined when it is missing. */
export function headerOf(rawHeaders: readonly string[], name: string): string | undefined {
  let found: string | undefined;
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const sent = rawHeaders[at] as string;
    if (sent.length === name.length && sent.toLowerCase() === name)
      found = joined(found, rawHeaders[at + 1] as string);
  }
  return found;
}

function joined(before: string | undefined, value: string): string {
  return before === undefined ? value : `${before}, ${value}`;
}
