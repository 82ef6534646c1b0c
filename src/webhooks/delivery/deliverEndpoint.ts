import type { KeyObject } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { CidrSet } from '../../access/ipAddress.ts';
import { type Clock, DeadlineExceeded, formatIso } from '../../lib/time.ts';
import type { Sql } from '../../postgres/sql.ts';
import { isUnavailable } from '../../postgres/sqlErrors.ts';
import { IN_POSTGRES, type Span } from '../../traces/span.ts';
import type { Traces } from '../../traces/traces.ts';
import type { AttemptRecord } from '../deliveries.sql.ts';
import { type AttemptOutcome, deliveryHeaders, open, outcomeOfStatus, transition } from '../delivery.ts';
import type { Attempt, Claim, Claimed, EndedAttempt, Lease, NextAttempt } from './claims.sql.ts';
import { completeAttempt, releaseLease, selectInterrupted } from './claims.sql.ts';
import { selectDueInMs } from './dueEndpoints.sql.ts';
import type { SendResult, WebhookRequest } from './sendWebhook.ts';

/** Deliveries sent, and time taken, before other endpoints get the slot. */
const MAX_DELIVERIES = 25;
const MAX_MS = 2_000;
/** A process that stalled between counting an attempt and sending it does not send: its lease may have run out. */
const SEND_WITHIN_MS = 10_000;
/** No byte of a request leaves later than this after its attempt was asked for. Leases last at least 25 s from there. */
const SENT_BY_MS = 20_000;
/** When another pod has the lease, the endpoint is checked again after this time. */
const BUSY_RETRY_MS = 100;
/** How often, and at which intervals, a known result is written again while Postgres is away: 10 s of a 30 s lease. */
const WRITE_TRIES = 20;
const WRITE_PAUSE_MS = 500;

export interface DeliverPorts {
  readonly sql: Sql;
  /** Runs a claim (see claimInBatches). */
  readonly claim: (claim: Claim) => Promise<Claimed | undefined>;
  readonly clock: Clock;
  readonly secretsKey: KeyObject;
  readonly allowNets: CidrSet;
  readonly minuteMs: number;
  /** Null: nothing is traced. */
  readonly traces: Pick<Traces, 'ofAttempt'> | null;
  readonly send: (request: WebhookRequest) => Promise<SendResult>;
  /** Called for every attempt that ended. `fenced`: the result came too late to be written. */
  readonly onAttempt: (outcome: AttemptOutcome | 'fenced', durationMs: number | null) => void;
  /** False when other endpoints need the slot: this call begins no further attempt. */
  readonly hasSlot: () => boolean;
  /** True when the pod is about to stop: this call begins no further attempt. */
  readonly isStopping: () => boolean;
}

/**
 * Sends what is due to one endpoint: leases it, writes the end of interrupted attempts, sends due deliveries one at a
 * time, and gives the lease back. Returns in how many milliseconds to call again; null: not before something new is
 * queued.
 */
