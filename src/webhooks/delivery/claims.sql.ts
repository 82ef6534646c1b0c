import { arrayLiteral, type Sql, type Tx } from '../../postgres/sql.ts';
import { type AttemptRecord, DELIVERY_COLUMNS, type Delivery } from '../deliveries.sql.ts';
import type { RetryRule, Transition, WebhookType } from '../delivery.ts';
import { newDeliveryIdStart, ORDINAL_HEX_CHARS } from '../delivery.ts';

/** A delivery about to be queued. */
export interface NewDelivery {
  readonly webhookId: number;
  readonly eventId: string;
  readonly eventType: WebhookType;
  readonly body: string;
}

/**
 * Queues deliveries in the transaction that produced their events, and returns those it queued. It skips endpoints that
 * are gone and endpoints of deactivated accounts. Unless this is a test, it also skips endpoints that are inactive or
 * paused. Deliveries of new events must not overtake those in the outbox, so accounts with events there are skipped too.
 * The endpoints are locked against deletion until the transaction ends. The partitions must exist.
 *
 * A delivery carries the time at which the transaction began. The unique index includes that time, because the table is
 * partitioned by it. So the index rejects a second delivery of an event to an endpoint within one transaction. Another
 * transaction cannot produce the same event.
 */
export async function insertDeliveries(
  tx: Tx,
  deliveries: readonly NewDelivery[],
  of: 'new_events' | 'left_out' | 'pause' | 'test',
): Promise<Delivery[]> {
  if (deliveries.length === 0) return [];
  return tx<Delivery[]>`
    insert into webhook_delivery as d (id, webhook_id, account_id, event_id, event_type, body, created_at)
    select ${newDeliveryIdStart()} || lpad(to_hex(n.ordinal), ${ORDINAL_HEX_CHARS}, '0'),
      w.id, w.account_id, n.event_id, n.event_type, n.body, transaction_timestamp()
    from unnest(
      ${arrayLiteral(deliveries.map((d) => d.webhookId))}::bigint[], ${deliveries.map((d) => d.eventId)}::text[],
      ${deliveries.map((d) => d.eventType)}::text[], ${deliveries.map((d) => d.body)}::text[]
    ) with ordinality as n (webhook_id, event_id, event_type, body, ordinal)
    join webhook w on w.id = n.webhook_id and ((w.active and w.paused_at is null) or ${of === 'test'})
    join account a on a.id = w.account_id and a.active
    where ${of !== 'new_events'} or not exists (select from webhook_outbox o where o.account_id = w.account_id)
    order by n.ordinal
    for key share of w
    returning ${DELIVERY_COLUMNS}`;
}

/** The right to send to one endpoint. Only the holder of the newest token may write results. */
export interface Lease {
  readonly webhookId: number;
  readonly fencingToken: number;
}

/** An attempt that was counted and may now be sent. */
export interface Attempt {
  readonly deliveryId: string;
  /** When the delivery was created, as Postgres writes it, to the microsecond: it identifies the partition. */
  readonly createdAt: string;
  readonly eventId: string;
  readonly body: string;
  /** Its number over the life of the delivery, from 1. */
  readonly attempt: number;
  /** Attempts since the delivery was made or last replayed, this one included. */
  readonly budgetUsed: number;
  /** The endpoint as it is now: the revision changes with each of its settings. */
  readonly owner: { readonly webhookId: number; readonly accountId: number; readonly revision: string };
  readonly url: string;
  readonly rule: RetryRule;
  readonly sealedSecret: Buffer;
  /** Null when no previous secret signs any more. */
  readonly sealedPreviousSecret: Buffer | null;
}

/** An attempt whose process died before it wrote the result. */
export type InterruptedAttempt = Pick<
  Attempt,
  'deliveryId' | 'createdAt' | 'attempt' | 'budgetUsed' | 'rule'
>;

