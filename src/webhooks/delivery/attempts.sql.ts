import type { Sql } from '../../postgres/sql.ts';
import type { DeliveryStatus, RetryRule, Transition } from './transition.ts';

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
  readonly status: DeliveryStatus;
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

/** The outcome of an attempt as its owner sees it. */
export interface AttemptResult {
  readonly statusCode: number | null;
  readonly error: string | null;
  readonly durationMs: number | null;
}

/** An attempt that ended. The delay to the next attempt counts from the moment at which this is written. */
export interface EndedAttempt {
  readonly attempt: Pick<Attempt, 'deliveryId' | 'createdAt'>;
  readonly transition: Transition;
  readonly result: AttemptResult;
}

/** An attempt whose process died before it wrote the result. */
export type InterruptedAttempt = Pick<Attempt, 'deliveryId' | 'createdAt' | 'status' | 'budgetUsed' | 'rule'>;

/** Ends a lease at once. An attempt may still be in flight, so the next sweep finds the endpoint, as after a crash. */
export async function releaseLease(sql: Sql, lease: Lease): Promise<void> {
  await sql`
    update webhook set leased_until = clock_timestamp()
    where id = ${lease.webhookId} and fencing_token = ${lease.fencingToken}`;
}

/** Attempts that earlier holders of the lease left in flight. */
export async function selectInterrupted(sql: Sql, lease: Lease): Promise<InterruptedAttempt[]> {
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
    budgetUsed: row.spent,
    rule: { policy: row.retry_policy, maxRetries: row.max_retries },
  }));
}

type Token = { readonly startedUnder: Lease } | { readonly interruptedBefore: Lease };

/**
 * Writes the end of an attempt, and nothing else. `startedUnder` is the attempt's own lease; `interruptedBefore` is a
 * later one, for an interrupted attempt. False when a later holder has written its end already, or the delivery is
 * gone.
 */
export async function completeAttempt(
  sql: Sql,
  token: Token,
  { attempt, transition, result }: EndedAttempt,
): Promise<boolean> {
  const { status, nextAttemptDelayMs: delayMs } = transition;
  const completed = await sql`
    update webhook_delivery d set status = ${status}, attempt_token = null,
      next_attempt_at = clock_timestamp() + make_interval(secs => ${delayMs === null ? null : delayMs / 1000}::float8),
      last_status_code = ${result.statusCode}, last_error = ${result.error}, last_duration_ms = ${result.durationMs},
      delivered_at = case when ${status} = 'delivered' then clock_timestamp() end
    where d.id = ${attempt.deliveryId} and d.created_at = ${attempt.createdAt}::timestamptz and ${
      'startedUnder' in token
        ? sql`d.attempt_token = ${token.startedUnder.fencingToken}`
        : sql`d.attempt_token < ${token.interruptedBefore.fencingToken}`
    }`;
  return completed.count > 0;
}
