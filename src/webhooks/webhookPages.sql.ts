import type { Sql } from '../postgres/sql.ts';

/** A webhook endpoint as the commands list it, without its secret. */
export interface ListedWebhook {
  readonly id: number;
  readonly email: string;
  readonly url: string;
  readonly description: string | null;
  readonly events: readonly string[];
  readonly retry_policy: string;
  readonly max_retries: number;
  readonly active: boolean;
  readonly created_at: Date;
  readonly updated_at: Date;
}

/** The endpoints behind an id, by id; of one account, or of all (null). */
export function selectWebhookPage(
  sql: Sql,
  accountId: number | null,
  afterId: number,
  limit: number,
): Promise<ListedWebhook[]> {
  return sql<ListedWebhook[]>`
    select w.id, a.email, w.url, w.description, w.events, w.retry_policy, w.max_retries, w.active, w.created_at,
           w.updated_at
    from webhook w join account a on a.id = w.account_id
    where w.id > ${afterId} ${accountId === null ? sql`` : sql`and w.account_id = ${accountId}`}
    order by w.id limit ${limit}`;
}