/** An attempt that ended. The delay to the next attempt counts from the moment at which this is written. */
export interface EndedAttempt {
  readonly attempt: Pick<Attempt, 'deliveryId' | 'createdAt'>;
  readonly transition: Transition;
  readonly record: AttemptRecord;
}

/** What is asked of one endpoint: to lease it, or to go on under a lease. */
export interface Claim {
  readonly webhookId: number;
  /** The lease to go on under; null to get one. */
  readonly lease: Lease | null;
  /** The attempt that was sent under the lease and has ended; null when there is none. */
  readonly ended: EndedAttempt | null;
  /** False when no further attempt may start, so that the lease is given back. */
  readonly mayStart: boolean;
}

export interface Claimed {
  readonly lease: Lease;
  /** True when an earlier holder left an attempt in flight. Its end must be written before anything is sent. */
  readonly hasInterrupted: boolean;
  /** True when the end of the attempt was written. A later holder may have done so before, or the delivery is gone. */
  readonly written: boolean;
  readonly next: NextAttempt;
}

/** What comes next at an endpoint: an attempt to be sent under the lease. Without one the lease was given back. */
export interface NextAttempt {
  readonly attempt: Attempt | null;
  /** Without an attempt: when the next one is due, not below 0. Null when there is none. */
  readonly dueInMs: number | null;
}

/**
 * Leases endpoints, writes how attempts ended, and counts the next attempt of each endpoint: everything that must be
 * true before a request leaves, in one statement that waits for no lock. It can be pasted into psql.
 *
 * - A lease lasts 30 s, an attempt 10 s at most. A lease with 25 s left is not renewed: an attempt may begin 10 s late.
 * - All CTEs see the snapshot in which the statement began, but a lock gives the newest version of a row. So a row that
 *   changed since then may look busy. That is safe, because a busy claim is repeated.
 */