export async function deliverEndpoint(ports: DeliverPorts, webhookId: number): Promise<number | null> {
  const { sql } = ports;
  const startedAtMs = performance.now();
  if (ports.isStopping()) return 0;
  const claimed = await ports.claim({ webhookId, lease: null, ended: null, mayStart: true });
  if (claimed === undefined) {
    // Another pod has the lease, or the endpoint is gone and nothing is due.
    const dueInMs = await selectDueInMs(sql, webhookId);
    return dueInMs === null ? null : Math.max(dueInMs, BUSY_RETRY_MS);
  }
  const { lease } = claimed;
  let span: Span | null = null;
  try {
    let askedAtMs = startedAtMs;
    let { next } = claimed;
    if (claimed.hasInterrupted) {
      await completeInterrupted(ports, lease);
      askedAtMs = performance.now();
      next = await claimNext(ports, lease, null, true);
    }
    for (let sent = 1; next.attempt !== null; sent++) {
      // An attempt that may be in flight is left to the next holder of the lease, who is to come at once.
      if (performance.now() - askedAtMs > SEND_WITHIN_MS) return await releaseLease(sql, lease).then(() => 0);
      span = ports.traces?.ofAttempt(next.attempt, askedAtMs) ?? null;
      const ended = await sendAttempt(ports, next.attempt, askedAtMs + SENT_BY_MS, span);
      if (ended.outcome !== 'delivered') span?.fail(ended.record.error ?? ended.outcome);
      span?.step('result', IN_POSTGRES);
      askedAtMs = performance.now();
      const isOver = sent === MAX_DELIVERIES || askedAtMs - startedAtMs > MAX_MS || !ports.hasSlot();
      next = await claimNext(ports, lease, ended, !isOver);
      span?.end();
    }
    return next.dueInMs;
  } catch (error) {
    span?.end();
    await releaseLease(sql, lease);
    throw error;
  }
}

interface Ended extends EndedAttempt {
  readonly outcome: AttemptOutcome;
}

/** Writes the result of the attempt that ended, if there is one, and claims the next. */
async function claimNext(
  ports: DeliverPorts,
  lease: Lease,
  ended: Ended | null,
  mayStart: boolean,
): Promise<NextAttempt> {
  const claim = { webhookId: lease.webhookId, lease, ended, mayStart: mayStart && !ports.isStopping() };
  const claimed = await ports
    .claim(claim)
    .catch((error: unknown) =>
      ended === null ? Promise.reject(error) : completeLater(ports, lease, ended, error),
    );
  if (ended !== null) ports.onAttempt(claimed?.written ? ended.outcome : 'fenced', ended.record.duration_ms);
  return claimed?.next ?? LEFT;
}

/** The lease is lost or given back: another pod has the endpoint, or it is gone. */
const LEFT: NextAttempt = { attempt: null, dueInMs: 0 };

/**
 * Writes a result after Postgres was away. Without that the attempt would count as interrupted, whatever its outcome
 * was. The failed statement may have counted the next attempt all the same, so the endpoint is left to the next holder.
 */
async function completeLater(
  { sql, isStopping }: DeliverPorts,
  lease: Lease,
  ended: Ended,
  firstError: unknown,
): Promise<Pick<Claimed, 'written' | 'next'>> {
  for (let tries = 1, error = firstError; ; tries++) {
    if (!isUnavailable(error) || tries === WRITE_TRIES || isStopping()) throw error;
    await sleep(WRITE_PAUSE_MS);
    try {
      const written = await completeAttempt(sql, { startedUnder: lease }, ended);
      await releaseLease(sql, lease);
      return { written, next: LEFT };
    } catch (again) {
      error = again;
    }
  }
}

/** Signs and sends an attempt, and decides what becomes of its delivery. */
async function sendAttempt(
  { secretsKey, allowNets, clock, send, minuteMs }: DeliverPorts,
  attempt: Attempt,
  sendUntilMs: number,
  span: Span | null,
): Promise<Ended> {
  const { owner, eventId, deliveryId, body, url, sealedPreviousSecret } = attempt;
  const nowMs = clock();
  const ended = (outcome: AttemptOutcome, record: Partial<AttemptRecord>): Ended => ({
    attempt,
    outcome,
    transition: transition(outcome, attempt.budgetUsed, attempt.rule, minuteMs),
    record: { ...UNANSWERED, attempt: attempt.attempt, at: formatIso(nowMs), ...record },
  });
  const secret = open(secretsKey, attempt.sealedSecret);
  if (secret === null) return ended('failed', { error: 'secret_unreadable' });
  const headers = deliveryHeaders({
    endpointId: owner.webhookId,
    eventId,
    deliveryId,
    attempt: attempt.attempt,
    body,
    secret,
    previousSecret: sealedPreviousSecret === null ? null : open(secretsKey, sealedPreviousSecret),
    nowMs,
  });
  const sent = await send({ url, headers, body, owner, allowNets, sendUntilMs, span });
  switch (sent.kind) {
    case 'answered': {
      const { statusCode, durationMs, answer } = sent;
      const outcome = outcomeOfStatus(statusCode);
      return ended(outcome, {
        status_code: statusCode,
        error: outcome === 'delivered' ? null : `http_${statusCode}`,
        duration_ms: durationMs,
        answer,
      });
    }
    case 'failed':
      return ended('failed', { error: sent.error, duration_ms: sent.durationMs });
    case 'unsafe':
      return ended('unsafe', { error: 'url_unsafe' });
    case 'unsent':
      return ended('interrupted', { error: 'interrupted' });
  }
}

