import type { RetryRule } from '../delivery/retrySchedule.ts';
import type { DeliveryStatus, Transition } from '../delivery/transition.ts';
import type { Sql } from './sql.ts';

/** The right to send to one endpoint, until the lease ends. Only who holds the newest token may write results. */
export interface Lease {
  readonly webhookId: number;
  readonly fencingToken: number;
}

/** An attempt that was counted and may now be sent. */
export interface Attempt {
  readonly deliveryId: string;
  readonly eventId: string;
  readonly body: string;
  /** Its number over the life of the delivery, from 1. */
  readonly attempt: number;
  readonly status: DeliveryStatus;
  /** Attempts of the present budget, with this one. */
  readonly spent: number;
  readonly url: string;
  readonly rule: RetryRule;
  readonly sealedSecret: Buffer;
  /** Sealed; null when none signs any more. */
  readonly sealedPreviousSecret: Buffer | null;
}

/** An attempt whose process died before it could write the result. */
export interface CutOffAttempt {
  readonly deliveryId: string;
  readonly status: DeliveryStatus;
  readonly spent: number;
  readonly rule: RetryRule;
}

/** Leases last this long and are renewed with every attempt, which takes ten seconds at most. */
export const LEASE_SECONDS = 30;

/** Leases an endpoint unless somebody else has; undefined then, or when it is gone. */
export async function claimLane(sql: Sql, webhookId: number): Promise<Lease | undefined> {
  const [row] = await sql<{ fencing_token: number }[]>`
    update webhook set fencing_token = fencing_token + 1,
      leased_until = clock_timestamp() + make_interval(secs => ${LEASE_SECONDS})
    where id = (
      select id from webhook where id = ${webhookId} and (leased_until is null or leased_until < clock_timestamp())
      for update skip locked)
    returning fencing_token`;
  return row === undefined ? undefined : { webhookId, fencingToken: row.fencing_token };
}

/** Gives a lease back before it ends. */
export async function releaseLane(sql: Sql, lease: Lease): Promise<void> {
  await sql`
    update webhook set leased_until = null
    where id = ${lease.webhookId} and fencing_token = ${lease.fencingToken}`;
}

/** Ends a lease that may have left an attempt in flight: the lane is found by the next sweep, as after a crash. */
export async function abandonLane(sql: Sql, lease: Lease): Promise<void> {
  await sql`
    update webhook set leased_until = clock_timestamp()
    where id = ${lease.webhookId} and fencing_token = ${lease.fencingToken}`;
}

/** Attempts that an earlier holder of the lane left in flight. */
export async function selectCutOff(sql: Sql, lease: Lease): Promise<CutOffAttempt[]> {
  const rows = await sql<
    {
      id: string;
      status: DeliveryStatus;
      spent: number;
      retry_policy: RetryRule['policy'];
      max_retries: number;
    }[]
  >`
    select d.id, d.status, d.spent, w.retry_policy, w.max_retries
    from webhook_delivery d join webhook w on w.id = d.webhook_id
    where d.webhook_id = ${lease.webhookId} and d.attempt_token is not null
      and d.attempt_token < ${lease.fencingToken}`;
  return rows.map((row) => ({
    deliveryId: row.id,
    status: row.status,
    spent: row.spent,
    rule: { policy: row.retry_policy, maxRetries: row.max_retries },
  }));
}

/**
 * Counts the next due attempt of a leased endpoint and renews the lease, in one statement; undefined when nothing is
 * due, or the lease is lost. An inactive endpoint holds everything but test deliveries.
 */
export async function startAttempt(sql: Sql, lease: Lease): Promise<Attempt | undefined> {
  const [row] = await sql<
    {
      id: string;
      event_id: string;
      body: string;
      attempts: number;
      status: DeliveryStatus;
      spent: number;
      url: string;
      retry_policy: RetryRule['policy'];
      max_retries: number;
      secret: Buffer;
      previous_secret: Buffer | null;
    }[]
  >`
    with lane as (
      update webhook set leased_until = clock_timestamp() + make_interval(secs => ${LEASE_SECONDS})
      where id = ${lease.webhookId} and fencing_token = ${lease.fencingToken} and leased_until > clock_timestamp()
      returning *
    ), due as (
      select d.id, d.created_at from webhook_delivery d, lane
      where d.webhook_id = ${lease.webhookId} and d.next_attempt_at <= clock_timestamp()
        and (lane.active or d.event_type = 'ping')
      order by d.next_attempt_at, d.created_at, d.id limit 1 for update of d
    )
    update webhook_delivery d set attempts = attempts + 1, spent = spent + 1, next_attempt_at = null,
      attempt_token = ${lease.fencingToken}
    from due, lane
    where d.id = due.id and d.created_at = due.created_at
    returning d.id, d.event_id, d.body, d.attempts, d.status, d.spent, lane.url, lane.retry_policy, lane.max_retries,
      lane.secret,
      case when lane.previous_secret_until > clock_timestamp() then lane.previous_secret end as previous_secret`;
  if (row === undefined) return undefined;
  return {
    deliveryId: row.id,
    eventId: row.event_id,
    body: row.body,
    attempt: row.attempts,
    status: row.status,
    spent: row.spent,
    url: row.url,
    rule: { policy: row.retry_policy, maxRetries: row.max_retries },
    sealedSecret: row.secret,
    sealedPreviousSecret: row.previous_secret,
  };
}