export const CLAIM = `
with asked as materialized (
  -- The claims, one for each endpoint. lease_token is null where a new lease is wanted, ended_id where no attempt ended.
  select * from unnest(
    $1::bigint[], $2::bigint[], $3::boolean[],
    $4::text[], $5::timestamptz[], $6::text[], $7::float8[], $8::integer[], $9::text[], $10::integer[], $11::text[]
  ) as a (webhook_id, lease_token, wants_start,
    ended_id, ended_created_at, ended_as, delay_seconds, status_code, error, duration_ms, record)

), endpoint as materialized (
  -- Their endpoints, locked: those that nobody has leased, and those whose newest token is that of the claim.
  -- A new token is one higher. After each renewal of ids (enter_server) tokens go on far above every one that may have been
  -- issued and lost, so that the holder of a lost one cannot write under the token of another pod.
  -- No attempt may start while one of an earlier holder is in flight, or when the lease has run out.
  select asked.*, w.account_id, w.url, w.retry_policy, w.max_retries, w.secret, w.active, a.active as owner_active,
    w.updated_at::text as revision,
    case when w.previous_secret_until > clock_timestamp() then w.previous_secret end as previous_secret,
    coalesce(asked.lease_token, greatest(w.fencing_token + 1, (
      select renewals::bigint << 32 from server_start order by ordinal desc limit 1))) as token,
    asked.wants_start and case when asked.lease_token is null
      then not exists (select from webhook_delivery d where d.webhook_id = w.id and d.attempt_token is not null)
      else w.leased_until > clock_timestamp() end as may_start
  from asked join webhook w on w.id = asked.webhook_id join account a on a.id = w.account_id
  where case when asked.lease_token is null
    then w.leased_until is null or w.leased_until < clock_timestamp()
    else w.fencing_token = asked.lease_token end
  order by w.id for no key update of w skip locked

), ended as materialized (
  -- The deliveries whose attempt ended, locked, as long as that attempt is in flight under the token of the claim.
  select endpoint.webhook_id, own.id, own.created_at from endpoint cross join lateral (
    select d.id, d.created_at from webhook_delivery d
    where d.id = endpoint.ended_id and d.created_at = endpoint.ended_created_at and d.attempt_token = endpoint.token
    limit 1 for update skip locked) own

), busy as materialized (
  -- The claims that lack one of these two rows although it exists: another transaction has locked it.
  select asked.webhook_id
  from asked left join endpoint using (webhook_id) left join ended using (webhook_id)
  where case
    when endpoint.webhook_id is null then (
      select true from webhook w where w.id = asked.webhook_id and w.fencing_token = asked.lease_token)
    when ended.webhook_id is null then (
      select true from webhook_delivery d
      where d.id = asked.ended_id and d.created_at = asked.ended_created_at and d.attempt_token = asked.lease_token)
    end

), claim as materialized (
  -- The endpoints that are not busy: when their first delivery is due, and that delivery, locked, if it is due now.
  -- Nothing is sent for a deactivated account, and to an inactive endpoint only tests, not their replays. Either half of
  -- the union reads the beginning of an index, however many deliveries wait.
  select endpoint.*, first.next_attempt_at as first_at, due.id as due_id, due.created_at as due_created_at
  from endpoint left join lateral (
    (select d.id, d.created_at, d.next_attempt_at from webhook_delivery d
      where endpoint.owner_active and endpoint.active
        and d.webhook_id = endpoint.webhook_id and d.next_attempt_at is not null
      order by d.next_attempt_at limit 1)
    union all
    (select latest.id, latest.created_at, latest.next_attempt_at from (
        select d.id, d.created_at, d.next_attempt_at, d.event_type, d.status from webhook_delivery d
        where endpoint.owner_active and not endpoint.active
          and d.webhook_id = endpoint.webhook_id and d.next_attempt_at is not null
        order by d.next_attempt_at desc limit 200) latest
      where latest.event_type = 'ping' and latest.status <> 'requeued'
      order by latest.next_attempt_at limit 1)
  ) first on true left join lateral (
    select d.id, d.created_at from webhook_delivery d
    where endpoint.may_start and first.next_attempt_at <= clock_timestamp()
      and d.id = first.id and d.created_at = first.created_at and d.next_attempt_at <= clock_timestamp()
    limit 1 for update skip locked
  ) due on true
  where not exists (select from busy where busy.webhook_id = endpoint.webhook_id)

), completed as (
  -- Writes how the attempts ended, and keeps the last ten of a delivery.
  update webhook_delivery d set status = claim.ended_as, attempt_token = null,
    next_attempt_at = clock_timestamp() + make_interval(secs => claim.delay_seconds),
    last_status_code = claim.status_code, last_error = claim.error, last_duration_ms = claim.duration_ms,
    attempt_log = (d.attempt_log || claim.record::json)[cardinality(d.attempt_log) - 8 :],
    delivered_at = case when claim.ended_as = 'delivered' then clock_timestamp() end
  from ended join claim using (webhook_id)
  where d.id = ended.id and d.created_at = ended.created_at
  returning claim.webhook_id, d.next_attempt_at

), leased as (
  -- Writes new tokens, the leases that begin, are renewed or are given back, and since when an endpoint has failed.
  -- Who finds an attempt of an earlier holder keeps the lease, although nothing starts.
  update webhook w set fencing_token = claim.token,
    leased_until = case
      when claim.due_id is null and (claim.may_start or claim.lease_token is not null) then null
      when claim.lease_token is not null and w.leased_until >= clock_timestamp() + interval '25 seconds'
        then w.leased_until
      else clock_timestamp() + interval '30 seconds' end,
    failing_since = case claim.ended_as
      when 'delivered' then null
      when 'failed' then coalesce(w.failing_since, clock_timestamp())
      when 'exhausted' then coalesce(w.failing_since, clock_timestamp())
      else w.failing_since end,
    failed_at = case when claim.ended_as in ('failed', 'exhausted') then clock_timestamp() else w.failed_at end,
    failures = case claim.ended_as
      when 'delivered' then 0 when 'failed' then w.failures + 1 when 'exhausted' then w.failures + 1
      else w.failures end
  from claim where w.id = claim.webhook_id and (
    claim.lease_token is null or claim.due_id is null
    or w.leased_until < clock_timestamp() + interval '25 seconds'
    or claim.ended_as in ('failed', 'exhausted')
    or (claim.ended_as = 'delivered' and w.failing_since is not null))

), started as (
  -- Counts an attempt of each delivery that is due, and marks it with the token.
  update webhook_delivery d set attempts = d.attempts + 1, spent = d.spent + 1, next_attempt_at = null,
    attempt_token = claim.token
  from claim where d.id = claim.due_id and d.created_at = claim.due_created_at
  returning claim.webhook_id, d.id, d.created_at, d.event_id, d.body, d.attempts, d.spent
)
-- due_in_ms: where nothing was started, the milliseconds until something may be. 100 when the delivery that is due is
-- locked, by a replay for example.
select webhook_id, claim.token, claim.lease_token is null and not claim.may_start as has_interrupted,
  busy.webhook_id is not null as is_busy, completed.webhook_id is not null as written,
  started.id, started.created_at::text, started.event_id, started.body, started.attempts, started.spent,
  claim.account_id, claim.revision, claim.url, claim.retry_policy, claim.max_retries, claim.secret,
  claim.previous_secret,
  case when started.id is null and coalesce(claim.first_at, completed.next_attempt_at) is not null then greatest(
    0, extract(epoch from least(claim.first_at, completed.next_attempt_at) - clock_timestamp()) * 1000,
    case when claim.may_start and claim.first_at <= clock_timestamp() then 100 end)::float8 end as due_in_ms
from claim left join completed using (webhook_id) left join started using (webhook_id)
  full join busy using (webhook_id)`;

