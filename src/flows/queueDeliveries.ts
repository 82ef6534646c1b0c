import { fleetEventBody, fleetEventWebhookId, newDeliveryIds } from '../delivery/message.ts';
import { webhookTypeOf } from '../delivery/webhookTypes.ts';
import { insertDeliveries, type NewDelivery } from '../store/deliveries.ts';
import type { NewFleetEvent } from '../store/fleetEvents.ts';
import type { Tx } from '../store/sql.ts';
import type { Memory } from './applyChanges.ts';

export interface OutboxPorts {
  readonly memory: Pick<Memory, 'fleet' | 'tenancy' | 'subscriptions'>;
  readonly instanceId: string;
}

/**
 * Queues the deliveries of stored events in their transaction: one for each endpoint whose owner may read the event
 * and asked for its type. The body is written once, here. Returns the endpoints that have something new.
 */
export async function queueDeliveries(
  tx: Tx,
  { memory, instanceId }: OutboxPorts,
  events: readonly NewFleetEvent[],
  eventIds: readonly number[],
  nowMs: number,
): Promise<number[]> {
  const { fleet, tenancy, subscriptions } = memory;
  if (subscriptions.size === 0) return [];
  const drafts: Omit<NewDelivery, 'id'>[] = [];
  events.forEach((event, n) => {
    const type = webhookTypeOf(event.type, event.area?.direction ?? null);
    const readers = tenancy.isShared(event.worldId) ? tenancy.watchersOf(event.worldId) : [event.worldId];
    const receivers = subscriptions.receivers(readers, type);
    if (receivers.length === 0) return;
    const fleetEventId = eventIds[n] as number;
    const eventId = fleetEventWebhookId(instanceId, fleetEventId);
    const device = fleet.anyDevice(event.imei)?.fields;
    const body = fleetEventBody({
      id: eventId,
      type,
      createdAtMs: nowMs,
      fleetEventId,
      occurredAtMs: event.occurredAtMs,
      device: { imei: event.imei, name: device?.name ?? null, plate: device?.plate ?? null },
      data: event.data,
    });
    for (const webhookId of receivers) {
      drafts.push({ webhookId, eventId, eventType: type, body });
    }
  });
  const ids = newDeliveryIds(drafts.length);
  const deliveries = drafts.map((draft, n): NewDelivery => ({ id: ids[n] as string, ...draft }));
  const queued = await insertDeliveries(tx, deliveries, false);
  return [...new Set(queued.map((delivery) => delivery.webhookId))];
}
