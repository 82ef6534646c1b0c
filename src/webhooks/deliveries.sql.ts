import { arrayLiteral, type Sql } from '../postgres/sql.ts';
import { RawSql, type SqlText, shapeName } from '../postgres/sqlText.ts';
import type { DeliveryStatus, WebhookType } from './delivery.ts';
import { selectRemovedOf } from './webhooks.sql.ts';

/** A delivery as its owner sees it, under the names of the API and of the table. */
export interface Delivery {
  readonly id: string;
  readonly webhook_id: number;
  readonly event_id: string;
  readonly event_type: WebhookType;
  readonly status: DeliveryStatus;
  readonly attempts: number;
  readonly next_attempt_at: Date | null;
  readonly last_status_code: number | null;
  readonly last_error: string | null;
  readonly last_duration_ms: number | null;
  readonly created_at: Date;
  readonly delivered_at: Date | null;
}

/** How an attempt ended, as its owner sees it and as `attempt_log` keeps it. */
export interface AttemptRecord {
  /** Its number over the life of the delivery, from 1. */
  readonly attempt: number;
  /** When it was made, by the clock of its pod. Null when that pod died, and another one wrote the end. */
  readonly at: string | null;
  readonly status_code: number | null;
  readonly error: string | null;
  readonly duration_ms: number | null;
  /** How the body of the answer begins (see answerBeginning). Null without an answer. */
  readonly answer: string | null;
}

/** A delivery with all that was sent and answered. */
export interface DeliveryDetail extends Delivery {
  /** An attempt is being made now. */
  readonly in_flight: boolean;
  /** The body that every attempt signs and sends. */
  readonly payload: string;
  /** The last ten attempts that have ended, oldest first. */
  readonly attempt_log: readonly AttemptRecord[];
}

/** A `Delivery`, in its order. */
export const DELIVERY_COLUMNS = new RawSql(`
  d.id, d.webhook_id, d.event_id, d.event_type, d.status, d.attempts, d.next_attempt_at, d.last_status_code,
  d.last_error, d.last_duration_ms, d.created_at, d.delivered_at`);

/** A page of a list, limited to a range of creation times: both ends included, in milliseconds as shown. */
export interface DeliveryPage {
  readonly limit: number;
  readonly offset: number;
  readonly fromMs: number | null;
  readonly toMs: number | null;
}

/** Deliveries of one endpoint, newest first. Costs an index walk of limit + offset keys. */
export async function selectDeliveries(
  sql: Sql,
  webhookId: number,
  status: DeliveryStatus | null,
  page: DeliveryPage,
): Promise<Delivery[]> {
  const inState = status === null ? sql`` : sql`and status = ${status}`;
  const name = status === null ? 'deliveries' : 'deliveries_of_status';
  return selectNewest(sql, name, sql`webhook_id = ${webhookId} ${inState}`, page);
}

/** Exhausted deliveries of all endpoints of an account, newest first. The same cost. */
export async function selectDeadLetters(
  sql: Sql,
  accountId: number,
  page: DeliveryPage,
): Promise<Delivery[]> {
  const removed = await selectRemovedOf(sql, accountId);
  const name = removed.length === 0 ? 'dead_letters' : 'dead_letters_without_removed';
  return selectNewest(
    sql,
    name,
    sql`account_id = ${accountId} and status = 'exhausted' ${without(sql, removed)}`,
    page,
  );
}

/** Reads only ids until the page is found. */
async function selectNewest(
  sql: Sql,
  name: string,
  condition: SqlText,
  { limit, offset, fromMs, toMs }: DeliveryPage,
): Promise<Delivery[]> {
  const statement = sql<Delivery[]>`
    select ${DELIVERY_COLUMNS} from (
      select id, created_at from webhook_delivery where ${condition}
        ${fromMs === null ? sql`` : sql`and created_at >= ${new Date(fromMs)}`}
        ${toMs === null ? sql`` : sql`and created_at < ${new Date(toMs + 1)}`}
      order by created_at desc, id desc limit ${limit} offset ${offset}) k
    join webhook_delivery d on d.id = k.id and d.created_at = k.created_at
    order by d.created_at desc, d.id desc`;
  // Without a range of times, a plan that does not know the values would read whole partitions.
  const isPrepared = fromMs !== null || toMs !== null;
  return isPrepared ? statement.named(shapeName(name, { fromMs, toMs })) : statement;
}

/** A delivery of this account to this endpoint, in detail; undefined when the account has no such delivery. */
export async function selectDelivery(
  sql: Sql,
  accountId: number,
  webhookId: number,
  id: string,
): Promise<DeliveryDetail | undefined> {
  const [delivery] = await sql<DeliveryDetail[]>`
    select ${DELIVERY_COLUMNS}, d.attempt_token is not null as in_flight, d.body as payload,
      to_json(d.attempt_log) as attempt_log
    from webhook_delivery d where ${isThere(sql, accountId, id)} and d.webhook_id = ${webhookId}`;
  return delivery;
}

/** For their owner, deliveries of a deleted endpoint are gone at once, though their rows are deleted later. */
const isThere = (sql: Sql, accountId: number, id: string) => sql`
  d.id = ${id} and d.account_id = ${accountId} and exists (select from webhook w where w.id = d.webhook_id)`;

/** The states from which deliveries are replayed. */
export const REPLAYABLE = ['failed', 'exhausted'] as const;

/**
 * Gives a failed or exhausted delivery of this account a fresh budget, with an attempt due now. `not_replayable` in every
 * other state, and while an attempt is in flight; undefined when the account has no such delivery.
 */
