import { type Delivery, insertDeliveries, lockDelivery, requeueDelivery } from './deliveries.sql.ts';
import { transition } from './delivery/transition.ts';
import { newDeliveryIds, newEventId, pingBody } from './message.ts';
import type { WebhookOwner, WebhookWritePorts } from './saveWebhook.ts';
import { selectWebhook } from './webhooks.sql.ts';

type Ports = Pick<WebhookWritePorts, 'write' | 'wake'>;

/**
 * Queues an ordinary delivery of type ping to this endpoint only, also while it is inactive. Undefined when the owner
 * has no such endpoint.
 */
export async function requestPing(
  { write: { sql }, wake }: Ports,
  owner: WebhookOwner,
  webhookId: number,
  nowMs: number,
): Promise<Delivery | undefined> {
  if ((await selectWebhook(sql, owner.accountId, webhookId)) === undefined) return undefined;
  const eventId = newEventId();
  const body = pingBody(eventId, webhookId, nowMs);
  const [deliveryId = ''] = newDeliveryIds(1);
  const ping = { id: deliveryId, webhookId, eventId, eventType: 'ping' as const, body };
  const [delivery] = await sql.begin((tx) => insertDeliveries(tx, [ping], 'test'));
  if (delivery !== undefined) wake([webhookId]);
  return delivery;
}

/**
 * Queues a failed or exhausted delivery once more, with all of its retries. Undefined when the owner has no such
 * delivery; 'not_replayable' in every other state, and while an attempt is in flight.
 */
export async function replayDelivery(
  { write: { sql }, wake }: Ports,
  owner: WebhookOwner,
  deliveryId: string,
): Promise<Delivery | 'not_replayable' | undefined> {
  const outcome = await sql.begin(async (tx) => {
    const locked = await lockDelivery(tx, owner.accountId, deliveryId);
    if (locked === undefined) return undefined;
    const { delivery, inFlight } = locked;
    const next = transition(delivery.status, { kind: 'replay', inFlight }, NO_RETRY, 0);
    return next === null ? 'not_replayable' : requeueDelivery(tx, deliveryId);
  });
  if (typeof outcome === 'object') wake([outcome.webhookId]);
  return outcome;
}

/** A replay starts at once, whatever the retry rule of the endpoint. */
const NO_RETRY = { policy: 'none', maxRetries: 1 } as const;
