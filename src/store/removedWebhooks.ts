import type { Sql, Tx } from './sql.ts';

/** Deliveries removed by one statement: some tens of milliseconds. */
const PIECE = 1_000;

/**
 * Deletes an endpoint; false when the account has no such endpoint. Nothing is queued to it or sent to it any more. Its
 * deliveries go with it when they are few; else it is noted among those whose deliveries are removed later.
 */
export async function deleteWebhook(tx: Tx, accountId: number, id: number): Promise<boolean> {
  const deleted = await tx`delete from webhook where id = ${id} and account_id = ${accountId} returning 1`;
  if (deleted.length === 0) return false;
  await tx`insert into webhook_removed (webhook_id, account_id) values (${id}, ${accountId})`;
  await removeDeliveries(tx, id);
  return true;
}

/** Endpoints that are gone and have deliveries left, those deleted first first. */
export async function selectRemovedWebhooks(sql: Sql): Promise<number[]> {
  const rows = await sql<{ webhook_id: number }[]>`
    select webhook_id from webhook_removed order by removed_at, webhook_id`;
  return rows.map((row) => row.webhook_id);
}

/** Those of one account. */
export async function selectRemovedOf(sql: Sql, accountId: number): Promise<number[]> {
  const rows = await sql<{ webhook_id: number }[]>`
    select webhook_id from webhook_removed where account_id = ${accountId}`;
  return rows.map((row) => row.webhook_id);
}

/**
 * Removes some deliveries of an endpoint that is gone, and the note of it with the last: `isDone`. What somebody has
 * locked is left for another time.
 */
export async function removeDeliveries(
  sql: Sql | Tx,
  webhookId: number,
): Promise<{ count: number; isDone: boolean }> {
  const { count } = await sql`
    delete from webhook_delivery d using (
      select id, created_at from webhook_delivery where webhook_id = ${webhookId} limit ${PIECE} for update skip locked
    ) piece where d.id = piece.id and d.created_at = piece.created_at`;
  if (count === PIECE) return { count, isDone: false };
  const done = await sql`
    delete from webhook_removed where webhook_id = ${webhookId}
      and not exists (select from webhook_delivery where webhook_id = ${webhookId})`;
  return { count, isDone: done.count > 0 };
}
