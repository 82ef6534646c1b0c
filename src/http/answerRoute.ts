import type { KeyState } from '../access/keyState.ts';
import { ANYBODY, hasAll, hasAny, type ScopeMask, SESSION_ONLY, scopeNames } from '../access/scopes.ts';
import { DeadlineExceeded, OutOfTime, withDeadline } from '../lib/deadline.ts';
import { type Answer, errorAnswer, plainErrorAnswer } from './answer.ts';
import { parameterError, readChoice } from './parameters/parameter.ts';
import { type Query, readQuery } from './parameters/query.ts';
import {
  knownParameters,
  STRICT,
  unknownParametersMessage,
  unknownParametersText,
} from './parameters/unknownParameters.ts';
import type { ApiVersion, Call, Route } from './route.ts';

/** A Postgres that neither answers nor fails must not keep a caller waiting for ever. Polled routes do not ask it. */
const ANSWER_DEADLINE_MS = 15_000;

/** A route below one of its prefixes. */
export interface MountedRoute {
  readonly version: ApiVersion;
  readonly route: Route;
  /** The query parameters that it reads; null where unknown ones are ignored. */
  readonly known: ReadonlySet<string> | null;
}

export function mounted(version: ApiVersion, route: Route): MountedRoute {
  return { version, route, known: knownParameters(version, route) };
}

/** What stands between an authorized call and its route: the permission, then the form of its query. */
export type Resolved = {
  /** Of the header X-Unknown-Parameters, which every answer to the call has; null when there are none. */
  readonly unknown: string | null;
} & ({ readonly query: Query } | { readonly error: Answer });

/** `target` is the request's path with its query, as it came. */
export function resolveCall(
  { version, route, known }: MountedRoute,
  caller: KeyState,
  target: string,
): Resolved {
  const { scopes, needsAllScopes } = route;
  const isOpen = needsAllScopes === true ? hasAll(caller.scopes, scopes) : hasAny(caller.scopes, scopes);
  if (!isOpen || (version === 'v1' && isWriteOfKey(route, caller)))
    return { error: missingScope(version, route), unknown: null };
  const read = readQuery(target, known);
  const unknown = read.unknown === null ? null : unknownParametersText(read.unknown);
  if ('problem' in read) return { error: errorAnswer('BAD_REQUEST', read.problem), unknown };
  const { query } = read;
  const error = known === null ? null : strictError(query, unknown);
  return error === null ? { query, unknown } : { error, unknown };
}

function strictError(query: Query, unknown: string | null): Answer | null {
  const strict = readChoice(query, STRICT);
  if (strict === 'invalid') return parameterError(STRICT);
  if (strict !== 'true' || unknown === null) return null;
  return errorAnswer('BAD_REQUEST', unknownParametersMessage(unknown));
}

/** The route's answer; a promise of one settles within the route's deadline. */
export function answerRoute(route: Route, call: Call): Answer | Promise<Answer> {
  const answer = route.handle(call);
  return answer instanceof Promise && route.endsItself === undefined
    ? withDeadline(
        answer,
        route.deadlineMs ?? ANSWER_DEADLINE_MS,
        'the answer',
        route.isPolled === true ? OutOfTime : DeadlineExceeded,
      )
    : answer;
}

/** On v1 a key reads only: everything but GET takes a session, or comes before one. */
function isWriteOfKey(route: Route, caller: KeyState): boolean {
  return route.method !== 'GET' && !hasAny(caller.scopes, SESSION_ONLY | ANYBODY);
}

/** v2 answers a missing permission with a plain string that names it, v3 with a code; v1 writes miss a session. */
function missingScope(version: ApiVersion, route: Route): Answer {
  if (version === 'v1' && route.method !== 'GET')
    return errorAnswer('FORBIDDEN', 'this takes a session; an API key may only read here');
  const message = scopeError(route.scopes, route.needsAllScopes);
  return version === 'v2' ? plainErrorAnswer(403, message) : errorAnswer('INSUFFICIENT_SCOPE', message);
}

/** Names the permissions of which one is missing. */
export function scopeError(scopes: ScopeMask, needsAll = false): string {
  return `this API key lacks the permission ${scopeNames(scopes).join(needsAll ? ' and ' : ' or ')}`;
}
