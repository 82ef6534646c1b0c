import type { KeyObject } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { CidrSet } from '../access/cidrSet.ts';
import type { Clock } from '../base/clock.ts';
import { invariant } from '../base/invariant.ts';
import { open } from '../delivery/secretBox.ts';
import { deliveryHeaders } from '../delivery/signature.ts';
import { type AttemptOutcome, outcomeOfStatus, transition } from '../delivery/transition.ts';
import type { SendResult, WebhookRequest } from '../net/sendWebhook.ts';
import { selectDueInMs } from '../store/dueLanes.ts';
import type { LaneStep, MovedLane } from '../store/laneSteps.ts';
import {
  type Attempt,
  type AttemptResult,
  abandonLane,
  type EndedAttempt,
  type Lease,
  selectCutOff,
  settleAttempt,
} from '../store/lanes.ts';
import { isUnavailable, type Sql } from '../store/sql.ts';
import type { LaneDesk } from './laneDesk.ts';

/** Deliveries sent, and time spent, before other endpoints get their turn. */
const TURN_DELIVERIES = 25;
const TURN_MS = 2_000;
/** A process that slept between counting an attempt and sending it does not send: the lease may be another's. */
const SEND_WITHIN_MS = 10_000;
/** Somebody else has the lane: look again after this. */
const BUSY_RETRY_MS = 100;
/** A known result is written again and again while Postgres is away, well within the lease. */
const SETTLE_TRIES = 20;
const SETTLE_PAUSE_MS = 500;

export interface LanePorts {
  readonly sql: Sql;
  readonly desk: Pick<LaneDesk, 'open' | 'advance'>;
  readonly clock: Clock;
  readonly secretsKey: KeyObject;
  readonly allowNets: CidrSet;
  readonly minuteMs: number;
  readonly send: (request: WebhookRequest) => Promise<SendResult>;
  /** Told of every attempt that ended, and of results that came too late to be written. */
  readonly onAttempt: (outcome: AttemptOutcome | 'fenced', durationMs: number | null) => void;
  /** False when others are to have their turn: no further attempt is begun in this one. */
  readonly hasPlace: () => boolean;
  /** True when the pod is about to stop: no further attempt is begun. */
  readonly isStopping: () => boolean;
}

/**
 * One turn of an endpoint's lane: leases it, speaks for attempts that died with another process, sends what is due,
 * one at a time, and gives the lease back. Returns in how many milliseconds to come again; null: not before something
 * new is queued.
 */
export async function deliverLane(ports: LanePorts, webhookId: number): Promise<number | null> {
  const startedAtMs = performance.now();
  if (ports.isStopping()) return 0;
  const opened = await ports.desk.open(webhookId);
  if (opened === undefined) return afterRefusedLease(ports.sql, webhookId);
  const { lease } = opened;
  try {
    let askedAtMs = startedAtMs;
    let { step } = opened;
    if (opened.hasCutOff) {
      await settleCutOff(ports, lease);
      askedAtMs = performance.now();
      ({ step } = await ports.desk.advance({ lease, ended: null, mayStart: true }));
    }
    for (let sent = 1; step.attempt !== null; sent++) {
      if (performance.now() - askedAtMs > SEND_WITHIN_MS) return await giveUpLane(ports.sql, lease);
      const ended = await deliver(ports, lease, step.attempt);
      askedAtMs = performance.now();
      const isTurnOver = sent === TURN_DELIVERIES || askedAtMs - startedAtMs > TURN_MS || !ports.hasPlace();
      step = await end(ports, lease, ended, !isTurnOver);
    }
    return step.dueInMs;
  } catch (error) {
    await abandonLane(ports.sql, lease);
    throw error;
  }
}

/** Leaves an attempt that was counted to the next holder of the lane, who is to come at once. */
async function giveUpLane(sql: Sql, lease: Lease): Promise<number> {
  await abandonLane(sql, lease);
  return 0;
}

/** Another pod has the lane, or the endpoint is gone: then nothing of it is due. */
async function afterRefusedLease(sql: Sql, webhookId: number): Promise<number | null> {
  const dueInMs = await selectDueInMs(sql, webhookId);
  return dueInMs === null ? null : Math.max(dueInMs, BUSY_RETRY_MS);
}

interface Ended extends EndedAttempt {
  readonly outcome: AttemptOutcome;
}

async function deliver(ports: LanePorts, lease: Lease, attempt: Attempt): Promise<Ended> {
  const { outcome, result } = await sendAttempt(ports, lease, attempt);
  const next = transition(
    attempt.status,
    { kind: 'attempt', outcome, attemptsSpent: attempt.spent },
    attempt.rule,
    ports.minuteMs,
  );
  invariant(next !== null, 'only deliveries that may be attempted are started');
  return { attempt, outcome, next, result };
}

/** Writes what came of an attempt, and takes the next. */
async function end(ports: LanePorts, lease: Lease, ended: Ended, isTurn: boolean): Promise<LaneStep> {
  const move = { lease, ended, mayStart: isTurn && !ports.isStopping() };
  const { written, step } = await ports.desk
    .advance(move)
    .catch((error: unknown) => endLater(ports, lease, ended, error));
  ports.onAttempt(written ? ended.outcome : 'fenced', ended.result.durationMs);
  return step;
}

/**
 * What came of an attempt is not given up for a passing loss of Postgres: it would count as cut off, whatever it was.
 * The next attempt may have been counted all the same, so the lane is left to be looked through.
 */
async function endLater(
  { sql, isStopping }: LanePorts,
  lease: Lease,
  ended: Ended,
  error: unknown,
): Promise<MovedLane> {
  for (let tries = 1, failure = error; ; tries++) {
    if (!isUnavailable(failure) || tries === SETTLE_TRIES || isStopping()) throw failure;
    await sleep(SETTLE_PAUSE_MS);
    try {
      const written = await settleAttempt(sql, { startedUnder: lease }, ended);
      return { written, step: { attempt: null, dueInMs: await giveUpLane(sql, lease) } };
    } catch (again) {
      failure = again;
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
  for (const attempt of await selectCutOff(sql, lease)) {
    const { status, spent, rule } = attempt;
    const next = transition(
      status,
      { kind: 'attempt', outcome: 'cut_off', attemptsSpent: spent },
      rule,
      minuteMs,
    );
    invariant(next !== null, 'an attempt was in flight, so it had been allowed');
    const result = { statusCode: null, error: 'interrupted', durationMs: null };
    await settleAttempt(sql, { cutOffBefore: lease }, { attempt, next, result });
    onAttempt('cut_off', null);
  }
}
