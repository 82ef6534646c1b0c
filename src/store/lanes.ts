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

/**
 * Writes the end of an attempt and nothing else, for its own lane or, when it was cut off, a later one; false when a
 * later holder of the lane has spoken for it meanwhile, or its delivery is gone.
 */
export async function settleAttempt(
  sql: Sql,
  token: Token,
  { attempt, next, result }: EndedAttempt,
): Promise<boolean> {
  const delayMs = next.nextAttemptDelayMs;
  const settled = await sql`
    update webhook_delivery d set status = ${next.status}, attempt_token = null,
      next_attempt_at = clock_timestamp() + make_interval(secs => ${delayMs === null ? null : delayMs / 1000}::float8),
      last_status_code = ${result.statusCode}, last_error = ${result.error}, last_duration_ms = ${result.durationMs},
      delivered_at = case when ${next.status} = 'delivered' then clock_timestamp() end
    where d.id = ${attempt.deliveryId} and d.created_at = ${attempt.createdAt}::timestamptz and ${
      'startedUnder' in token
        ? sql`d.attempt_token = ${token.startedUnder.fencingToken}`
        : sql`d.attempt_token < ${token.cutOffBefore.fencingToken}`
    }`;
  return settled.count > 0;
}
