import { ANYBODY, SESSION_ONLY, sessionRights, VIEWER } from '../access/scopes.ts';
import { type Answer, dataAnswer, errorAnswer, validationAnswer } from '../http/answer.ts';
import { jsonBody } from '../http/requestBody.ts';
import type { Call, ChangePorts, Route } from '../http/route.ts';
import { invariant } from '../lib/errors.ts';
import { formatIso } from '../lib/time.ts';
import { parseLogin } from './credentials.ts';
import { type LogInPorts, logIn, logOut } from './logIn.ts';

/** Enough for an address and a password. The sender has no credentials yet, so the body must be cheap to read. */
const MAX_BODY_BYTES = 4 * 1024;

/** The application's sessions: log in, ask what a session may do, log out. */
export function v1SessionRoutes(ports: LogInPorts & ChangePorts): Route[] {
  return [
    {
      method: 'POST',
      path: '/session',
      scopes: ANYBODY,
      versions: ['v1'],
      shedAs: 'poll',
      maxBodyBytes: MAX_BODY_BYTES,
      takesPlainOnly: true,
      handle: (call) => create(ports, call),
    },
    {
      method: 'GET',
      path: '/session',
      scopes: SESSION_ONLY,
      versions: ['v1'],
      shedAs: 'poll',
      handle: async ({ caller: { scopes, endsAtMs = 0 } }) =>
        dataAnswer({ expires_at: formatIso(endsAtMs), ...sessionRights(scopes) }),
    },
    {
      method: 'DELETE',
      path: '/session',
      scopes: SESSION_ONLY | VIEWER,
      versions: ['v1'],
      shedAs: 'poll',
      handle: async ({ caller }) => {
        await logOut(ports.writes(caller.accountId).sql, -caller.id);
        return { status: 204, body: null };
      },
    },
  ];
}

/**
 * There is one answer for a wrong e-mail address and a wrong password, and one for too many attempts, whichever limit
 * it was: neither shows whether there is such an account. The API document has no 401; like a wrong ingest token, a
 * wrong password is 403 FORBIDDEN.
 */
async function create(ports: LogInPorts, { body, client }: Call): Promise<Answer> {
  invariant(client, 'a call of v1 knows its client');
  const json = jsonBody(body);
  if (!json.ok) return json.error;
  const login = parseLogin(json.value);
  if (!login.ok) return validationAnswer(login.error);
  const outcome = await logIn(ports, login.value, client.network);
  switch (outcome.kind) {
    case 'logged_in': {
      const { token, endsAtMs, scopes } = outcome;
      const answer = dataAnswer({ token, expires_at: formatIso(endsAtMs), ...sessionRights(scopes) });
      return { ...answer, status: 201, headers: { 'Cache-Control': 'no-store' } };
    }
    case 'denied':
      return errorAnswer('FORBIDDEN', 'the e-mail address or the password is wrong');
    case 'limited':
      return errorAnswer('TOO_MANY_REQUESTS', 'too many attempts to log in; try again later');
  }
}
