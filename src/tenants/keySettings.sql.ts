import type { Sql, Tx } from '../postgres/sql.ts';
import { assignments } from '../postgres/sqlText.ts';
import type { KeySettings } from './keyBody.ts';

/** A key as its owner sees it: never the key, nor its fingerprint. */
export interface KeyRecord {
  readonly id: number;
  /** Null on keys made by an administrator without one. */
  readonly name: string | null;
  readonly prefix: string;
  readonly scopes: readonly string[];
  readonly allowlist: readonly string[];
  readonly createdAtMs: number;
  readonly lastUsedAtMs: number | null;
  readonly revokedAtMs: number | null;
}

interface RawKey {
  id: number;
  name: string | null;
  prefix: string;
  scopes: string[];
  allowlist: string[];
  created_at: Date;
  last_used_at: Date | null;
  revoked_at: Date | null;
}

/** Keys of an account, revoked ones too, by id. */
export async function selectKeys(
  sql: Sql,
  accountId: number,
  page: { limit: number; offset: number },
): Promise<KeyRecord[]> {
  const rows = await sql<RawKey[]>`
    select id, name, prefix, scopes, allowlist, created_at, last_used_at, revoked_at
    from api_key where account_id = ${accountId} order by id limit ${page.limit} offset ${page.offset}`;
  return rows.map(keyRecord);
}

/** Undefined when the account has no such key. */
export async function selectKey(tx: Tx, accountId: number, id: number): Promise<KeyRecord | undefined> {
  const [row] = await tx<RawKey[]>`
    select id, name, prefix, scopes, allowlist, created_at, last_used_at, revoked_at
    from api_key where id = ${id} and account_id = ${accountId}`;
  return row && keyRecord(row);
}

/** Changes the given settings, also of a revoked key, which stays revoked. Undefined when the account has no such key. */
export async function updateKey(
  tx: Tx,
  accountId: number,
  id: number,
  change: Partial<KeySettings>,
): Promise<KeyRecord | undefined> {
  if (Object.keys(change).length === 0) return selectKey(tx, accountId, id);
  const [row] = await tx<RawKey[]>`
    update api_key set ${assignments({ ...change })} where id = ${id} and account_id = ${accountId}
    returning id, name, prefix, scopes, allowlist, created_at, last_used_at, revoked_at`;
  return row && keyRecord(row);
}

/** How many keys of an account are not revoked. Locks the account, so that two calls cannot both create the last key. */
export async function countUsableKeys(tx: Tx, accountId: number): Promise<number> {
  await tx`select from account where id = ${accountId} for no key update`;
  const [row] = await tx<{ count: number }[]>`
    select count(*)::int as count from api_key where account_id = ${accountId} and revoked_at is null`;
  return row?.count ?? 0;
}

function keyRecord(row: RawKey): KeyRecord {
  return {
    id: row.id,
    name: row.name,
    prefix: row.prefix,
    scopes: row.scopes,
    allowlist: row.allowlist,
    createdAtMs: row.created_at.getTime(),
    lastUsedAtMs: row.last_used_at?.getTime() ?? null,
    revokedAtMs: row.revoked_at?.getTime() ?? null,
  };
}