/**
 * The part of CLAIM that finds the delivery which is sent next to an endpoint, at most one row. `endpoint` has its webhook_id
 * and active, and owner_active of its account.
 */
export const FIRST_SENDABLE = CLAIM.slice(
  CLAIM.indexOf('endpoint left join lateral (') + 'endpoint left join lateral ('.length,
  CLAIM.indexOf(') first on true'),
);

interface ClaimRow {
  readonly webhook_id: number;
  readonly token: number;
  readonly has_interrupted: boolean;
  readonly is_busy: boolean;
  readonly written: boolean;
  readonly due_in_ms: number | null;
  /** Null when no attempt was started, and so are the others. */
  readonly id: string | null;
  readonly created_at: string;
  readonly event_id: string;
  readonly body: string;
  readonly attempts: number;
  readonly spent: number;
  readonly account_id: number;
  readonly revision: string;
  readonly url: string;
  readonly retry_policy: RetryRule['policy'];
  readonly max_retries: number;
  readonly secret: Buffer;
  readonly previous_secret: Buffer | null;
}

/**
 * Runs `CLAIM` for claims of different endpoints and answers in their order. `busy`: another transaction has locked the
 * endpoint or the ended delivery, and nothing was done. Undefined: somebody else has the lease, or the endpoint is gone.
 */
export async function claimDeliveries(
  sql: Sql,
  claims: readonly Claim[],
): Promise<(Claimed | 'busy' | undefined)[]> {
  const ends = claims.map(({ ended }) => ended);
  const delaysMs = ends.map((end) => end?.transition.nextAttemptDelayMs ?? null);
  const values = [
    arrayLiteral(claims.map(({ webhookId }) => webhookId)),
    arrayLiteral(claims.map(({ lease }) => lease?.fencingToken ?? null)),
    arrayLiteral(claims.map(({ mayStart }) => mayStart)),
    ends.map((end) => end?.attempt.deliveryId ?? null),
    ends.map((end) => end?.attempt.createdAt ?? null),
    ends.map((end) => end?.transition.status ?? null),
    arrayLiteral(delaysMs.map((delayMs) => (delayMs === null ? null : delayMs / 1000))),
    arrayLiteral(ends.map((end) => end?.record.status_code ?? null)),
    ends.map((end) => end?.record.error ?? null),
    arrayLiteral(ends.map((end) => end?.record.duration_ms ?? null)),
    ends.map((end) => end && JSON.stringify(end.record)),
  ];
  const rows = await sql.prepared<readonly ClaimRow[]>(CLAIM, values, 'claim_deliveries');
  const byId = new Map(rows.map((row) => [row.webhook_id, row]));
  return claims.map(({ webhookId }) => {
    const row = byId.get(webhookId);
    return row?.is_busy === true ? 'busy' : row && claimedOf(row);
  });
}

