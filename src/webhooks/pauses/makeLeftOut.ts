import { setTimeout as sleep } from 'node:timers/promises';
import type { Fleet } from '../../devices/fleet.memory.ts';
import { invariant } from '../../lib/invariant.ts';
import type { Tx } from '../../postgres/sql.ts';
import { errorFields } from '../../postgres/sqlErrors.ts';
import { insertDeliveries } from '../deliveries.sql.ts';
import { fleetEventBody, fleetEventWebhookId, newDeliveryIds, webhookTypeOf } from '../message.ts';
import { matches } from '../subscriptions.memory.ts';
import { type BacklogPorts, logPauses } from './backlogWatch.ts';
import {
  advanceLeftOut,
  deleteLeftOut,
  type LeftOutEvent,
  type LeftOutRange,
  lockNextLeftOut,
  selectDelivered,
  selectEventScopes,
  selectLeftOutEvents,
} from './leftOut.sql.ts';
import { countPaused, countWaitingOf, pauseWebhooks, selectDeadWebhooks } from './pauses.sql.ts';

const POLL_MS = 5_000;
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
export class LeftOutDeliveries {
  readonly #ports: LeftOutPorts;
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> | null = null;
  #isStopping = false;
  #isFailing = false;

  constructor(ports: LeftOutPorts) {
    this.#ports = ports;
  }

  start(): void {
    this.#timer = setInterval(() => this.#wake(), POLL_MS);
    this.#wake();
  }

  async stop(): Promise<void> {
    this.#isStopping = true;
    clearInterval(this.#timer);
    await this.#running;
  }

  #wake(): void {
    this.#running ??= this.#run().finally(() => {
      this.#running = null;
    });
  }

  /** Never rejects. After an error the next poll tries again. */
  async #run(): Promise<void> {
    const { sql, log, onPaused } = this.#ports;
    try {
      await pauseDead(this.#ports);
      onPaused(await countPaused(sql));
      while (!this.#isStopping && (await this.#round()));
      this.#isFailing = false;
    } catch (error) {
      if (!this.#isFailing) log.warn(errorFields(error), 'deliveries that were left out cannot be made');
      this.#isFailing = true;
    }
  }

  /** A chunk for each endpoint. False when none was made. */
  async #round(): Promise<boolean> {
    let hasMade = false;
    for (let afterId = 0; !this.#isStopping; ) {
      const startedAtMs = performance.now();
      const chunk = await makeLeftOut(this.#ports, afterId);
      if (chunk === null) break;
      afterId = chunk.webhookId;
      hasMade ||= chunk.events > 0;
      if (chunk.made > 0) this.#ports.onQueued(new Map([[chunk.webhookId, chunk.made]]));
      // Leaves Postgres to points and callers for as long.
      await sleep(performance.now() - startedAtMs);
    }
    return hasMade;
  }
}

async function pauseDead({ sql, log }: BacklogPorts): Promise<void> {
  for (const { webhookId, ...owner } of await selectDeadWebhooks(sql)) {
    logPauses(log, await pauseWebhooks(sql, owner, [{ webhookId, reason: 'failing' }]));
  }
}

/** The result of one chunk: how many events were read, and how many deliveries were made of them. */
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
    const { webhookId } = range;
    if ((await countWaitingOf(tx, webhookId, WAITING_MAX)) >= WAITING_MAX) {
      return { webhookId, events: 0, made: 0 };
    }
    const { events, isLast } = await selectLeftOutEvents(tx, range);
    const made = await makeDeliveries(tx, ports, range, events);
    if (made === null) return { webhookId, events: 0, made: 0 };
    const last = events.at(-1);
    if (isLast) await deleteLeftOut(tx, webhookId);
    else if (last !== undefined) await advanceLeftOut(tx, webhookId, last);
    return { webhookId, events: events.length, made };
  });
}

/** How many deliveries were made; null when the endpoint was paused or deactivated in the meantime. */
async function makeDeliveries(
  tx: Tx,
  { fleet }: Pick<LeftOutPorts, 'fleet'>,
  range: LeftOutRange,
  events: readonly LeftOutEvent[],
): Promise<number | null> {
  const { webhookId, events: wanted } = range;
  const scopes = await selectEventScopes(tx, range);
  const drafts = events.flatMap((event) => {
    const type = webhookTypeOf(event.type, event.direction);
    // It may have got one before ids were made from something else, and its receiver would not know it again.
    const eventIds = scopes.map((scope) => fleetEventWebhookId(scope, event.id));
    return matches(wanted, type) ? [{ event, type, eventIds }] : [];
  });
  const delivered = await selectDelivered(
    tx,
    webhookId,
    drafts.flatMap(({ eventIds }) => eventIds),
  );
  const missing = drafts.filter(({ eventIds }) => !eventIds.some((id) => delivered.has(id)));
  const ids = newDeliveryIds(missing.length);
  const deliveries = missing.map(({ event, type, eventIds: [eventId] }, n) => {
    invariant(eventId, 'the start of the server is written down');
    const device = fleet.anyDevice(event.imei)?.fields;
    const body = fleetEventBody({
      id: eventId,
      type,
      createdAtMs: event.recordedAtMs,
      fleetEventId: event.id,
      occurredAtMs: event.occurredAtMs,
      device: { imei: event.imei, name: device?.name ?? null, plate: device?.plate ?? null },
      data: event.data,
    });
    return { id: ids[n] as string, webhookId, eventId, eventType: type, body };
  });
  const made = await insertDeliveries(tx, deliveries, 'left_out');
  return made.length === deliveries.length ? made.length : null;
}
