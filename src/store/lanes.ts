import type { RetryRule } from '../delivery/retrySchedule.ts';
import type { DeliveryStatus, Transition } from '../delivery/transition.ts';
import { dueInMs, SENDABLE } from './dueLanes.ts';
import type { Sql } from './sql.ts';
import { RawSql } from './sqlText.ts';

/** The right to send to one endpoint, until the lease ends. Only who holds the newest token may write results. */
export interface Lease {
  readonly webhookId: number;
  readonly fencingToken: number;
}

/** An attempt that was counted and may now be sent. */
export interface Attempt {
  readonly deliveryId: string;
  /** Of the delivery, to the microsecond, as Postgres writes it: names its partition. */
  readonly createdAt: string;
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

/** What is known of an attempt that ended. */
export interface AttemptResult {
  readonly statusCode: number | null;
  readonly error: string | null;
  readonly durationMs: number | null;
}

/** An attempt that ended: what becomes of its delivery, with intervals counted from the moment it is written. */
export interface EndedAttempt {
  readonly attempt: Pick<Attempt, 'deliveryId' | 'createdAt'>;
  readonly next: Transition;
  readonly result: AttemptResult;
}

/** What comes next in a lane: an attempt to be sent under its lease; or none, and then the lease was given back. */
export type LaneStep =
  | { readonly attempt: Attempt }
  /** When the next attempt is due, not below 0; null when there is none. */
  | { readonly attempt: null; readonly dueInMs: number | null };

/** Leases last this long and are renewed with every attempt, which takes ten seconds at most. */
export const LEASE_SECONDS = 30;

/**
 * Leases an endpoint and counts its first due attempt; `hasCutOff` when an earlier holder left an attempt in flight,
 * which must be spoken for before anything is sent. Undefined when somebody else has the lease, or when it is gone.
 */
export async function openLane(
  sql: Sql,
  webhookId: number,
): Promise<{ lease: Lease; hasCutOff: boolean; step: LaneStep } | undefined> {
  const [row] = await sql<(StepRow & { fencing_token: number; may_start: boolean })[]>`
    with lane as materialized (
      select w.*, a.active as owner_active, not exists (
        select from webhook_delivery d where d.webhook_id = w.id and d.attempt_token is not null) as may_start
      from webhook w join account a on a.id = w.account_id
      where w.id = ${webhookId} and (w.leased_until is null or w.leased_until < clock_timestamp())
      for no key update of w skip locked
    ), due as (${FIRST_DUE}), held as (
      update webhook w set fencing_token = w.fencing_token + 1,
        leased_until = case when not lane.may_start or exists (select from due) then ${LEASE_END} end
      from lane where w.id = lane.id returning w.fencing_token
    ), started as (${START_DUE})
    select held.fencing_token, lane.may_start, ${STEP}, case when started.id is null then ${NEXT_DUE} end as due_in_ms
    from lane cross join held left join started on true`.named('open_lane');
  if (row === undefined) return undefined;
  const lease = { webhookId, fencingToken: row.fencing_token };
  return { lease, hasCutOff: !row.may_start, step: stepOf(row) };
}

/**
 * Goes on in a leased lane, in one statement: writes the end of the attempt before, if there was one, and counts the
 * next due attempt if one `mayStart`; without one the lease is given back. `written` is false when a later holder of
 * the lane has spoken for the attempt meanwhile (or its delivery is gone): then nothing of it changes. Nothing starts
 * when the lease is lost.
 */
export async function advanceLane(
  sql: Sql,
  lease: Lease,
  ended: EndedAttempt | null,
  mayStart: boolean,
): Promise<{ written: boolean; step: LaneStep }> {
  const [row] = await sql<(StepRow & { written: boolean })[]>`
    with lane as materialized (
      select w.*, a.active as owner_active,
        ${mayStart}::boolean and w.leased_until > clock_timestamp() as may_start
      from webhook w join account a on a.id = w.account_id
      where w.id = ${lease.webhookId} and w.fencing_token = ${lease.fencingToken}
      for no key update of w
    ), settled as (
      ${ended === null ? sql`select null::timestamptz as next_attempt_at where false` : settlement(sql, { startedUnder: lease }, ended, IN_LANE)}
    ), due as (${FIRST_DUE}), held as (
      update webhook w set leased_until = case when exists (select from due) then ${LEASE_END} end
      from lane where w.id = lane.id returning w.fencing_token
    ), started as (${START_DUE})
    select exists (select from settled) as written, ${STEP}, case when started.id is null then
      least(${NEXT_DUE}, (
        select ${dueInMs('next_attempt_at')} from settled where next_attempt_at is not null)) end as due_in_ms
    from lane cross join held left join started on true`.named(
    ended === null ? 'go_on_in_lane' : 'advance_lane',
  );
  return row === undefined
    ? { written: false, step: { attempt: null, dueInMs: 0 } }
    : { written: row.written, step: stepOf(row) };
}

/** Ends a lease that may have left an attempt in flight: the lane is found by the next sweep, as after a crash. */
export async function abandonLane(sql: Sql, lease: Lease): Promise<void> {
  await sql`
    update webhook set leased_until = clock_timestamp()
    where id = ${lease.webhookId} and fencing_token = ${lease.fencingToken}`;
}

/** An attempt whose process died before it could write the result. */
export type CutOffAttempt = Pick<Attempt, 'deliveryId' | 'createdAt' | 'status' | 'spent' | 'rule'>;

/** Attempts that earlier holders of the lane left in flight. */
export async function selectCutOff(sql: Sql, lease: Lease): Promise<CutOffAttempt[]> {
  const rows = await sql<
    {
      id: string;
      created_at: string;
      status: DeliveryStatus;
      spent: number;
      retry_policy: RetryRule['policy'];
      max_retries: number;
    }[]
  >`
    select d.id, d.created_at::text, d.status, d.spent, w.retry_policy, w.max_retries
    from webhook_delivery d join webhook w on w.id = d.webhook_id
    where d.webhook_id = ${lease.webhookId} and d.attempt_token is not null
      and d.attempt_token < ${lease.fencingToken}`;
  return rows.map((row) => ({
    deliveryId: row.id,
    createdAt: row.created_at,
    status: row.status,
    spent: row.spent,
    rule: { policy: row.retry_policy, maxRetries: row.max_retries },
  }));
}

type Token = { readonly startedUnder: Lease } | { readonly cutOffBefore: Lease };

/** Writes the end of an attempt and nothing else, for its own lane or, when it was cut off, a later one; false as above. */
export async function settleAttempt(sql: Sql, token: Token, ended: EndedAttempt): Promise<boolean> {
  return (await settlement(sql, token, ended)).length > 0;
}

function settlement(sql: Sql, token: Token, { attempt, next, result }: EndedAttempt, condition = ALWAYS) {
  const delayMs = next.nextAttemptDelayMs;
  return sql<{ next_attempt_at: Date | null }[]>`
    update webhook_delivery d set status = ${next.status}, attempt_token = null,
      next_attempt_at = clock_timestamp() + make_interval(secs => ${delayMs === null ? null : delayMs / 1000}::float8),
      last_status_code = ${result.statusCode}, last_error = ${result.error}, last_duration_ms = ${result.durationMs},
      delivered_at = case when ${next.status} = 'delivered' then clock_timestamp() end
    where d.id = ${attempt.deliveryId} and d.created_at = ${attempt.createdAt}::timestamptz and ${condition} and ${
      'startedUnder' in token
        ? sql`d.attempt_token = ${token.startedUnder.fencingToken}`
        : sql`d.attempt_token < ${token.cutOffBefore.fencingToken}`
    }
    returning d.next_attempt_at`;
}

const ALWAYS = new RawSql('true');
/** Also makes it wait for the lock on the lane. */
const IN_LANE = new RawSql('exists (select from lane)');

const LEASE_END = new RawSql(`clock_timestamp() + make_interval(secs => ${LEASE_SECONDS})`);

/**
 * The delivery of `lane` to attempt next, locked; the row of the lane is locked before it, as by whoever deletes. Asked
 * so that it is the first entry of an index, however long the backlog.
 */
const FIRST_DUE = new RawSql(`
  select first.id, first.created_at from lane cross join lateral (
    select d.id, d.created_at, d.next_attempt_at from webhook_delivery d
    where d.webhook_id = lane.id and d.next_attempt_at is not null and ${SENDABLE.text}
    order by d.next_attempt_at limit 1 for update) first
  where lane.may_start and first.next_attempt_at <= clock_timestamp()`);

const START_DUE = new RawSql(`
  update webhook_delivery d set attempts = attempts + 1, spent = spent + 1, next_attempt_at = null,
    attempt_token = held.fencing_token
  from due, held where d.id = due.id and d.created_at = due.created_at returning d.*`);

/** When the lane has something to send, of what this statement leaves alone. */
const NEXT_DUE = new RawSql(`(
  select ${dueInMs('d.next_attempt_at').text} from webhook_delivery d
  where d.webhook_id = lane.id and d.next_attempt_at is not null and ${SENDABLE.text}
  order by d.next_attempt_at limit 1)`);

const STEP = new RawSql(`
  started.id, started.created_at::text, started.event_id, started.body, started.attempts, started.status,
  started.spent, lane.url, lane.retry_policy, lane.max_retries, lane.secret,
  case when lane.previous_secret_until > clock_timestamp() then lane.previous_secret end as previous_secret`);

/** Of `lane` and `started`. */
interface StepRow {
  readonly id: string | null;
  readonly created_at: string;
  readonly event_id: string;
  readonly body: string;
  readonly attempts: number;
  readonly status: DeliveryStatus;
  readonly spent: number;
  readonly url: string;
  readonly retry_policy: RetryRule['policy'];
  readonly max_retries: number;
  readonly secret: Buffer;
  readonly previous_secret: Buffer | null;
  readonly due_in_ms: number | null;
}

function stepOf(row: StepRow): LaneStep {
  if (row.id === null) return { attempt: null, dueInMs: row.due_in_ms };
  return {
    attempt: {
      deliveryId: row.id,
      createdAt: row.created_at,
      eventId: row.event_id,
      body: row.body,
      attempt: row.attempts,
      status: row.status,
      spent: row.spent,
      url: row.url,
      rule: { policy: row.retry_policy, maxRetries: row.max_retries },
      sealedSecret: row.secret,
      sealedPreviousSecret: row.previous_secret,
    },
  };
}
