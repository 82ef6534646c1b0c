import type { RetryRule } from '../delivery/retrySchedule.ts';
import type { DeliveryStatus } from '../delivery/transition.ts';
import { dueInMs, firstSendable } from './dueLanes.ts';
import type { Attempt, EndedAttempt, Lease } from './lanes.ts';
import type { Sql } from './sql.ts';
import { RawSql } from './sqlText.ts';
import { list } from './tracks.ts';

/** What comes next in a lane: an attempt to be sent under its lease; or none, and then the lease was given back. */
export type LaneStep =
  | { readonly attempt: Attempt }
  /** When the next attempt is due, not below 0; null when there is none. */
  | { readonly attempt: null; readonly dueInMs: number | null };

/** A lane that was leased; `hasCutOff`: an earlier holder left an attempt in flight, to be spoken for before anything is sent. */
export interface OpenedLane {
  readonly lease: Lease;
  readonly hasCutOff: boolean;
  readonly step: LaneStep;
}

/** What the holder of a lane asks for: to write the end of its attempt, if there was one, and to start the next. */
export interface LaneMove {
  readonly lease: Lease;
  readonly ended: EndedAttempt | null;
  readonly mayStart: boolean;
}

/**
 * `written` is false when a later holder of the lane has spoken for the attempt meanwhile (or its delivery is gone):
 * then nothing of it changes. Nothing starts when the lease is lost.
 */
export interface MovedLane {
  readonly written: boolean;
  readonly step: LaneStep;
}

/** Leases last this long. An attempt takes ten seconds at most. */
export const LEASE_SECONDS = 30;
/** A lease with so much left at the start of an attempt need not be renewed: one may begin ten seconds late. */
const LEASE_ENOUGH_SECONDS = 25;
/** A delivery that somebody has locked (a replay) is looked at again after this. */
const LOCKED_RETRY_MS = 100;

/**
 * Leases endpoints and counts the first due attempt of each, in one statement that waits for nobody. Answers in the
 * order asked: undefined where somebody else has the lease or the row, and where the endpoint is gone.
 */
export async function openLanes(
  sql: Sql,
  webhookIds: readonly number[],
): Promise<(OpenedLane | undefined)[]> {
  const rows = await sql<(StepRow & { fencing_token: number; may_start: boolean })[]>`
    with holder as materialized (
      select ${ENDPOINT}, not exists (
        select from webhook_delivery d where d.webhook_id = w.id and d.attempt_token is not null) as may_start
      from webhook w join account a on a.id = w.account_id
      where w.id = any(${list(webhookIds)}::bigint[])
        and (w.leased_until is null or w.leased_until < clock_timestamp())
      order by w.id for no key update of w skip locked
    ), lane as materialized (
      select holder.*, ${FIRST_AND_DUE} from holder ${FIRST_AND_DUE_OF_HOLDER}
    ), held as (
      update webhook w set fencing_token = w.fencing_token + 1,
        leased_until = case when not lane.may_start or lane.due_id is not null then ${LEASE_END} end
      from lane where w.id = lane.id returning w.id, w.fencing_token
    ), started as (
      ${START} attempt_token = held.fencing_token
      from lane join held on held.id = lane.id where d.id = lane.due_id and d.created_at = lane.due_created_at
      returning ${STARTED}
    )
    select lane.id as webhook_id, held.fencing_token, lane.may_start, ${STEP}, ${dueInMsOf('lane.first_at')} as due_in_ms
    from lane join held on held.id = lane.id left join started on started.webhook_id = lane.id`.named(
    'open_lanes',
  );
  const byId = new Map(rows.map((row) => [row.webhook_id, row]));
  return webhookIds.map((webhookId) => {
    const row = byId.get(webhookId);
    if (row === undefined) return undefined;
    const lease = { webhookId, fencingToken: row.fencing_token };
    return { lease, hasCutOff: !row.may_start, step: stepOf(row) };
  });
}

/**
 * Goes on in leased lanes, in one statement that waits for nobody: writes the end of the attempt before and counts the
 * next due one; without one the lease is given back. Answers in the order asked. `busy`: somebody has locked the
 * endpoint or the delivery, and nothing was done there.
 */
