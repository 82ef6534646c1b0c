import type { Sql } from '../../postgres/sql.ts';
import { arrayLiteral, RawSql } from '../../postgres/sqlText.ts';
import type { EndedAttempt, Lease } from './attempts.sql.ts';
import {
  dueInMsOf,
  ENDPOINT,
  FIRST_AND_DUE,
  LEASE_END,
  LEASE_ENOUGH,
  NEXT,
  NEXT_TOKEN,
  type NextAttempt,
  type NextRow,
  NO_NEXT,
  nextOf,
  START,
  STARTED,
} from './claimParts.ts';

/** An endpoint that was leased. */
export interface ClaimedEndpoint {
  readonly lease: Lease;
  /** True when an earlier holder left an attempt in flight. Its end must be written before anything is sent. */
  readonly hasInterrupted: boolean;
  readonly next: NextAttempt;
}

/** What the holder of a lease asks for: to write the end of its attempt, if there was one, and to start the next. */
export interface Completion {
  readonly lease: Lease;
  readonly ended: EndedAttempt | null;
  readonly mayStart: boolean;
}

/** Nothing starts when the lease is lost. */
export interface Completed {
  /** False when a later holder has written the end of the attempt already, or the delivery is gone. */
  readonly written: boolean;
  readonly next: NextAttempt;
}

/**
 * Leases endpoints and counts the first due attempt of each, in one statement that waits for no lock. Answers in the
 * order asked. Undefined: somebody else has the lease or has locked the row, or the endpoint is gone.
 *
 * | CTE      | rows                                                                    |
 * |----------|-------------------------------------------------------------------------|
 * | endpoint | endpoints that are free, locked                                         |
 * | claim    | the same, with when the first delivery is due, and that one if it is    |
 * | leased   | a new token for each; the lease too, if there is something to do        |
 * | started  | the due deliveries, counted and marked with the token                   |
 */
export async function claimEndpoints(
  sql: Sql,
  webhookIds: readonly number[],
): Promise<(ClaimedEndpoint | undefined)[]> {
  const rows = await sql<(NextRow & { fencing_token: number; may_start: boolean })[]>`
    with endpoint as materialized (
      select ${ENDPOINT}, not exists (
        select from webhook_delivery d where d.webhook_id = w.id and d.attempt_token is not null) as may_start
      from webhook w join account a on a.id = w.account_id
      where w.id = any(${arrayLiteral(webhookIds)}::bigint[])
        and (w.leased_until is null or w.leased_until < clock_timestamp())
      order by w.id for no key update of w skip locked
    ), claim as materialized (
      select endpoint.*, ${FIRST_AND_DUE.columns} from endpoint ${FIRST_AND_DUE.joins}
    ), leased as (
      update webhook w set fencing_token = ${NEXT_TOKEN},
        leased_until = case when not claim.may_start or claim.due_id is not null then ${LEASE_END} end
      from claim where w.id = claim.id returning w.id, w.fencing_token
    ), started as (
      ${START} attempt_token = leased.fencing_token
      from claim join leased on leased.id = claim.id
      where d.id = claim.due_id and d.created_at = claim.due_created_at
      returning ${STARTED}
    )
    select claim.id as webhook_id, leased.fencing_token, claim.may_start, ${NEXT},
      ${dueInMsOf('claim.first_at')} as due_in_ms
    from claim join leased on leased.id = claim.id left join started on started.webhook_id = claim.id`.named(
    'claim_endpoints',
  );
  const byId = new Map(rows.map((row) => [row.webhook_id, row]));
  return webhookIds.map((webhookId) => {
    const row = byId.get(webhookId);
    if (row === undefined) return undefined;
    const lease = { webhookId, fencingToken: row.fencing_token };
    return { lease, hasInterrupted: !row.may_start, next: nextOf(row) };
  });
}

/**
 * For each lease: writes the end of its attempt and counts the next due one, all in one statement that waits for no
 * lock. Without a next attempt the lease is given back. Answers in the order asked. `busy`: somebody has locked the
 * endpoint or the delivery, and nothing was done for this lease.
 */
export async function completeAndClaimAll(
  sql: Sql,
  completions: readonly Completion[],
): Promise<(Completed | 'busy')[]> {
  const rows = await completeStatement(sql, completions, false).named('complete_and_claim_all');
  const byLease = new Map(rows.map((row) => [`${row.webhook_id} ${row.token}`, row]));
  return completions.map(({ lease }) => {
    const row = byLease.get(`${lease.webhookId} ${lease.fencingToken}`);
    return row?.is_busy === true ? 'busy' : completedOf(row);
  });
}

/** The same for one lease. Waits for locks. */
export async function completeAndClaim(sql: Sql, completion: Completion): Promise<Completed> {
  const [row] = await completeStatement(sql, [completion], true).named('complete_and_claim');
  return completedOf(row);
}

type CompletedRow = NextRow & { token: number; is_busy: boolean; written: boolean };

/**
 * | CTE       | rows                                                                                      |
 * |-----------|-------------------------------------------------------------------------------------------|
 * | asked     | the completions                                                                           |
 * | endpoint  | their endpoints, locked, as long as the token is still the newest                         |
 * | ended     | the deliveries whose attempt ended, locked, as long as that attempt is still in flight    |
 * | busy      | completions without one of these two rows, though it exists: somebody else has locked it  |
 * | claim     | endpoints that are not busy, with their first delivery and the one that is due            |
 * | completed | the ended deliveries, with their result                                                   |
 * | leased    | endpoints whose lease is renewed or given back, or whose failures begin, go on or end     |
 * | started   | the due deliveries, counted and marked with the token                                     |
 *
 * All CTEs see the snapshot in which the statement began, but a lock gives the newest version of a row. So a row that
 * changed since then may look busy. That is safe: completeAndClaim then waits and asks again.
 */
