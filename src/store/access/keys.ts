import type { Tx } from '../sql/sql.ts';

export interface KeyDraft {
  readonly name: string | null;
  /** SHA-256 of the key, hex. */
  readonly fingerprint: string;
  /** Its first six characters. */
  readonly prefix: string;
  readonly scopes: readonly string[];
  readonly allowlist: readonly string[];
}

export interface RevokedKey {
  readonly id: number;
  readonly revokedAt: Date;
  /** The world of its account. */
  readonly worldId: number;
}

/** Stores a key of an account and returns its id. The key itself is not stored. */
export async function insertKey(tx: Tx, accountId: number, draft: KeyDraft): Promise<number> {
  const [row] = await tx<{ id: number }[]>`
    insert into api_key (account_id, name, fingerprint, prefix, scopes, allowlist)
    values (${accountId}, ${draft.name}, decode(${draft.fingerprint}, 'hex'), ${draft.prefix},
            ${[...draft.scopes]}, ${[...draft.allowlist]})
    returning id`;
  if (row === undefined) throw new Error('an insert returns its row');
  return row.id;
}

/** Revokes a key. A revoked key keeps its time. Undefined when there is no such key. */
export async function revokeKey(tx: Tx, id: number): Promise<RevokedKey | undefined> {
  const [row] = await tx<{ revoked_at: Date; world_id: number }[]>`
    update api_key k set revoked_at = coalesce(k.revoked_at, clock_timestamp())
    from account a where a.id = k.account_id and k.id = ${id}
    returning k.revoked_at, a.world_id`;
  return row && { id, revokedAt: row.revoked_at, worldId: row.world_id };
}
