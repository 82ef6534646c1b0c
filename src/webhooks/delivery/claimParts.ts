import { RawSql } from '../../postgres/sqlText.ts';
import type { Attempt } from './attempts.sql.ts';
import { dueInMs, firstSendable } from './dueEndpoints.sql.ts';
import type { DeliveryStatus, RetryRule } from './transition.ts';

/** Leases last this long. An attempt takes ten seconds at most. */
export const LEASE_SECONDS = 30;
/** A lease with this much left at the start of an attempt is not renewed: an attempt may begin ten seconds late. */
const LEASE_ENOUGH_SECONDS = 25;
/** When the due delivery is locked, by a replay for example, the endpoint is checked again after this time. */
const LOCKED_RETRY_MS = 100;

export const LEASE_END = new RawSql(`clock_timestamp() + make_interval(secs => ${LEASE_SECONDS})`);
export const LEASE_ENOUGH = new RawSql(`clock_timestamp() + make_interval(secs => ${LEASE_ENOUGH_SECONDS})`);

/**
 * The next token of an endpoint `w`. After each renewal of ids (sql/0028) tokens continue far above every one that can
 * have been issued and lost, so that the holder of a lost one cannot write under the token of another pod.
 */
export const NEXT_TOKEN = new RawSql(`greatest(w.fencing_token + 1, (
  select renewals::bigint << 32 from server_start order by ordinal desc limit 1))`);

/** What is read of an endpoint `w` and its account `a` under the lock. */
export const ENDPOINT = new RawSql(`
  w.id, w.account_id, w.url, w.retry_policy, w.max_retries, w.secret, w.active, a.active as owner_active,
  w.updated_at::text as revision,
  case when w.previous_secret_until > clock_timestamp() then w.previous_secret end as previous_secret`);

/**
 * Two columns and two joins for each `endpoint`. `first_at`: when its first sendable delivery is due. `due_id`: that
 * delivery, locked, if it is due now and the endpoint may start an attempt.
 */
export const FIRST_AND_DUE = {
  columns: new RawSql(
    'first.next_attempt_at as first_at, due.id as due_id, due.created_at as due_created_at',
  ),
  joins: new RawSql(`
    left join lateral (${firstSendable('endpoint').text}) first on true
    left join lateral (
      select d.id, d.created_at from webhook_delivery d
      where endpoint.may_start and first.next_attempt_at <= clock_timestamp() and d.id = first.id
        and d.created_at = first.created_at and d.next_attempt_at <= clock_timestamp()
      limit 1 for update skip locked) due on true`),
};

/** Counts the attempt of the delivery that is due. The statement adds the token, the join and `STARTED`. */
export const START = new RawSql(
  'update webhook_delivery d set attempts = d.attempts + 1, spent = d.spent + 1, next_attempt_at = null,',
);

export const STARTED = new RawSql(
  'claim.id as webhook_id, d.id, d.created_at, d.event_id, d.body, d.attempts, d.status, d.spent',
);

/** The columns of `NextRow` but the first and the last, of `claim` and `started`. */
export const NEXT = new RawSql(`
  started.id, started.created_at::text, started.event_id, started.body, started.attempts, started.status,
  started.spent, claim.url, claim.retry_policy, claim.max_retries, claim.secret, claim.previous_secret,
  claim.account_id, claim.revision`);

/** `NEXT` and `due_in_ms` of a row without either. */
export const NO_NEXT = new RawSql(`
  null, null, null, null, null, null, null, null, null, null, null, null, null, null, null`);

/** Milliseconds until `time`, if there is any, where nothing was started. Not 0 when the due delivery is locked. */
export function dueInMsOf(time: string): RawSql {
  const isLocked = 'claim.may_start and claim.first_at <= clock_timestamp()';
  return new RawSql(`case when started.id is null and ${time} is not null then
    greatest(${dueInMs(time).text}, case when ${isLocked} then ${LOCKED_RETRY_MS} end) end`);
}

/** What a claim answers for one endpoint. `id` is null when no attempt was started. */
export interface NextRow {
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
  readonly account_id: number;
  readonly revision: string;
  readonly due_in_ms: number | null;
}

/** What comes next at an endpoint: an attempt to be sent under the lease. Without one the lease was given back. */
export type NextAttempt =
  | { readonly attempt: Attempt }
  /** When the next attempt is due, not below 0; null when there is none. */
  | { readonly attempt: null; readonly dueInMs: number | null };

export function nextOf(row: NextRow): NextAttempt {
  if (row.id === null) return { attempt: null, dueInMs: row.due_in_ms };
  const attempt: Attempt = {
    deliveryId: row.id,
    createdAt: row.created_at,
    eventId: row.event_id,
    body: row.body,
    attempt: row.attempts,
    status: row.status,
    budgetUsed: row.spent,
    owner: { webhookId: row.webhook_id, accountId: row.account_id, revision: row.revision },
    url: row.url,
    rule: { policy: row.retry_policy, maxRetries: row.max_retries },
    sealedSecret: row.secret,
    sealedPreviousSecret: row.previous_secret,
  };
  return { attempt };
}
