import type { Allowlist } from './allowlist.ts';
import type { ScopeMask } from './scopes.ts';

/** All that memory has of an API key: enough to decide on a call without a query. */
export interface KeyState {
  /** Of a session: its id with a minus sign, so that it is never that of a key. */
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
  /** Of a session: when it ends, in epoch milliseconds. */
  readonly endsAtMs?: number;
}
