import type { Sql } from '../postgres/sql.ts';

/** An API key as the commands list it. The key itself is not stored, only its first characters. */
export interface ListedKey {
  readonly id: number;
  readonly email: string;
  readonly name: string | null;
  readonly prefix: string;
  readonly scopes: readonly string[];
  readonly allowlist: readonly string[];
  readonly created_at: Date;
  readonly last_used_at: Date | null;
  readonly revoked_at: Date | null;
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
