import type { Sql, Tx } from '../postgres/sql.ts';
import { arrayLiteral, assignments, RawSql } from '../postgres/sqlText.ts';
import type { RetryPolicy } from './delivery/transition.ts';
import type { EndpointChange, EndpointDraft } from './endpoint.ts';
import type { PauseReason, Subscription } from './message.ts';
import type { ActiveEndpoint } from './subscriptions.memory.ts';

/** An endpoint as its owner sees it. The secret is not among it. */
export interface Webhook {
  readonly id: number;
  readonly url: string;
  readonly description: string | null;
  readonly events: readonly Subscription[];
  readonly retryPolicy: RetryPolicy;
  readonly maxRetries: number;
  readonly active: boolean;
  /** Null unless it gets no new deliveries. */
  readonly paused: { readonly reason: PauseReason; readonly sinceMs: number } | null;
  readonly signatureVersion: string;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
}

interface RawWebhook {
  id: number;
  url: string;
  description: string | null;
  events: Subscription[];
  retry_policy: RetryPolicy;
  max_retries: number;
  active: boolean;
  paused_at: Date | null;
  paused_reason: PauseReason | null;
  signature_version: string;
  created_at: Date;
  updated_at: Date;
}

/** Stores a new endpoint unless its account has `limit` already; then undefined. The account's row is locked. */
export async function insertWebhook(
  tx: Tx,
  accountId: number,
  draft: EndpointDraft,
  sealedSecret: Buffer,
  limit: number,
): Promise<Webhook | undefined> {
  await tx`select from account where id = ${accountId} for update`;
  const [row] = await tx<RawWebhook[]>`
    insert into webhook (account_id, url, description, events, retry_policy, max_retries, active, secret)
    select ${accountId}, ${draft.url}, ${draft.description}, ${[...draft.events]}::text[], ${draft.retryPolicy},
           ${draft.maxRetries}, ${draft.active}, ${sealedSecret}
    where (select count(*) from webhook where account_id = ${accountId}) < ${limit}
    returning *`;
  return row === undefined ? undefined : webhookOf(row);
}

/** Endpoints of an account, by id. */
export async function selectWebhooks(
  sql: Sql,
  accountId: number,
  page: { limit: number; offset: number },
): Promise<Webhook[]> {
  const rows = await sql<RawWebhook[]>`
    select * from webhook where account_id = ${accountId} order by id limit ${page.limit} offset ${page.offset}`;
  return rows.map(webhookOf);
}

export async function selectWebhook(
  sql: Sql | Tx,
  accountId: number,
  id: number,
): Promise<Webhook | undefined> {
  const [row] = await sql<RawWebhook[]>`select * from webhook where id = ${id} and account_id = ${accountId}`;
  return row === undefined ? undefined : webhookOf(row);
}

/** Changes what was sent; undefined when the account has no such endpoint. */
export async function updateWebhook(
  tx: Tx,
  accountId: number,
  id: number,
  change: EndpointChange,
): Promise<Webhook | undefined> {
  const sent = Object.entries({
    url: change.url,
    description: change.description,
    events: change.events === undefined ? undefined : [...change.events],
    retry_policy: change.retryPolicy,
    max_retries: change.maxRetries,
    active: change.active,
    updated_at: new RawSql('clock_timestamp()'),
  }).filter(([, value]) => value !== undefined);
  const [row] = await tx<RawWebhook[]>`
    update webhook set ${assignments(Object.fromEntries(sent))} where id = ${id} and account_id = ${accountId}
    returning *`;
  return row === undefined ? undefined : webhookOf(row);
}

/** Replaces the secret. Deliveries are also signed with the old one for `overlapHours`, where both are allowed. */
export async function rotateSecret(
  tx: Tx,
  accountId: number,
  id: number,
  sealedSecret: Buffer,
  overlapHours: number,
): Promise<Webhook | undefined> {
  const [row] = await tx<RawWebhook[]>`
    update webhook set previous_secret = secret, secret = ${sealedSecret}, updated_at = clock_timestamp(),
      previous_secret_until = clock_timestamp() + make_interval(hours => ${overlapHours})
    where id = ${id} and account_id = ${accountId} returning *`;
  return row === undefined ? undefined : webhookOf(row);
}

/** Whose these endpoints are; those that are gone are missing. */
export async function selectWebhookAccounts(
  sql: Sql,
  ids: readonly number[],
): Promise<{ webhookId: number; accountId: number }[]> {
  const rows = await sql<{ id: number; account_id: number }[]>`
    select id, account_id from webhook where id = any(${arrayLiteral(ids)}::bigint[])`;
  return rows.map((row) => ({ webhookId: row.id, accountId: row.account_id }));
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

function webhookOf(row: RawWebhook): Webhook {
  return {
    id: row.id,
    url: row.url,
    description: row.description,
    events: row.events,
    retryPolicy: row.retry_policy,
    maxRetries: row.max_retries,
    active: row.active,
    paused:
      row.paused_at === null || row.paused_reason === null
        ? null
        : { reason: row.paused_reason, sinceMs: row.paused_at.getTime() },
    signatureVersion: row.signature_version,
    createdAtMs: row.created_at.getTime(),
    updatedAtMs: row.updated_at.getTime(),
  };
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
