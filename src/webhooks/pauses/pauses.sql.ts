import { CHANGE_CHANNEL, recordChange } from '../../changelog/changes.sql.ts';
import { arrayLiteral, type Sql, type Tx } from '../../postgres/sql.ts';
import { insertDeliveries } from '../delivery/claims.sql.ts';
import { ALL_TYPES, newEventId, type PauseReason, pauseBody, type WebhookType } from '../delivery.ts';

/** How long no attempt has succeeded at an endpoint that counts as dead, and how many have failed at least. */
const DEAD_AFTER_DAYS = 5;
const DEAD_AFTER_FAILURES = 10;
/** Endpoints that are paused in one go. */
const DEAD_MAX = 1_000;
/**
 * No transaction takes longer. Events that were recorded up to this long before a pause may lack a delivery, and so may
 * those until this long after it ended.
 */
const TRANSACTION_SECONDS = 60;

/**
 * Pauses endpoints of one account, notes from when on they lack events, and tells the endpoints that go on. Those that are
 * paused already are passed over. Returns the others. Pods learn of it by the change log; until then a statement that
 * makes deliveries passes over them.
 */
export async function pauseWebhooks(
  sql: Sql,
  { accountId, worldId }: Pick<QuotaOwner, 'accountId' | 'worldId'>,
  pauses: readonly Pause[],
): Promise<Pause[]> {
  return sql.begin(async (tx) => {
    const rows = await tx<{ id: number; paused_at: Date }[]>`
      with paused as (
        update webhook w set paused_at = clock_timestamp(), paused_reason = p.reason
        from unnest(${arrayLiteral(pauses.map(({ webhookId }) => webhookId))}::bigint[],
          ${pauses.map(({ reason }) => reason)}::text[]) as p (id, reason)
        where w.id = p.id and w.account_id = ${accountId} and w.paused_at is null
        returning w.id, w.paused_at, w.created_at
      ), began as (
        select least(clock_timestamp(), min(o.created_at)) - make_interval(secs => ${TRANSACTION_SECONDS}) as at
        from webhook_outbox o where o.account_id = ${accountId}
      ), noted as (
        insert into webhook_left_out as l (webhook_id, from_at)
        select paused.id, greatest(began.at, paused.created_at) from paused, began
        on conflict (webhook_id) do update set to_at = null
      )
      select id, paused_at from paused`;
    const ids = rows.map(({ id }) => id);
    const begun = pauses.filter(({ webhookId }) => ids.includes(webhookId));
    if (ids.length > 0) {
      await tellOthers(tx, accountId, begun, rows[0]!.paused_at.getTime());
      await recordChange(tx, { kind: 'webhook', worldId, entityIds: ids });
      await tx`select pg_notify(${CHANGE_CHANNEL}, '')`;
    }
    return begun;
  });
}

const PAUSED: WebhookType = 'webhook_paused';

/** The paused ones cannot be told: they get nothing. Beside a queue in the outbox it is sent at once. */
async function tellOthers(
  tx: Tx,
  accountId: number,
  pauses: readonly Pause[],
  pausedAtMs: number,
): Promise<void> {
  const others = await tx<{ id: number }[]>`
    select id from webhook
    where account_id = ${accountId} and active and paused_at is null and events && ${[PAUSED, ALL_TYPES]}::text[]
    order by id`;
  const deliveries = pauses.flatMap((pause) => {
    const eventId = newEventId();
    const body = pauseBody(eventId, pause, pausedAtMs);
    return others.map(({ id: webhookId }) => ({ webhookId, eventId, eventType: PAUSED, body }));
  });
  await insertDeliveries(tx, deliveries, 'pause');
}

/** Active endpoints that have failed for days without a success, and still do, with their accounts. */
export async function selectDeadWebhooks(
  sql: Sql,
): Promise<{ webhookId: number; accountId: number; worldId: number }[]> {
  const rows = await sql<{ id: number; account_id: number; world_id: number }[]>`
    select w.id, w.account_id, a.world_id from webhook w join account a on a.id = w.account_id
    where w.failing_since < statement_timestamp() - make_interval(days => ${DEAD_AFTER_DAYS})
      and w.failed_at - w.failing_since >= make_interval(days => ${DEAD_AFTER_DAYS})
      and w.failures >= ${DEAD_AFTER_FAILURES} and w.active and w.paused_at is null
    order by w.id limit ${DEAD_MAX}`;
  return rows.map((row) => ({ webhookId: row.id, accountId: row.account_id, worldId: row.world_id }));
}

