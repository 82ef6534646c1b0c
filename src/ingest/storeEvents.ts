import { insertFleetEvents, type NewFleetEvent } from '../events/fleetEvents.sql.ts';
import type { Tx } from '../postgres/sql.ts';
import { type OutboxPorts, queueDeliveries } from './queueDeliveries.ts';

/** Events that are made, written as JSON and sent to Postgres in one go: some three milliseconds of work. */
const SLICE_EVENTS = 250;
/** Deliveries that a transaction makes itself, for they are sent the sooner; more than that come after its commit. */
const AT_ONCE_MAX = 500;

export interface StoredEvents {
  readonly count: number;
  /** How many deliveries were made at once, by webhook endpoint. */
  readonly queuedFor: ReadonlyMap<number, number>;
  /** True when deliveries wait in the outbox to be made. */
  readonly isOutboxFilled: boolean;
}

/**
 * Stores events with what their receivers get of them, in the transaction of their points and in the order given. A
 * point may lie in thousands of areas: others have their turn between two slices.
 */
export async function storeEvents(
  tx: Tx,
  ports: OutboxPorts,
  events: Iterator<NewFleetEvent, void>,
  nowMs: number,
): Promise<StoredEvents> {
  const queuedFor = new Map<number, number>();
  let count = 0;
  let atOnce = AT_ONCE_MAX;
  let isOutboxFilled = false;
  for (;;) {
    const slice = take(events, SLICE_EVENTS);
    if (slice.length === 0) return { count, queuedFor, isOutboxFilled };
    const ids = await insertFleetEvents(tx, slice);
    const queued = await queueDeliveries(tx, ports, slice, ids, nowMs, atOnce);
    for (const [webhookId, made] of queued.made) {
      queuedFor.set(webhookId, (queuedFor.get(webhookId) ?? 0) + made);
      atOnce -= made;
    }
    isOutboxFilled ||= queued.isOutboxFilled;
    count += slice.length;
  }
}

function take<T>(items: Iterator<T, void>, count: number): T[] {
  const taken: T[] = [];
  while (taken.length < count) {
    const next = items.next();
    if (next.done === true) break;
    taken.push(next.value);
  }
  return taken;
}
