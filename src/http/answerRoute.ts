import type { KeyState } from '../access/keyState.ts';
import { hasAny, type ScopeMask, scopeNames } from '../access/scopes.ts';
import { withDeadline } from '../base/deadline.ts';
import { type Answer, errorAnswer, plainErrorAnswer } from './answer.ts';
import { type Query, readQuery } from './query.ts';
import type { ApiVersion, Call, Route } from './route.ts';

/** A Postgres that neither answers nor refuses must not keep a caller waiting for ever. */
const ANSWER_DEADLINE_MS = 15_000;

/** What stands between an admitted call and its route: the permission, then the form of its query. */
export type Judged = { readonly query: Query } | { readonly refusal: Answer };

/** `target` is the request's path with its query, as it came. */
export function judgeCall(version: ApiVersion, route: Route, caller: KeyState, target: string): Judged {
  if (!hasAny(caller.scopes, route.scopes)) return { refusal: missingScope(version, route) };
  const query = readQuery(target);
  return typeof query === 'string' ? { refusal: errorAnswer('BAD_REQUEST', query) } : { query };
}

/** The route's answer; a promise of one settles within the route's deadline. */
export function answerRoute(route: Route, call: Call): Answer | Promise<Answer> {
  const answer = route.handle(call);
  return answer instanceof Promise
    ? withDeadline(answer, route.deadlineMs ?? ANSWER_DEADLINE_MS, 'the database')
    : answer;
}

/** v2 answers a missing permission with a plain string that names it, v3 with a code; on v1 a session is missing. */
function missingScope(version: ApiVersion, route: Route): Answer {
  if (version === 'v1')
    return errorAnswer('FORBIDDEN', 'this takes a session; an API key may only read here');
  const message = scopeRefusal(route.scopes);
  return version === 'v2' ? plainErrorAnswer(403, message) : errorAnswer('INSUFFICIENT_SCOPE', message);
}

/** Names the permissions of which one is missing. */
export function scopeRefusal(scopes: ScopeMask): string {
  return `this API key lacks the permission ${scopeNames(scopes).join(' or ')}`;
}