function claimedOf(row: ClaimRow): Claimed {
  const attempt: Attempt | null =
    row.id === null
      ? null
      : {
          deliveryId: row.id,
          createdAt: row.created_at,
          eventId: row.event_id,
          body: row.body,
          attempt: row.attempts,
          budgetUsed: row.spent,
          owner: { webhookId: row.webhook_id, accountId: row.account_id, revision: row.revision },
          url: row.url,
          rule: { policy: row.retry_policy, maxRetries: row.max_retries },
          sealedSecret: row.secret,
          sealedPreviousSecret: row.previous_secret,
        };
  return {
    lease: { webhookId: row.webhook_id, fencingToken: row.token },
    hasInterrupted: row.has_interrupted,
    written: row.written,
    next: { attempt, dueInMs: row.due_in_ms },
  };
}

/** Ends a lease at once. An attempt may still be in flight, so the next sweep finds the endpoint, as after a crash. */
export async function releaseLease(sql: Sql, { webhookId, fencingToken }: Lease): Promise<void> {
  await sql`
    update webhook set leased_until = clock_timestamp() where id = ${webhookId} and fencing_token = ${fencingToken}`;
}

/** Attempts that earlier holders of the lease left in flight. */
export async function selectInterrupted(sql: Sql, lease: Lease): Promise<InterruptedAttempt[]> {
  const rows = await sql<(ClaimRow & { id: string })[]>`
    select d.id, d.created_at::text, d.attempts, d.spent, w.retry_policy, w.max_retries
    from webhook_delivery d join webhook w on w.id = d.webhook_id
    where d.webhook_id = ${lease.webhookId} and d.attempt_token is not null
      and d.attempt_token < ${lease.fencingToken}`;
  return rows.map((row) => ({
    deliveryId: row.id,
    createdAt: row.created_at,
    attempt: row.attempts,
    budgetUsed: row.spent,
    rule: { policy: row.retry_policy, maxRetries: row.max_retries },
  }));
}

/**
 * Writes the end of an attempt, and nothing else. `startedUnder` is the attempt's own lease; `interruptedBefore` is a
 * later one, for an interrupted attempt. False when a later holder has written its end already, or the delivery is
 * gone.
 */
export async function completeAttempt(
  sql: Sql,
  token: { readonly startedUnder: Lease } | { readonly interruptedBefore: Lease },
  { attempt, transition, record }: EndedAttempt,
): Promise<boolean> {
  const { status, nextAttemptDelayMs: delayMs } = transition;
  const completed = await sql`
    update webhook_delivery d set status = ${status}, attempt_token = null,
      next_attempt_at = clock_timestamp() + make_interval(secs => ${delayMs === null ? null : delayMs / 1000}::float8),
      last_status_code = ${record.status_code}, last_error = ${record.error}, last_duration_ms = ${record.duration_ms},
      attempt_log = (d.attempt_log || ${JSON.stringify(record)}::json)[cardinality(d.attempt_log) - 8 :],
      delivered_at = case when ${status} = 'delivered' then clock_timestamp() end
    where d.id = ${attempt.deliveryId} and d.created_at = ${attempt.createdAt}::timestamptz and ${
      'startedUnder' in token
        ? sql`d.attempt_token = ${token.startedUnder.fencingToken}`
        : sql`d.attempt_token < ${token.interruptedBefore.fencingToken}`
    }`;
  return completed.count > 0;
}