/** How many endpoints are paused. */
export async function countPaused(sql: Sql): Promise<number> {
  const [row] = await sql<{ paused: number }[]>`
    select count(*)::int as paused from webhook where paused_at is not null`;
  return row?.paused ?? 0;
}

/**
 * Ends the pause of an endpoint of this account; false when there is none. Its deliveries of the events that it lacks are
 * made from `fromMs` on; null: from the first.
 */
export async function endPause(
  tx: Tx,
  accountId: number,
  webhookId: number,
  fromMs: number | null,
): Promise<boolean> {
  const ended = await tx`
    update webhook set paused_at = null, paused_reason = null, failing_since = null, failed_at = null, failures = 0,
      updated_at = clock_timestamp()
    where id = ${webhookId} and account_id = ${accountId} and paused_at is not null returning 1`;
  if (ended.length === 0) return false;
  const from = fromMs === null ? null : new Date(fromMs);
  // Pods that do not know of the end yet make no deliveries for some seconds more.
  await tx`
    update webhook_left_out set
      from_at = greatest(from_at, ${from}::timestamptz),
      after_id = case when from_at < ${from}::timestamptz then 0 else after_id end,
      to_at = coalesce(to_at, clock_timestamp() + make_interval(secs => ${TRANSACTION_SECONDS}))
    where webhook_id = ${webhookId}`;
  return true;
}

/** An inactive endpoint gets no events, whether it is paused or not: what it lacks ends here. */
export async function endLeftOut(tx: Tx, webhookId: number): Promise<void> {
  await tx`
    update webhook_left_out set to_at = clock_timestamp() where webhook_id = ${webhookId} and to_at is null`;
}

/** An account, the world whose version rises when one of its endpoints is paused, and how many deliveries may wait. */
export interface QuotaOwner {
  readonly accountId: number;
  readonly worldId: number;
  readonly perAccount: number;
  readonly perEndpoint: number;
}

/** The accounts of these endpoints, each once. */
export async function selectQuotaOwners(sql: Sql, webhookIds: readonly number[]): Promise<QuotaOwner[]> {
  const rows = await sql<{ id: number; world_id: number; per_account: number; per_endpoint: number }[]>`
    select a.id, a.world_id, p.max_waiting_deliveries as per_account, p.max_waiting_per_webhook as per_endpoint
    from account a join plan p on p.name = a.plan
    where a.id in (select account_id from webhook where id = any(${arrayLiteral(webhookIds)}::bigint[]))
    order by a.id`;
  return rows.map((row) => ({
    accountId: row.id,
    worldId: row.world_id,
    perAccount: row.per_account,
    perEndpoint: row.per_endpoint,
  }));
}

/** What waits for an endpoint. */
export interface Backlog {
  readonly id: number;
  readonly is_paused: boolean;
  /** Deliveries that wait for an attempt. A count that stops somewhere beyond the quota of an endpoint is enough. */
  readonly waiting: number;
  /** Events in the outbox whose deliveries are not made yet. */
  readonly to_be_made: number;
}

/**
 * What waits for each endpoint of an account. Reads an index entry for each waiting delivery, of one endpoint at most one
 * more than its quota: about a third of a second for a million.
 */
export function countBacklogs(sql: Sql, { accountId, perEndpoint }: QuotaOwner): Promise<Backlog[]> {
  return sql<Backlog[]>`
    with outbox as (
      select e.webhook_id, sum((o.size - o.done) / cardinality(o.webhook_ids)) as events
      from webhook_outbox o cross join lateral unnest(o.webhook_ids) as e (webhook_id)
      where o.account_id = ${accountId} group by e.webhook_id
    )
    select w.id, w.paused_at is not null as is_paused, coalesce(outbox.events, 0)::float8 as to_be_made, (
      select count(*)::int from (
        select from webhook_delivery d
        where d.webhook_id = w.id and d.next_attempt_at is not null limit ${perEndpoint + 1}) counted
    ) as waiting
    from webhook w left join outbox on outbox.webhook_id = w.id
    where w.account_id = ${accountId}`;
}

/** How many deliveries wait for one endpoint, counted up to `max`. */
export async function countWaitingOf(sql: Sql | Tx, webhookId: number, max: number): Promise<number> {
  const [row] = await sql<{ waiting: number }[]>`
    select count(*)::int as waiting from (
      select from webhook_delivery
      where webhook_id = ${webhookId} and next_attempt_at is not null limit ${max}) counted`;
  return row?.waiting ?? 0;
}

export interface Pause {
  readonly webhookId: number;
  readonly reason: PauseReason;
}
