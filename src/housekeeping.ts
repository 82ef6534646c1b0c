import { pruneRevokedKeys } from './access/keys.sql.ts';
import { pruneSessions } from './access/sessions.sql.ts';
import { pruneAnswers } from './areas/createOnce.sql.ts';
import { pruneChanges } from './changelog/changes.sql.ts';
import { selectLongestHistoryDays, selectNowMs } from './changelog/database.sql.ts';
import { forgetDeadPods } from './changelog/pods.sql.ts';
import { pruneRemovals } from './devices/devices.sql.ts';
import {
  advanceEventPartitions,
  deleteOldEvents,
  dropEventPartitions,
  type EventCuts,
} from './events/eventPartitions.sql.ts';
import type { HistoryPacker } from './history/packHistory.ts';
import { pruneLatePoints } from './history/packing.sql.ts';
import { prunePast, trimPastShapes } from './history/past.sql.ts';
import { boxRows } from './history/rowBoxes.sql.ts';
import { pruneTracks } from './history/tracks/tracks.sql.ts';
import { type Clock, DAY_MS, MINUTE_MS, weekStartMs } from './lib/time.ts';
import { DELIVERIES, dropWeeksBefore, ensureWeeks, PACKED_POINTS, POSITIONS } from './postgres/partitions.ts';
import type { Sql } from './postgres/sql.ts';
import { errorFields } from './postgres/sqlErrors.ts';
import { pruneShares } from './shares/shares.sql.ts';
import { pruneLogins } from './tenants/logins.sql.ts';
import { removeWebhooks } from './webhooks/webhooks.sql.ts';

const EVERY_MS = MINUTE_MS;
/** Deliveries, with their bodies, are kept for this long. */
const DELIVERY_RETENTION_DAYS = 90;
/** Chunks of the change log deleted in one round; the rest waits for the next. */
const PRUNE_ROUNDS = 20;

export interface HousekeepingPorts {
  readonly sql: Sql;
  readonly clock: Clock;
  readonly eventRetentionDays: number;
  readonly eventCuts: EventCuts;
  readonly log: { info(fields: object, message: string): void; warn(fields: object, message: string): void };
}

/**
 * Once a minute: the quotas of stays are read again, Postgres is asked for its size and its replicas, old changes leave
 * the log, old weeks the history with what is known of its time, old events their table, dead pods the list, and
 * answers that are too old to be repeated, sessions, shares and windows of logins that are over, and deliveries of
 * endpoints that were deleted. Then points that are rows get their boxes, and those of closed days are packed and
 * drawn. Returns the way to stop.
 */
export function startHousekeeping(
  ports: HousekeepingPorts & {
    readonly readQuotas: () => Promise<unknown>;
    readonly observePostgres: () => Promise<unknown>;
  },
  packer: Pick<HistoryPacker, 'round'>,
  rest: (ms: number) => Promise<unknown>,
): () => Promise<void> {
  let running: Promise<void> | null = null;
  let isStopping = false;
  const keepHouse = async (): Promise<void> => {
    await attempt(ports.readQuotas, ports.log);
    await attempt(ports.observePostgres, ports.log);
    await tidy(ports, () => isStopping);
    await attempt(() => boxRows(ports.sql, rest, () => isStopping), ports.log);
    await attempt(() => packer.round(() => isStopping), ports.log);
  };
  const timer = setInterval(() => {
    running ??= keepHouse().finally(() => {
      running = null;
    });
  }, EVERY_MS);
  return async () => {
    isStopping = true;
    clearInterval(timer);
    await running;
  };
}

/** One round: each task for itself; what fails is logged and tried again with the next. A pod that stops begins no other. */
export async function tidy(
  { sql, clock, log, eventRetentionDays, eventCuts }: HousekeepingPorts,
  isStopping = () => false,
): Promise<void> {
  const tasks = [
    async () => {
      for (let round = 0; round < PRUNE_ROUNDS; round++) if ((await pruneChanges(sql)) === 0) break;
    },
    async () => {
      const oldestMs = await oldestNeededMs(sql, clock());
      const rows = await dropWeeksBefore(sql, POSITIONS, oldestMs);
      const dropped = [...rows, ...(await dropWeeksBefore(sql, PACKED_POINTS, oldestMs))];
      if (dropped.length > 0) log.info({ partitions: dropped }, 'dropped history that no plan retains');
    },
    async () => {
      const oldestMs = await oldestNeededMs(sql, clock());
      for (let round = 0; round < PRUNE_ROUNDS; round++) if ((await pruneTracks(sql, oldestMs)) === 0) break;
    },
    async () => {
      await advanceEventPartitions(sql, eventRetentionDays);
      await eventCuts.refresh(sql);
    },
    async () => {
      const oldestMs = (await earlierNowMs(sql, clock())) - eventRetentionDays * DAY_MS;
      const dropped = await dropEventPartitions(sql, oldestMs);
      if (dropped.length > 0) log.info({ partitions: dropped }, 'dropped events older than the retention');
      for (let round = 0; round < PRUNE_ROUNDS; round++)
        if ((await deleteOldEvents(sql, oldestMs)) === 0) break;
    },
    async () => {
      const nowMs = await selectNowMs(sql);
      await ensureWeeks(sql, DELIVERIES, deliveryWeeks(nowMs));
      await dropWeeksBefore(sql, DELIVERIES, nowMs - DELIVERY_RETENTION_DAYS * DAY_MS);
    },
    async () => {
      const oldestMs = await oldestNeededMs(sql, clock());
      for (let round = 0; round < PRUNE_ROUNDS; round++) if ((await prunePast(sql, oldestMs)) === 0) break;
    },
    () => forgetDeadPods(sql),
    () => pruneAnswers(sql),
    async () => {
      for (let round = 0; round < PRUNE_ROUNDS; round++) if ((await pruneLatePoints(sql)) === 0) break;
    },
    async () => {
      for (let round = 0; round < PRUNE_ROUNDS; round++) if ((await pruneRemovals(sql)) === 0) break;
    },
    async () => {
      for (let round = 0; round < PRUNE_ROUNDS; round++) if ((await trimPastShapes(sql)) === 0) break;
    },
    () => pruneRevokedKeys(sql),
    () => pruneShares(sql),
    () => pruneSessions(sql),
    () => pruneLogins(sql),
    () => removeWebhooks(sql, isStopping),
  ];
  for (const task of tasks) {
    if (isStopping()) return;
    await attempt(task, log);
  }
}

async function attempt(task: () => Promise<unknown>, log: HousekeepingPorts['log']): Promise<void> {
  try {
    await task();
  } catch (error) {
    log.warn(errorFields(error), 'housekeeping failed; trying again in a minute');
  }
}

/** Deliveries are queued into this week or, in a moment, the next. */
export function deliveryWeeks(nowMs: number): number[] {
  return [weekStartMs(nowMs), weekStartMs(nowMs + 7 * DAY_MS)];
}

/** By the earlier of two clocks: a pod whose clock is wrong by years must not drop what everybody has. */
async function earlierNowMs(sql: Sql, nowMs: number): Promise<number> {
  return Math.min(nowMs, await selectNowMs(sql));
}

/** A day more than any plan retains, so that a point that was just young enough still finds its week when it is stored. */
async function oldestNeededMs(sql: Sql, nowMs: number): Promise<number> {
  const longestDays = await selectLongestHistoryDays(sql);
  return (await earlierNowMs(sql, nowMs)) - (longestDays + 1) * DAY_MS;
}
