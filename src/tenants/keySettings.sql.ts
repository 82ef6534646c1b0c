import type { Query, Sql, Tx } from '../postgres/sql.ts';
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
  readonly created_at: Date;
  readonly last_used_at: Date | null;
  readonly revoked_at: Date | null;
}

const columns = (sql: Query) => sql`
  k.id, k.name, k.prefix, k.scopes, k.allowlist, k.created_at, k.last_used_at, k.revoked_at`;

/** Keys of an account, revoked ones too, by id. */
export function selectKeys(
  sql: Sql,
  accountId: number,
  { limit, offset }: { limit: number; offset: number },
): Promise<KeyRecord[]> {
  return sql<KeyRecord[]>`
    select ${columns(sql)} from api_key k where account_id = ${accountId} order by id limit ${limit} offset ${offset}`;
}

/** A key as the commands list it. */
export interface ListedKey extends KeyRecord {
  readonly email: string;
}

/** The keys behind an id, by id; of one account, or of all (null). */
export function selectKeyPage(
  sql: Sql,
  accountId: number | null,
  afterId: number,
  limit: number,
): Promise<ListedKey[]> {
  return sql<ListedKey[]>`
    select k.id, a.email, k.name, k.prefix, k.scopes, k.allowlist, k.created_at, k.last_used_at, k.revoked_at
    from api_key k join account a on a.id = k.account_id
    where k.id > ${afterId} ${accountId === null ? sql`` : sql`and k.account_id = ${accountId}`}
    order by k.id limit ${limit}`;
}

/** Undefined when the account has no such key. */
export async function selectKey(tx: Tx, accountId: number, id: number): Promise<KeyRecord | undefined> {
  const [key] = await tx<KeyRecord[]>`
    select ${columns(tx)} from api_key k where id = ${id} and account_id = ${accountId}`;
  return key;
}

/** Changes the given settings, also of a revoked key, which stays revoked. Undefined when the account has no such key. */
export async function updateKey(
  tx: Tx,
  accountId: number,
  id: number,
  change: Partial<KeySettings>,
): Promise<KeyRecord | undefined> {
  if (Object.keys(change).length === 0) return selectKey(tx, accountId, id);
  const [key] = await tx<KeyRecord[]>`
    update api_key k set ${assignments({ ...change })} where id = ${id} and account_id = ${accountId}
    returning ${columns(tx)}`;
  return key;
}

/** How many keys of an account are not revoked. Locks the account, so that two calls cannot both create the last key. */
export async function countUsableKeys(tx: Tx, accountId: number): Promise<number> {
  await tx`select from account where id = ${accountId} for no key update`;
  const [row] = await tx<{ count: number }[]>`
    select count(*)::int as count from api_key where account_id = ${accountId} and revoked_at is null`;
  return row?.count ?? 0;
}
