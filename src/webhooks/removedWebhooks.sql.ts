import type { Sql, Tx } from '../postgres/sql.ts';

/** Deliveries that one statement deletes, in some tens of milliseconds. */
const CHUNK = 1_000;

/**
 * Deletes an endpoint; false when the account has no such endpoint. Nothing is queued or sent to it any more. A first
 * chunk of its deliveries is deleted too. If more are left, they are deleted later (see removeWebhooks).
 */
export async function deleteWebhook(tx: Tx, accountId: number, id: number): Promise<boolean> {
  const deleted = await tx`delete from webhook where id = ${id} and account_id = ${accountId} returning 1`;
  if (deleted.length === 0) return false;
  await tx`insert into webhook_removed (webhook_id, account_id) values (${id}, ${accountId})`;
  await removeDeliveries(tx, id);
  return true;
}

/** Deleted endpoints that have deliveries left, in the order of deletion. */
export async function selectRemovedWebhooks(sql: Sql): Promise<number[]> {
  const rows = await sql<{ webhook_id: number }[]>`
    select webhook_id from webhook_removed order by removed_at, webhook_id`;
  return rows.map((row) => row.webhook_id);
}

/** Deleted endpoints of one account that have deliveries left. */
export async function selectRemovedOf(sql: Sql, accountId: number): Promise<number[]> {
  const rows = await sql<{ webhook_id: number }[]>`
    select webhook_id from webhook_removed where account_id = ${accountId}`;
  return rows.map((row) => row.webhook_id);
}

/**
 * Deletes a chunk of the deliveries of a deleted endpoint. `isDone`: none are left, and the endpoint's row in
 * webhook_removed is deleted as well. Locked rows are skipped.
 */
export async function removeDeliveries(
  sql: Sql | Tx,
  webhookId: number,
): Promise<{ count: number; isDone: boolean }> {
  const { count } = await sql`
    delete from webhook_delivery d using (
      select id, created_at from webhook_delivery where webhook_id = ${webhookId} limit ${CHUNK} for update skip locked
    ) chunk where d.id = chunk.id and d.created_at = chunk.created_at`;
  if (count === CHUNK) return { count, isDone: false };
  const done = await sql`
    delete from webhook_removed where webhook_id = ${webhookId}
      and not exists (select from webhook_delivery where webhook_id = ${webhookId})`;
  return { count, isDone: done.count > 0 };
}