export async function advanceLanes(sql: Sql, moves: readonly LaneMove[]): Promise<(MovedLane | 'busy')[]> {
  const rows = await move(sql, moves, false).named('advance_lanes');
  const byLease = new Map(rows.map((row) => [`${row.webhook_id} ${row.token}`, row]));
  return moves.map(({ lease }) => {
    const row = byLease.get(`${lease.webhookId} ${lease.fencingToken}`);
    return row?.is_busy === true ? 'busy' : movedOf(row);
  });
}

/** The same for one lane; waits for whoever has locked its rows. */
export async function advanceLane(sql: Sql, only: LaneMove): Promise<MovedLane> {
  const [row] = await move(sql, [only], true).named('advance_lane');
  return movedOf(row);
}

type MoveRow = StepRow & { token: number; is_busy: boolean; written: boolean };

/**
 * Only rows of `lane` are touched: their lanes are locked and have the token asked for, and so is the delivery that
 * ended, if it still is in flight. What was skipped because it was locked is `busy`; what has changed since the
 * statement began looks the same, and is sorted out by the one that waits.
 */
function move(sql: Sql, moves: readonly LaneMove[], isPatient: boolean) {
  const locking = isPatient ? WAITING : SKIPPING;
  const leases = moves.map(({ lease }) => lease);
  const ends = moves.map(({ ended }) => ended);
  const delaysMs = ends.map((end) => end?.next.nextAttemptDelayMs ?? null);
  return sql<MoveRow[]>`
    with move as materialized (
      select * from unnest(
        ${list(leases.map(({ webhookId }) => webhookId))}::bigint[],
        ${list(leases.map(({ fencingToken }) => fencingToken))}::bigint[],
        ${list(moves.map(({ mayStart }) => mayStart))}::boolean[],
        ${ends.map((end) => end?.attempt.deliveryId ?? null)}::text[],
        ${ends.map((end) => end?.attempt.createdAt ?? null)}::timestamptz[],
        ${ends.map((end) => end?.next.status ?? null)}::text[],
        ${list(delaysMs.map((delayMs) => (delayMs === null ? null : delayMs / 1000)))}::float8[],
        ${list(ends.map((end) => end?.result.statusCode ?? null))}::integer[],
        ${ends.map((end) => end?.result.error ?? null)}::text[],
        ${list(ends.map((end) => end?.result.durationMs ?? null))}::integer[]
      ) as m (webhook_id, token, wants_start, ended_id, ended_created_at, ended_as, delay_seconds, status_code, error,
        duration_ms)
    ), holder as materialized (
      select ${ENDPOINT}, w.leased_until, move.*, move.wants_start and w.leased_until > clock_timestamp() as may_start
      from move join webhook w on w.id = move.webhook_id and w.fencing_token = move.token
        join account a on a.id = w.account_id
      order by w.id for no key update of w ${locking}
    ), ending as materialized (
      select holder.id as lane_id, own.id, own.created_at from holder cross join lateral (
        select d.id, d.created_at from webhook_delivery d
        where d.id = holder.ended_id and d.created_at = holder.ended_created_at and d.attempt_token = holder.token
        limit 1 for update ${locking}) own
    ), busy as materialized (
      select move.webhook_id, move.token from move
      where ${isPatient ? NEVER : ALWAYS} and case
        when not exists (select from holder where holder.id = move.webhook_id and holder.token = move.token) then (
          select true from webhook w where w.id = move.webhook_id and w.fencing_token = move.token)
        when not exists (select from ending where ending.lane_id = move.webhook_id) then (
          select true from webhook_delivery d where d.id = move.ended_id and d.created_at = move.ended_created_at
            and d.attempt_token = move.token)
        else false end
    ), lane as materialized (
      select holder.*, ${FIRST_AND_DUE} from holder ${FIRST_AND_DUE_OF_HOLDER}
      where not exists (select from busy where busy.webhook_id = holder.id)
    ), settled as (
      update webhook_delivery d set status = lane.ended_as, attempt_token = null,
        next_attempt_at = clock_timestamp() + make_interval(secs => lane.delay_seconds),
        last_status_code = lane.status_code, last_error = lane.error, last_duration_ms = lane.duration_ms,
        delivered_at = case when lane.ended_as = 'delivered' then clock_timestamp() end
      from ending join lane on lane.id = ending.lane_id
      where d.id = ending.id and d.created_at = ending.created_at
      returning lane.id as lane_id, d.next_attempt_at
    ), held as (
      update webhook w set leased_until = case when lane.due_id is not null then ${LEASE_END} end
      from lane where w.id = lane.id and (lane.due_id is null or w.leased_until < ${LEASE_ENOUGH})
    ), started as (
      ${START} attempt_token = lane.token
      from lane where d.id = lane.due_id and d.created_at = lane.due_created_at
      returning ${STARTED}
    )
    select lane.id as webhook_id, lane.token, false as is_busy, settled.lane_id is not null as written,
      ${STEP}, ${dueInMsOf('least(lane.first_at, settled.next_attempt_at)')} as due_in_ms
    from lane left join settled on settled.lane_id = lane.id left join started on started.webhook_id = lane.id
    union all
    select busy.webhook_id, busy.token, true, false, ${NO_STEP} from busy`;
}