function completeStatement(sql: Sql, completions: readonly Completion[], waits: boolean) {
  const locking = waits ? WAITING : SKIPPING;
  const leases = completions.map(({ lease }) => lease);
  const ends = completions.map(({ ended }) => ended);
  const delaysMs = ends.map((end) => end?.transition.nextAttemptDelayMs ?? null);
  return sql<CompletedRow[]>`
    with asked as materialized (
      select * from unnest(
        ${arrayLiteral(leases.map(({ webhookId }) => webhookId))}::bigint[],
        ${arrayLiteral(leases.map(({ fencingToken }) => fencingToken))}::bigint[],
        ${arrayLiteral(completions.map(({ mayStart }) => mayStart))}::boolean[],
        ${ends.map((end) => end?.attempt.deliveryId ?? null)}::text[],
        ${ends.map((end) => end?.attempt.createdAt ?? null)}::timestamptz[],
        ${ends.map((end) => end?.transition.status ?? null)}::text[],
        ${arrayLiteral(delaysMs.map((delayMs) => (delayMs === null ? null : delayMs / 1000)))}::float8[],
        ${arrayLiteral(ends.map((end) => end?.result.statusCode ?? null))}::integer[],
        ${ends.map((end) => end?.result.error ?? null)}::text[],
        ${arrayLiteral(ends.map((end) => end?.result.durationMs ?? null))}::integer[]
      ) as c (webhook_id, token, wants_start, ended_id, ended_created_at, ended_as, delay_seconds, status_code, error,
        duration_ms)
    ), endpoint as materialized (
      select ${ENDPOINT}, w.leased_until, asked.*,
        asked.wants_start and w.leased_until > clock_timestamp() as may_start
      from asked join webhook w on w.id = asked.webhook_id and w.fencing_token = asked.token
        join account a on a.id = w.account_id
      order by w.id for no key update of w ${locking}
    ), ended as materialized (
      select endpoint.id as webhook_id, own.id, own.created_at from endpoint cross join lateral (
        select d.id, d.created_at from webhook_delivery d
        where d.id = endpoint.ended_id and d.created_at = endpoint.ended_created_at
          and d.attempt_token = endpoint.token
        limit 1 for update ${locking}) own
    ), busy as materialized (
      select asked.webhook_id, asked.token from asked
      where ${waits ? NEVER : ALWAYS} and case
        when not exists (
          select from endpoint where endpoint.id = asked.webhook_id and endpoint.token = asked.token
        ) then (
          select true from webhook w where w.id = asked.webhook_id and w.fencing_token = asked.token)
        when not exists (select from ended where ended.webhook_id = asked.webhook_id) then (
          select true from webhook_delivery d where d.id = asked.ended_id and d.created_at = asked.ended_created_at
            and d.attempt_token = asked.token)
        else false end
    ), claim as materialized (
      select endpoint.*, ${FIRST_AND_DUE.columns} from endpoint ${FIRST_AND_DUE.joins}
      where not exists (select from busy where busy.webhook_id = endpoint.id)
    ), completed as (
      update webhook_delivery d set status = claim.ended_as, attempt_token = null,
        next_attempt_at = clock_timestamp() + make_interval(secs => claim.delay_seconds),
        last_status_code = claim.status_code, last_error = claim.error, last_duration_ms = claim.duration_ms,
        delivered_at = case when claim.ended_as = 'delivered' then clock_timestamp() end
      from ended join claim on claim.id = ended.webhook_id
      where d.id = ended.id and d.created_at = ended.created_at
      returning claim.id as webhook_id, d.next_attempt_at
    ), leased as (
      update webhook w set
        leased_until = case
          when claim.due_id is null then null
          when w.leased_until < ${LEASE_ENOUGH} then ${LEASE_END}
          else w.leased_until end,
        failing_since = case
          when claim.ended_as = 'delivered' then null
          when ${FAILED} then coalesce(w.failing_since, clock_timestamp())
          else w.failing_since end,
        failed_at = case when ${FAILED} then clock_timestamp() else w.failed_at end,
        failures = case when claim.ended_as = 'delivered' then 0 when ${FAILED} then w.failures + 1 else w.failures end
      from claim where w.id = claim.id and (claim.due_id is null or w.leased_until < ${LEASE_ENOUGH}
        or ${FAILED} or (claim.ended_as = 'delivered' and w.failing_since is not null))
    ), started as (
      ${START} attempt_token = claim.token
      from claim where d.id = claim.due_id and d.created_at = claim.due_created_at
      returning ${STARTED}
    )
    select claim.id as webhook_id, claim.token, false as is_busy, completed.webhook_id is not null as written,
      ${NEXT}, ${dueInMsOf('least(claim.first_at, completed.next_attempt_at)')} as due_in_ms
    from claim left join completed on completed.webhook_id = claim.id
      left join started on started.webhook_id = claim.id
    union all
    select busy.webhook_id, busy.token, true, false, ${NO_NEXT} from busy`;
}

/** The attempt failed. Whether it is retried does not matter. */
const FAILED = new RawSql("claim.ended_as in ('failed', 'exhausted')");
const SKIPPING = new RawSql('skip locked');
const WAITING = new RawSql('');
const ALWAYS = new RawSql('true');
const NEVER = new RawSql('false');

/** No row: the lease is lost, so somebody else has the endpoint; or the endpoint is gone. */
function completedOf(row: CompletedRow | undefined): Completed {
  if (row === undefined) return { written: false, next: { attempt: null, dueInMs: 0 } };
  return { written: row.written, next: nextOf(row) };
}
