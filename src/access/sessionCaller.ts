import { Allowlist } from './allowlist.ts';
import { CidrSet } from './cidrSet.ts';
import type { KeyState } from './keyState.ts';
import { ANYBODY, SESSION_ONLY, scopeMask } from './scopes.ts';

/** What Postgres knows of a live session of an active account. */
export interface SessionState {
  readonly id: number;
  readonly accountId: number;
  /** Its account's world first, then its organization's, if any. */
  readonly worldIds: readonly number[];
  readonly historyDays: number;
}

const EVERYWHERE = new Allowlist(new CidrSet([]));

/**
 * A session as the routes see a caller. It manages webhooks and keys; the data of v2 and v3 is for keys only. `id` is
 * the session's.
 */
export function sessionCaller(session: SessionState): KeyState {
  return {
    ...session,
    scopes: SESSION_ONLY | scopeMask('manage_webhooks'),
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
