import { setTimeout as sleep } from 'node:timers/promises';
import type { CidrSet } from '../access/cidrSet.ts';
import type { Clock } from '../base/clock.ts';
import { invariant } from '../base/invariant.ts';
import { open } from '../delivery/secretBox.ts';
import { deliveryHeaders } from '../delivery/signature.ts';
import { type AttemptOutcome, outcomeOfStatus, type Transition, transition } from '../delivery/transition.ts';
import type { SendResult, WebhookRequest } from '../net/sendWebhook.ts';
import {
  type Attempt,
  type AttemptResult,
  abandonLane,
  claimLane,
  type Lease,
  releaseLane,
  selectCutOff,
  selectDueInMs,
  settleAttempt,
  startAttempt,
} from '../store/lanes.ts';
import { isUnavailable, type Sql } from '../store/sql.ts';

/** Deliveries sent before other endpoints get their turn. */
const TURN_DELIVERIES = 25;
/** A process that slept between counting an attempt and sending it does not send: the lease may be another's. */
const SEND_WITHIN_MS = 10_000;
/** Somebody else has the lane: look again after this. */
const BUSY_RETRY_MS = 250;
/** A known result is written again and again while Postgres is away, well within the lease. */
const SETTLE_TRIES = 20;
const SETTLE_PAUSE_MS = 500;

export interface LanePorts {
  readonly sql: Sql;
  readonly clock: Clock;
  readonly secretsKey: Buffer;
  readonly allowNets: CidrSet;
  readonly minuteMs: number;
  readonly send: (request: WebhookRequest) => Promise<SendResult>;
  /** Told of every attempt that ended, and of results that came too late to be written. */
  readonly onAttempt: (outcome: AttemptOutcome | 'fenced', durationMs: number | null) => void;
  /** True when the pod is about to stop: no further attempt is begun. */
  readonly isStopping: () => boolean;
}

/**
 * One turn of an endpoint's lane: leases it, speaks for attempts that died with another process, sends what is due,
 * one at a time, and gives the lease back. Returns in how many milliseconds to come again; null: not before something
 * new is queued.
 */
export async function deliverLane(ports: LanePorts, webhookId: number): Promise<number | null> {
  const lease = await claimLane(ports.sql, webhookId);
  if (lease === undefined) return afterRefusedLease(ports.sql, webhookId);
  try {
    await settleCutOff(ports, lease);
    for (let turn = 0; turn < TURN_DELIVERIES && !ports.isStopping(); turn++) {
      const startedAtMs = performance.now();
      const attempt = await startAttempt(ports.sql, lease);
      if (attempt === undefined) break;
      if (performance.now() - startedAtMs > SEND_WITHIN_MS) break;
      await deliver(ports, lease, attempt);
    }
  } catch (error) {
    await abandonLane(ports.sql, lease);
    throw error;
  }
  await releaseLane(ports.sql, lease);
  return selectDueInMs(ports.sql, webhookId);
}

/** Another pod has the lane, or the endpoint is gone: then nothing of it is due. */
async function afterRefusedLease(sql: Sql, webhookId: number): Promise<number | null> {
  const dueInMs = await selectDueInMs(sql, webhookId);
  return dueInMs === null ? null : Math.max(dueInMs, BUSY_RETRY_MS);
}

async function deliver(ports: LanePorts, lease: Lease, attempt: Attempt): Promise<void> {
  const { outcome, result } = await sendAttempt(ports, lease, attempt);
  const next = transition(
    attempt.status,
    { kind: 'attempt', outcome, attemptsSpent: attempt.spent },
    attempt.rule,
    ports.minuteMs,
  );
  invariant(next !== null, 'only deliveries that may be attempted are started');
  const written = await settle(ports, lease, attempt, next, result);
  ports.onAttempt(written ? outcome : 'fenced', result.durationMs);
}

/** What came of an attempt is not given up for a passing loss of Postgres: it would count as cut off, whatever it was. */
async function settle(
  { sql, isStopping }: LanePorts,
  lease: Lease,
  { deliveryId }: Attempt,
  next: Transition,
  result: AttemptResult,
): Promise<boolean> {
  for (let tries = 1; ; tries++) {
    try {
      return await settleAttempt(sql, deliveryId, { startedUnder: lease }, next, result);
    } catch (error) {
      if (!isUnavailable(error) || tries === SETTLE_TRIES || isStopping()) throw error;
      await sleep(SETTLE_PAUSE_MS);
    }
  }
}

async function sendAttempt(
  ports: LanePorts,
  lease: Lease,
  attempt: Attempt,
): Promise<{ outcome: AttemptOutcome; result: AttemptResult }> {
  const secret = open(ports.secretsKey, attempt.sealedSecret);
  if (secret === null) {
    return { outcome: 'failed', result: { statusCode: null, error: 'secret_unreadable', durationMs: null } };
  }
  const { sealedPreviousSecret } = attempt;
  const headers = deliveryHeaders({
    endpointId: lease.webhookId,
    eventId: attempt.eventId,
    deliveryId: attempt.deliveryId,
    attempt: attempt.attempt,
    body: attempt.body,
    secret,
    previousSecret: sealedPreviousSecret === null ? null : open(ports.secretsKey, sealedPreviousSecret),
    nowMs: ports.clock(),
  });
  const sent = await ports.send({
    url: attempt.url,
    headers,
    body: attempt.body,
    allowNets: ports.allowNets,
  });
  switch (sent.kind) {
    case 'answered': {
      const outcome = outcomeOfStatus(sent.statusCode);
      const error = outcome === 'delivered' ? null : `http_${sent.statusCode}`;
      return { outcome, result: { statusCode: sent.statusCode, error, durationMs: sent.durationMs } };
    }
    case 'failed':
      return {
        outcome: 'failed',
        result: { statusCode: null, error: sent.error, durationMs: sent.durationMs },
      };
    case 'unsafe':
      return { outcome: 'unsafe', result: { statusCode: null, error: 'url_unsafe', durationMs: null } };
  }
}

/** An attempt whose process died counts as failed; whether it arrived nobody knows, so it is sent again. */
async function settleCutOff({ sql, minuteMs, onAttempt }: LanePorts, lease: Lease): Promise<void> {
  for (const { deliveryId, status, spent, rule } of await selectCutOff(sql, lease)) {
    const next = transition(
      status,
      { kind: 'attempt', outcome: 'cut_off', attemptsSpent: spent },
      rule,
      minuteMs,
    );
    invariant(next !== null, 'an attempt was in flight, so it had been allowed');
    const result = { statusCode: null, error: 'interrupted', durationMs: null };
    await settleAttempt(sql, deliveryId, { cutOffBefore: lease }, next, result);
    onAttempt('cut_off', null);
  }
}
