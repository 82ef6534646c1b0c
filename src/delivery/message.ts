import { createHash, randomBytes } from 'node:crypto';
import { formatIso } from '../base/isoTime.ts';
import type { WebhookType } from './webhookTypes.ts';

const ID_HEX_CHARS = 32;
/** Of a delivery id, its last; 96 random bits stand before them. */
export const ORDINAL_HEX_CHARS = 8;

/** A fleet event with what webhooks say beyond it. */
export interface FleetEventMessage {
  /** The webhook event id, not the one of the fleet event. */
  readonly id: string;
  readonly type: WebhookType;
  readonly createdAtMs: number;
  readonly fleetEventId: number;
  readonly occurredAtMs: number;
  readonly device: { readonly imei: string; readonly name: string | null; readonly plate: string | null };
  /** `data` of the fleet event on the wire, in the keys of v3. */
  readonly data: Readonly<Record<string, unknown>>;
}

/**
 * The body of a fleet event's deliveries: JSON text, made once and then sent, signed and stored as it is. Key order
 * is fixed; lone surrogates are escaped (well-formed JSON.stringify), so the text survives UTF-8 unchanged.
 */
export function fleetEventBody(message: FleetEventMessage): string {
  const { id, type, createdAtMs, fleetEventId, occurredAtMs, device, data } = message;
  return body(id, type, createdAtMs, {
    ...data,
    fleet_event_id: fleetEventId,
    device: { imei: device.imei, name: device.name, plate: device.plate },
    occurred_at: formatIso(occurredAtMs),
  });
}

/** The body of the synthetic event that the test route sends. */
export function pingBody(id: string, webhookId: number, createdAtMs: number): string {
  return body(id, 'ping', createdAtMs, {
    message: 'This is a test delivery of your webhook endpoint.',
    webhook_id: webhookId,
  });
}

/** The webhook event id of a fleet event: the same every time, different between installations. */
export function fleetEventWebhookId(instanceId: string, fleetEventId: number): string {
  const hash = createHash('sha256').update(`${instanceId}:${fleetEventId}`).digest('hex');
  return `evt_${hash.slice(0, ID_HEX_CHARS)}`;
}

/** A fresh event id, for an event that is no fleet event. */
export function newEventId(): string {
  return `evt_${randomHex()}`;
}

/** Fresh delivery ids that rise: those of one transaction carry one time, and lists show them in this order. */
export function newDeliveryIds(count: number): string[] {
  const common = randomHex().slice(ORDINAL_HEX_CHARS);
  return Array.from(
    { length: count },
    (_, n) => `dlv_${common}${n.toString(16).padStart(ORDINAL_HEX_CHARS, '0')}`,
  );
}

export function isDeliveryId(text: string): boolean {
  return DELIVERY_ID.test(text);
}

export const DELIVERY_ID = /^dlv_[0-9a-f]{32}$/;

function body(id: string, type: WebhookType, createdAtMs: number, data: object): string {
  return JSON.stringify({ id, type, created_at: formatIso(createdAtMs), data });
}

function randomHex(): string {
  return randomBytes(ID_HEX_CHARS / 2).toString('hex');
}
