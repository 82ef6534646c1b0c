import { withDeadline } from '../lib/time.ts';
import type { Sql } from '../postgres/sql.ts';
import type { AccessDecision, Authorizer } from './authorizer.ts';
import { bearerToken, fingerprint } from './credentials.ts';
import type { ClientAddress } from './ipAddress.ts';
import type { KeyState } from './keyring.memory.ts';
import { ANYBODY, SCOPES, SESSION_ONLY, scopeMask } from './scopes.ts';
import { type SessionState, selectSession } from './sessions.sql.ts';

/** A call waits this long for Postgres to find its session. */
const LOOK_UP_DEADLINE_MS = 2_000;

/**
 * Authorizes the calls of the application: those with a session, and logins. The order is that of keys: IP limit,
 * session, limits. The sessions of an account share the limits of one key, so logging in again does not reset them.
 *
 * A token that is missing, malformed, unknown, ended or expired, or whose account is inactive, is API_KEY_REQUIRED in
 * each case, so the answer does not show whether a token was ever valid.
 *
 * Sessions are not in memory. One read of Postgres per call makes a logout hold at once on every pod; people make few
 * calls. What they read from memory is as current as for a key. Rejects when Postgres does not answer.
 */
export class SessionAuthorizer {
  readonly #sql: Sql;
  readonly #authorizer: Authorizer;

  constructor(sql: Sql, authorizer: Authorizer) {
    this.#sql = sql;
    this.#authorizer = authorizer;
  }

  /** @param authorization the Authorization headers of the request, as they came */
  async authorize(
    authorization: readonly string[],
    client: ClientAddress,
    nowMs: number,
  ): Promise<AccessDecision> {
    const ip = client.network;
    const counted = await this.#authorizer.countAddress(ip, nowMs);
    if (counted.kind === 'limited') return counted;
    const token = bearerToken(authorization);
    if (token === null) return REQUIRED;
    const reading = selectSession(this.#sql, fingerprint(token));
    const session = await withDeadline(reading, LOOK_UP_DEADLINE_MS, 'reading a session');
    if (session === undefined) return REQUIRED;
    // Ids of keys are positive, so the negated id of the account can identify all its sessions.
    return this.#authorizer.admitSession(sessionCaller(session), -session.accountId, ip, nowMs);
  }

  /** A call that needs no credentials: only its address is counted. */
  async authorizeAnybody(client: ClientAddress, nowMs: number): Promise<AccessDecision> {
    const counted = await this.#authorizer.countAddress(client.network, nowMs);
    return counted.kind === 'limited' ? counted : { kind: 'granted', caller: NOBODY };
  }
}

const REQUIRED: AccessDecision = { kind: 'denied', code: 'API_KEY_REQUIRED' };

/** A session as the routes see a caller: it may do whatever a key can be allowed, and manages keys as well. */
function sessionCaller(session: SessionState): KeyState {
  return {
    ...session,
    id: -session.id,
    scopes: SESSION_ONLY | scopeMask(...SCOPES),
    allowlist: null,
    revoked: false,
    ownerActive: true,
  };
}

/** Who has yet to say who they are. Owns nothing, sees nothing. */
export const NOBODY: KeyState = {
  id: 0,
  accountId: 0,
  worldIds: [],
  scopes: ANYBODY,
  allowlist: null,
  revoked: false,
  ownerActive: true,
  historyDays: 0,
};