const SKIPPING = new RawSql('skip locked');
const WAITING = new RawSql('');
const ALWAYS = new RawSql('true');
const NEVER = new RawSql('false');

const ENDPOINT = new RawSql(`
  w.id, w.url, w.retry_policy, w.max_retries, w.secret, w.active, a.active as owner_active,
  case when w.previous_secret_until > clock_timestamp() then w.previous_secret end as previous_secret`);

const LEASE_END = new RawSql(`clock_timestamp() + make_interval(secs => ${LEASE_SECONDS})`);
const LEASE_ENOUGH = new RawSql(`clock_timestamp() + make_interval(secs => ${LEASE_ENOUGH_SECONDS})`);

const FIRST_AND_DUE = new RawSql(`
  first.next_attempt_at as first_at, due.id as due_id, due.created_at as due_created_at`);

/** The first delivery that may be sent; and once more, locked, when its time has come and the lane may start it. */
const FIRST_AND_DUE_OF_HOLDER = new RawSql(`
  left join lateral (${firstSendable('holder').text}) first on true
  left join lateral (
    select d.id, d.created_at from webhook_delivery d
    where holder.may_start and first.next_attempt_at <= clock_timestamp() and d.id = first.id
      and d.created_at = first.created_at and d.next_attempt_at <= clock_timestamp()
    limit 1 for update skip locked) due on true`);

const START = new RawSql(
  'update webhook_delivery d set attempts = d.attempts + 1, spent = d.spent + 1, next_attempt_at = null,',
);

const STARTED = new RawSql(
  'lane.id as webhook_id, d.id, d.created_at, d.event_id, d.body, d.attempts, d.status, d.spent',
);

const STEP = new RawSql(`
  started.id, started.created_at::text, started.event_id, started.body, started.attempts, started.status,
  started.spent, lane.url, lane.retry_policy, lane.max_retries, lane.secret, lane.previous_secret`);

const NO_STEP = new RawSql(`
  null, null, null, null, null, null, null, null, null, null, null, null, null`);

/** Milliseconds until `time`, if any, where nothing was started; what is due and could not be locked waits a little. */
function dueInMsOf(time: string): RawSql {
  const isLocked = 'lane.may_start and lane.first_at <= clock_timestamp()';
  return new RawSql(`case when started.id is null and ${time} is not null then
    greatest(${dueInMs(time).text}, case when ${isLocked} then ${LOCKED_RETRY_MS} end) end`);
}

/** Of `lane` and `started`. */
interface StepRow {
  readonly webhook_id: number;
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

/** No row: the lease is lost, so somebody else has the lane; or the endpoint is gone. */
function movedOf(row: MoveRow | undefined): MovedLane {
  if (row === undefined) return { written: false, step: { attempt: null, dueInMs: 0 } };
  return { written: row.written, step: stepOf(row) };
}

function stepOf(row: StepRow): LaneStep {
  if (row.id === null) return { attempt: null, dueInMs: row.due_in_ms };
  const attempt: Attempt = {
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
  };
  return { attempt };
}