/** What is known of an attempt that ended. */
export interface AttemptResult {
  readonly statusCode: number | null;
  readonly error: string | null;
  readonly durationMs: number | null;
}

/**
 * Writes the end of an attempt that was started under `token`, with intervals counted from now; false when a later
 * holder of the lane has spoken for it meanwhile (or the delivery is gone): then nothing changes.
 */
export async function settleAttempt(
  sql: Sql,
  deliveryId: string,
  token: { readonly startedUnder: Lease } | { readonly cutOffBefore: Lease },
  { status, nextAttemptDelayMs }: Transition,
  result: AttemptResult,
): Promise<boolean> {
  const delayMs = nextAttemptDelayMs;
  const settled = await sql`
    update webhook_delivery set status = ${status}, attempt_token = null,
      next_attempt_at = clock_timestamp() + make_interval(secs => ${delayMs === null ? null : delayMs / 1000}::float8),
      last_status_code = ${result.statusCode}, last_error = ${result.error}, last_duration_ms = ${result.durationMs},
      delivered_at = case when ${status} = 'delivered' then clock_timestamp() end
    where id = ${deliveryId} and ${
      'startedUnder' in token
        ? sql`attempt_token = ${token.startedUnder.fencingToken}`
        : sql`attempt_token < ${token.cutOffBefore.fencingToken}`
    }
    returning 1`;
  return settled.length > 0;
}

/** When an endpoint's next attempt is due: milliseconds from now, not below 0; null when there is none. */
export async function selectDueInMs(sql: Sql, webhookId: number): Promise<number | null> {
  const [row] = await sql<{ due_in_ms: number }[]>`
    select greatest(0, extract(epoch from d.next_attempt_at - clock_timestamp()) * 1000)::float8 as due_in_ms
    from webhook_delivery d join webhook w on w.id = d.webhook_id
    where d.webhook_id = ${webhookId} and d.next_attempt_at is not null and (w.active or d.event_type = 'ping')
    order by d.next_attempt_at limit 1`;
  return row?.due_in_ms ?? null;
}

export interface DueLane {
  readonly webhookId: number;
  readonly dueInMs: number;
}

/**
 * Every endpoint with something to send and when, or with a lease that was left behind: what the schedule should
 * hold. One look into an index for each endpoint.
 */
export async function selectDueLanes(sql: Sql): Promise<DueLane[]> {
  const rows = await sql<{ id: number; due_in_ms: number }[]>`
    select w.id,
      case when w.leased_until < clock_timestamp() then 0
        else greatest(0, extract(epoch from due.at - clock_timestamp()) * 1000)::float8 end as due_in_ms
    from webhook w
    left join lateral (
      select d.next_attempt_at as at from webhook_delivery d
      where d.webhook_id = w.id and d.next_attempt_at is not null and (w.active or d.event_type = 'ping')
      order by d.next_attempt_at limit 1) due on true
    where due.at is not null or w.leased_until < clock_timestamp()`;
  return rows.map((row) => ({ webhookId: row.id, dueInMs: row.due_in_ms }));
}

/** How much waits, and for how long the oldest has been due. */
export async function selectBacklog(sql: Sql): Promise<{ waiting: number; oldestDueMs: number }> {
  const [row] = await sql<{ waiting: number; oldest_ms: number | null }[]>`
    select count(*)::int as waiting,
      greatest(0, max(extract(epoch from clock_timestamp() - next_attempt_at)) * 1000)::float8 as oldest_ms
    from webhook_delivery where next_attempt_at is not null`;
  return { waiting: row?.waiting ?? 0, oldestDueMs: row?.oldest_ms ?? 0 };
}