export async function requeueDelivery(
  sql: Sql,
  accountId: number,
  id: string,
): Promise<Delivery | 'not_replayable' | undefined> {
  const [requeued] = await sql<Delivery[]>`
    update webhook_delivery d set status = 'requeued', spent = 0, next_attempt_at = clock_timestamp()
    where ${isThere(sql, accountId, id)} and d.status = any(${REPLAYABLE}::text[]) and d.attempt_token is null
    returning ${DELIVERY_COLUMNS}`;
  if (requeued !== undefined) return requeued;
  const found = await sql`select from webhook_delivery d where ${isThere(sql, accountId, id)}`;
  return found.length > 0 ? 'not_replayable' : undefined;
}

/** Excludes deleted endpoints by id. There are hardly ever any, and an index-only scan cannot check if one exists. */
const without = (sql: Sql, removed: readonly number[]) =>
  removed.length === 0 ? sql`` : sql`and webhook_id <> all(${arrayLiteral(removed)}::bigint[])`;

/** Deliveries of these hours, as counted by the store. */
export interface DeliveryCounts {
  /** A status without deliveries may be missing. */
  readonly byStatus: Readonly<Partial<Record<DeliveryStatus, number>>>;
  /** The attempts of all these deliveries together. */
  readonly attempts: number;
  /** How many deliveries took how long in their last attempt, in any order. */
  readonly durations: readonly { readonly durationMs: number; readonly count: number }[];
}

/**
 * The deliveries of an account created within the last `hours`, counted by status and also by duration. An index-only
 * scan, as long as no deleted endpoint has deliveries left. It compares with statement_timestamp(), because Postgres
 * cannot use an index with clock_timestamp().
 */
export async function countDeliveries(sql: Sql, accountId: number, hours: number): Promise<DeliveryCounts> {
  const gone = without(sql, await selectRemovedOf(sql, accountId));
  const rows = await sql<
    { status: DeliveryStatus | null; duration_ms: number | null; count: number; attempts: number }[]
  >`
    select status, last_duration_ms as duration_ms, count(*)::int as count, sum(attempts)::int as attempts
    from webhook_delivery
    where account_id = ${accountId} and created_at > statement_timestamp() - make_interval(hours => ${hours})
      ${gone}
    group by grouping sets ((status), (last_duration_ms))`;
  const byStatus: Partial<Record<DeliveryStatus, number>> = {};
  const durations: { durationMs: number; count: number }[] = [];
  let attempts = 0;
  for (const { status, duration_ms: durationMs, count, attempts: made } of rows) {
    if (status !== null) {
      byStatus[status] = count;
      attempts += made;
    } else if (durationMs !== null) durations.push({ durationMs, count });
  }
  return { byStatus, attempts, durations };
}

/** Which deliveries of an endpoint are sent again; the window is of created_at, both ends included. */
export interface ReplayRequest {
  readonly statuses: readonly (typeof REPLAYABLE)[number][];
  readonly fromMs: number | null;
  readonly toMs: number | null;
}

/** Deliveries of one statement: so few that nobody waits for their locks. */
const CHUNK = 1_000;

/** Where the next chunk begins; by text, since a time is finer than milliseconds. */
export interface ReplayCursor {
  readonly createdAt: string;
  readonly id: string;
}

export interface RequeuedChunk {
  readonly requeued: number;
  /** Null when no more are left. */
  readonly next: ReplayCursor | null;
}

/**
 * Gives a chunk of the endpoint's deliveries a fresh budget, with attempts due now in the order of their creation.
 * Deliveries that are locked or have an attempt in flight are skipped. The next chunk begins after `next`, so one that
 * fails again in between is not taken twice.
 */
export async function requeueChunk(
  sql: Sql,
  webhookId: number,
  { statuses, fromMs, toMs }: ReplayRequest,
  after: ReplayCursor | null,
): Promise<RequeuedChunk> {
  const [row] = await sql<
    { looked: number; requeued: number; created_at: string | null; id: string | null }[]
  >`
    with found as materialized (
      select id, created_at, row_number() over (order by created_at, id) as n from (
        select id, created_at from webhook_delivery
        where webhook_id = ${webhookId} and status = any(${statuses}::text[])
          ${fromMs === null ? sql`` : sql`and created_at >= ${new Date(fromMs)}`}
          ${toMs === null ? sql`` : sql`and created_at < ${new Date(toMs + 1)}`}
          ${after === null ? sql`` : sql`and (created_at, id) > (${after.createdAt}::timestamptz, ${after.id})`}
        order by created_at, id limit ${CHUNK}) f
    ), locked as materialized (
      select d.id, d.created_at, f.n from found f join webhook_delivery d using (id, created_at)
      where d.attempt_token is null and d.status = any(${statuses}::text[])
      for update of d skip locked
    ), requeued as (
      update webhook_delivery d
      set status = 'requeued', spent = 0, next_attempt_at = statement_timestamp() + l.n * interval '1 microsecond'
      from locked l where d.id = l.id and d.created_at = l.created_at
      returning d.id
    )
    select (select count(*)::int from found) as looked, (select count(*)::int from requeued) as requeued,
      (select created_at::text from found order by n desc limit 1) as created_at,
      (select id from found order by n desc limit 1) as id`;
  if (row === undefined || row.created_at === null || row.id === null) return { requeued: 0, next: null };
  const next = row.looked < CHUNK ? null : { createdAt: row.created_at, id: row.id };
  return { requeued: row.requeued, next };
}
