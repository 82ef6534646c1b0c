import { setTimeout as sleep } from 'node:timers/promises';
import type { Fleet } from '../../devices/fleet.memory.ts';
import { invariant } from '../../lib/errors.ts';
import { RepeatedWork } from '../../lib/repeatedWork.ts';
import type { Tx } from '../../postgres/sql.ts';
import { errorFields } from '../../postgres/sqlErrors.ts';
import { insertDeliveries, type NewDelivery } from '../delivery/claims.sql.ts';
import { fleetEventBody, fleetEventWebhookId, matches, webhookTypeOf } from '../delivery.ts';
import { type BacklogPorts, logPauses } from './backlogWatch.ts';
import {
  advanceLeftOut,
  type LeftOutEvent,
  type LeftOutRange,
  lockNextLeftOut,
  selectDelivered,
  selectEventScopes,
  selectLeftOutEvents,
} from './leftOut.sql.ts';
import { countPaused, countWaitingOf, pauseWebhooks, selectDeadWebhooks } from './pauses.sql.ts';

export const LEFT_OUT_POLL_MS = 5_000;
/** Deliveries are made while fewer than this many wait for the endpoint: half of what each of a hundred may have. */
const WAITING_MAX = 5_000;

export interface LeftOutPorts extends BacklogPorts {
  readonly fleet: Fleet;
  /** Called after each chunk with what was made, by endpoint. */
  readonly onQueued: (made: ReadonlyMap<number, number>) => void;
  readonly onPaused: (webhooks: number) => void;
}

/**
 * Pauses endpoints that are dead, and makes the deliveries that were left out while an endpoint was paused: a chunk of each
 * endpoint in turn, as long as few of its deliveries wait. Any number of pods may do so at once.
 */
export function leftOutWork(ports: LeftOutPorts): RepeatedWork {
  const { sql, log, onPaused, onQueued } = ports;
  const run = async (stopped: AbortSignal): Promise<void> => {
    for (const { webhookId, ...owner } of await selectDeadWebhooks(sql))
      logPauses(log, await pauseWebhooks(sql, owner, [{ webhookId, reason: 'failing' }]));
    onPaused(await countPaused(sql));
    for (let afterId = 0, hasMade = false; !stopped.aborted; ) {
      const startedAtMs = performance.now();
      const chunk = await makeLeftOut(ports, afterId);
      if (chunk === null && !hasMade) return;
      // After the last endpoint another round begins, unless this one has made nothing.
      hasMade = chunk !== null && (hasMade || chunk.events > 0);
      afterId = chunk?.webhookId ?? 0;
      if (chunk !== null && chunk.made > 0) onQueued(new Map([[chunk.webhookId, chunk.made]]));
      // Leaves Postgres to points and callers for as long.
      await sleep(performance.now() - startedAtMs);
    }
  };
  return new RepeatedWork(run, (error) =>
    log.warn(errorFields(error), 'deliveries that were left out cannot be made'),
  );
}

/** One chunk: how many events were read, and how many deliveries were made of them. */
interface Chunk {
  readonly webhookId: number;
  readonly events: number;
  readonly made: number;
}

/** Makes a chunk for the next endpoint after this one; null when no endpoint is left. */
export function makeLeftOut(ports: LeftOutPorts, afterWebhookId: number): Promise<Chunk | null> {
  return ports.sql.begin(async (tx) => {
    const range = await lockNextLeftOut(tx, afterWebhookId);
    if (range === undefined) return null;
    const { webhook_id: webhookId } = range;
    const nothing = { webhookId, events: 0, made: 0 };
    if ((await countWaitingOf(tx, webhookId, WAITING_MAX)) >= WAITING_MAX) return nothing;
    const { events, isLast } = await selectLeftOutEvents(tx, range);
    const deliveries = await missingDeliveries(tx, ports.fleet, range, events);
    const { length: made } = await insertDeliveries(tx, deliveries, 'left_out');
    // Otherwise the endpoint was paused or deactivated in the meantime.
    if (made < deliveries.length) return nothing;
    const last = events.at(-1);
    if (isLast) await advanceLeftOut(tx, webhookId, null);
    else if (last !== undefined) await advanceLeftOut(tx, webhookId, last);
    return { webhookId, events: events.length, made };
  });
}

/** Deliveries of those of these events that the endpoint receives and has none of. */
async function missingDeliveries(
  tx: Tx,
  fleet: Fleet,
  range: LeftOutRange,
  events: readonly LeftOutEvent[],
): Promise<NewDelivery[]> {
  const { webhook_id: webhookId, events: wanted } = range;
  const scopes = await selectEventScopes(tx, range);
  const drafts = events.flatMap((event) => {
    const type = webhookTypeOf(event.type, event.direction);
    // It may have got one before ids were made from something else, and its receiver would not know it again.
    const eventIds = scopes.map((scope) => fleetEventWebhookId(scope, event.id));
    return matches(wanted, type) ? [{ event, type, eventIds }] : [];
  });
  const all = drafts.flatMap(({ eventIds }) => eventIds);
  const delivered = await selectDelivered(tx, webhookId, all);
  const missing = drafts.filter(({ eventIds }) => !eventIds.some((id) => delivered.has(id)));
  return missing.map(({ event, type, eventIds: [eventId] }) => {
    invariant(eventId, 'the start of the server is written down');
    const { device_imei: imei } = event;
    const device = fleet.anyDevice(imei)?.fields;
    const body = fleetEventBody({
      id: eventId,
      type,
      createdAtMs: event.recorded_at.getTime(),
      fleetEventId: event.id,
      occurredAtMs: event.occurred_at.getTime(),
      device: { imei, name: device?.name ?? null, plate: device?.plate ?? null },
      data: event.data,
    });
    return { webhookId, eventId, eventType: type, body };
  });
}
