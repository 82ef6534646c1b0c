import { Allowlist } from './allowlist.ts';
import { CidrSet } from './cidrSet.ts';
import type { KeyState } from './keyState.ts';
import { ANYBODY, SCOPES, SESSION_ONLY, scopeMask } from './scopes.ts';

/** What Postgres knows of a live session of an active account. */
export interface SessionState {
  readonly id: number;
  readonly accountId: number;
  /** Its account's world first, then its organization's, if any. */
  readonly worldIds: readonly number[];
  readonly historyDays: number;
  /** Epoch milliseconds. */
  readonly endsAtMs: number;
}

const EVERYWHERE = new Allowlist(new CidrSet([]));

/** A session as the routes see a caller: it may do whatever a key can be allowed, and manages keys as well. */
export function sessionCaller(session: SessionState): KeyState {
  return {
    ...session,
    id: -session.id,
    scopes: SESSION_ONLY | scopeMask(...SCOPES),
    allowlist: EVERYWHERE,
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
  allowlist: EVERYWHERE,
  revoked: false,
  ownerActive: true,
  historyDays: 0,
};