const UNANSWERED = { status_code: null, error: null, duration_ms: null, answer: null };

/** An interrupted attempt counts as failed. Nobody knows whether it arrived, so the delivery is sent again. */
async function completeInterrupted({ sql, minuteMs, onAttempt }: DeliverPorts, lease: Lease): Promise<void> {
  for (const attempt of await selectInterrupted(sql, lease)) {
    const ended = {
      attempt,
      transition: transition('interrupted', attempt.budgetUsed, attempt.rule, minuteMs),
      record: { ...UNANSWERED, attempt: attempt.attempt, at: null, error: 'interrupted' },
    };
    await completeAttempt(sql, { interruptedBefore: lease }, ended);
    onAttempt('interrupted', null);
  }
}

/** Claims of one statement: few enough that none waits for long, enough to be worth the round trip. */
const BATCH_SIZE = 64;
/** Statements that run side by side. Claims that arrive while they run form the next one. */
const STATEMENTS = 2;
/** When a claim is made again that found its rows locked, and until when: a lease has run out by then. */
const LOCKED_RETRY_MS = 20;
const LOCKED_MAX_MS = 30_000;

type ClaimAnswer = Claimed | 'busy' | undefined;

/**
 * The claims of a whole pod. A statement carries what was asked for in one turn of the event loop, or while earlier
 * ones were running. So a claim is made alone and at once when there is little to do, and batches grow with the load.
 *
 * The function that is returned is like claimDeliveries, for one claim. A locked row keeps only this claim waiting, not the
 * rest of its batch. Rejects with DeadlineExceeded when it stays locked.
 *
 * @param run answers all claims, in their order; if it rejects, every claim rejects
 */
export function claimInBatches(
  run: (claims: readonly Claim[]) => Promise<readonly ClaimAnswer[]>,
): (claim: Claim) => Promise<Claimed | undefined> {
  const waiting: ({ claim: Claim } & Omit<PromiseWithResolvers<ClaimAnswer>, 'promise'>)[] = [];
  let running = 0;
  let isScheduled = false;
  const schedule = (): void => {
    if (isScheduled || running >= STATEMENTS || waiting.length === 0) return;
    isScheduled = true;
    setImmediate(() => {
      isScheduled = false;
      void runOne();
    });
  };
  const runOne = async (): Promise<void> => {
    const batch = waiting.splice(0, BATCH_SIZE);
    running++;
    schedule();
    try {
      const answers = await run(batch.map(({ claim }) => claim));
      for (const [n, { resolve }] of batch.entries()) resolve(answers[n]);
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
    running--;
    schedule();
  };
  return async (claim) => {
    for (const startedAtMs = performance.now(); ; await sleep(LOCKED_RETRY_MS)) {
      const { promise, ...settle } = Promise.withResolvers<ClaimAnswer>();
      waiting.push({ claim, ...settle });
      schedule();
      const answer = await promise;
      if (answer !== 'busy') return answer;
      if (performance.now() - startedAtMs > LOCKED_MAX_MS)
        throw new DeadlineExceeded('an endpoint stays locked');
    }
  };
}
