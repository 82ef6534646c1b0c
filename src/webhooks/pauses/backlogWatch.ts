import { setTimeout as sleep } from 'node:timers/promises';
import { RepeatedWork } from '../../lib/repeatedWork.ts';
import type { Sql } from '../../postgres/sql.ts';
import { errorFields } from '../../postgres/sqlErrors.ts';
import { ENDPOINT_LIMITS } from '../endpoint.ts';
import type { Backlog, Pause, QuotaOwner } from './pauses.sql.ts';
import { countBacklogs, pauseWebhooks, selectQuotaOwners } from './pauses.sql.ts';

/** The pause after a count is this many times as long as the count, so that counting takes a tenth of a connection. */
const REST_FACTOR = 9;

export interface BacklogPorts {
  readonly sql: Sql;
  readonly log: { info(fields: object, message: string): void; warn(fields: object, message: string): void };
}

/**
 * Pauses endpoints when more deliveries wait than their account may have. A pod counts what waits for an account when it
 * has made a thousand deliveries of one of its endpoints (DeliveryWaker), outside the transactions of points. So the quota
 * may be exceeded by a thousand deliveries of each endpoint and pod, and by what is made in ten times the length of a
 * count.
 */
export class BacklogWatch {
  readonly #ports: BacklogPorts;
  #crowded = new Set<number>();
  readonly #counts: RepeatedWork;

  constructor(ports: BacklogPorts) {
    this.#ports = ports;
    this.#counts = new RepeatedWork(
      (stopped) => this.#countAll(stopped),
      (error) => ports.log.warn(errorFields(error), 'waiting deliveries cannot be counted'),
    );
  }

  /** Counts what waits for the accounts of these endpoints. */
  count(webhookIds: readonly number[]): void {
    for (const webhookId of webhookIds) this.#crowded.add(webhookId);
    this.#counts.wake();
  }

  stop(): Promise<void> {
    return this.#counts.stop();
  }

  /** What could not be counted is counted after another thousand deliveries. */
  async #countAll(stopped: AbortSignal): Promise<void> {
    const { sql, log } = this.#ports;
    const webhookIds = [...this.#crowded];
    this.#crowded = new Set();
    for (const owner of await selectQuotaOwners(sql, webhookIds)) {
      const startedAtMs = performance.now();
      const pauses = pausesOf(owner, await countBacklogs(sql, owner));
      if (pauses.length > 0) logPauses(log, await pauseWebhooks(sql, owner, pauses));
      const restMs = REST_FACTOR * (performance.now() - startedAtMs);
      await sleep(restMs, undefined, { signal: stopped }).catch(() => undefined); // stopped
      if (stopped.aborted) return;
    }
  }
}

/** Says in the log which endpoints were paused. */
export function logPauses(log: Pick<BacklogPorts['log'], 'warn'>, pauses: readonly Pause[]): void {
  for (const { webhookId, reason } of pauses)
    log.warn({ webhook_id: webhookId, reason }, 'a webhook was paused');
}

/**
 * Which endpoints of an account are to be paused. When the account has too many waiting, these are the endpoints with more
 * than the hundredth part of its quota: an account has at most a hundred endpoints, so the others cannot exceed it together.
 */
export function pausesOf(
  quota: Pick<QuotaOwner, 'perAccount' | 'perEndpoint'>,
  backlogs: readonly Backlog[],
): Pause[] {
  const all = backlogs.reduce((sum, { waiting }) => sum + waiting, 0);
  const share = quota.perAccount / ENDPOINT_LIMITS.perOwner;
  return backlogs.flatMap(
    ({ id: webhookId, is_paused: isPaused, waiting, to_be_made: toBeMade }): Pause[] => {
      if (isPaused) return [];
      if (Math.max(waiting, toBeMade) > quota.perEndpoint) return [{ webhookId, reason: 'endpoint_quota' }];
      return all > quota.perAccount && waiting > share ? [{ webhookId, reason: 'account_quota' }] : [];
    },
  );
}
