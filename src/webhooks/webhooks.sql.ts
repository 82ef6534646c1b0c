import { arrayLiteral, type Sql, type Tx } from '../postgres/sql.ts';
import { assignments, RawSql } from '../postgres/sqlText.ts';
import type { ActiveEndpoint, Subscription } from './delivery.ts';
import type { EndpointChange, EndpointDraft, Webhook } from './endpoint.ts';

const iso = (time: string): string => `to_char(${time} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;

/** A `Webhook`, in its order. Of one that fails, the beginning of an index says when the next attempt is due. */
const COLUMNS = new RawSql(`
  id, url, description, events, retry_policy, max_retries, active,
  case when paused_at is not null then json_build_object('reason', paused_reason, 'since', ${iso('paused_at')}) end as paused,
  case when failing_since is not null then json_build_object('since', ${iso('failing_since')}, 'attempts', failures,
    'next_attempt_at', case when active then (
      select ${iso('min(d.next_attempt_at)')} from webhook_delivery d
      where d.webhook_id = webhook.id and d.next_attempt_at is not null) end) end as failing,
  signature_version, created_at, updated_at`);

/** Stores a new endpoint unless its account has `limit` already; then undefined. The account's row is locked. */
export async function insertWebhook(
  tx: Tx,
  accountId: number,
  draft: EndpointDraft,
  sealedSecret: Buffer,
  limit: number,
): Promise<Webhook | undefined> {
  await tx`select from account where id = ${accountId} for update`;
  const [webhook] = await tx<Webhook[]>`
    insert into webhook (account_id, url, description, events, retry_policy, max_retries, active, secret)
    select ${accountId}, ${draft.url}, ${draft.description}, ${[...draft.events]}::text[], ${draft.retry_policy},
           ${draft.max_retries}, ${draft.active}, ${sealedSecret}
    where (select count(*) from webhook where account_id = ${accountId}) < ${limit}
    returning ${COLUMNS}`;
  return webhook;
}

/** Endpoints of an account, by id. */
export function selectWebhooks(
  sql: Sql,
  accountId: number,
  page: { limit: number; offset: number },
): Promise<Webhook[]> {
  return sql<Webhook[]>`
    select ${COLUMNS} from webhook where account_id = ${accountId}
    order by id limit ${page.limit} offset ${page.offset}`;
}

export async function selectWebhook(
  sql: Sql | Tx,
  accountId: number,
  id: number,
): Promise<Webhook | undefined> {
  const [webhook] = await sql<Webhook[]>`
    select ${COLUMNS} from webhook where id = ${id} and account_id = ${accountId}`;
  return webhook;
}

/** Changes what was sent; undefined when the account has no such endpoint. */
export async function updateWebhook(
  tx: Tx,
  accountId: number,
  id: number,
  change: EndpointChange,
): Promise<Webhook | undefined> {
  const [webhook] = await tx<Webhook[]>`
    update webhook set ${assignments({ ...change, updated_at: new RawSql('clock_timestamp()') })}
    where id = ${id} and account_id = ${accountId} returning ${COLUMNS}`;
  return webhook;
}

/** Replaces the secret. Deliveries are also signed with the old one for `overlapHours`, where both are allowed. */
export async function rotateSecret(
  tx: Tx,
  accountId: number,
  id: number,
  sealedSecret: Buffer,
  overlapHours: number,
): Promise<Webhook | undefined> {
  const [webhook] = await tx<Webhook[]>`
    update webhook set previous_secret = secret, secret = ${sealedSecret}, updated_at = clock_timestamp(),
      previous_secret_until = clock_timestamp() + make_interval(hours => ${overlapHours})
    where id = ${id} and account_id = ${accountId} returning ${COLUMNS}`;
  return webhook;
}

/** The accounts of these endpoints; those that are gone are missing. */
export async function selectWebhookAccounts(
  sql: Sql,
  ids: readonly number[],
): Promise<ReadonlyMap<number, number>> {
  const rows = await sql<{ id: number; account_id: number }[]>`
    select id, account_id from webhook where id = any(${arrayLiteral(ids)}::bigint[])`;
  return new Map(rows.map((row) => [row.id, row.account_id]));
}

/** The endpoints among these, or all, that events are queued for: those that are active and not paused. */
export async function selectSubscriptions(
  sql: Sql | Tx,
  ids: readonly number[] | null,
): Promise<ActiveEndpoint[]> {
  const rows = await sql<{ id: number; world_id: number; events: Subscription[] }[]>`
    select w.id, a.world_id, w.events from webhook w join account a on a.id = w.account_id
    where w.active and w.paused_at is null ${ids === null ? sql`` : sql`and w.id = any(${arrayLiteral(ids)}::bigint[])`}`;
  return rows.map((row) => ({ id: row.id, worldId: row.world_id, events: row.events }));
}

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

/** A webhook endpoint as the commands list it. */
export interface ListedWebhook
  extends Pick<Webhook, 'id' | keyof EndpointDraft | 'created_at' | 'updated_at'> {
  readonly email: string;
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

/** How long one round may take. The rest waits for the next round. */
const ROUND_MS = 30_000;

/**
 * Deletes the deliveries of deleted endpoints, a chunk of each in turn. Ends when none are left, when the time is over
 * or when the pod stops. Every chunk is a transaction of its own, so the next round of any pod continues from there.
 */
export async function removeWebhooks(sql: Sql, isStopping: () => boolean): Promise<void> {
  const untilMs = performance.now() + ROUND_MS;
  const left = new Set(await selectRemovedWebhooks(sql));
  let removed = true;
  while (left.size > 0 && removed) {
    removed = false;
    for (const webhookId of left) {
      if (isStopping() || performance.now() > untilMs) return;
      const { isDone, count } = await removeDeliveries(sql, webhookId);
      if (isDone) left.delete(webhookId);
      removed ||= count > 0;
    }
  }
}
