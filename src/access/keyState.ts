import type { Allowlist } from './allowlist.ts';
import type { ScopeMask } from './scopes.ts';

/** All that memory has of an API key: enough to decide on a call without a query. */
export interface KeyState {
  /** For a session, its negated id, so that it never equals the id of a key. */
  readonly id: number;
  readonly accountId: number;
  /** The worlds it looks into: its account's first, then its organization's, if any. */
  readonly worldIds: readonly number[];
  readonly scopes: ScopeMask;
  readonly allowlist: Allowlist;
  readonly revoked: boolean;
  readonly ownerActive: boolean;
  /** How far back the owner's plan lets history be read. */
  readonly historyDays: number;
  /** When a session ends, in epoch milliseconds; not set for a key. */
  readonly endsAtMs?: number;
}
