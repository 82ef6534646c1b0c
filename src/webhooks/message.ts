import { createHash, randomBytes } from 'node:crypto';
import { formatIso } from '../lib/time.ts';

const ID_HEX_CHARS = 32;
/** The last characters of a delivery id are a number. 96 random bits come before it. */
export const ORDINAL_HEX_CHARS = 8;

/** A fleet event with everything else that its webhook message contains. */
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
 * The body of a fleet event's deliveries: JSON text that is made once, then stored, signed and sent unchanged. The order
 * of keys is fixed. JSON.stringify escapes lone surrogates, so the text survives UTF-8 unchanged.
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

/** The body by which the other endpoints of an account are told that the service has paused one. */
export function pauseBody(
  id: string,
  { webhookId, reason }: { readonly webhookId: number; readonly reason: PauseReason },
  pausedAtMs: number,
): string {
  return body(id, 'webhook_paused', pausedAtMs, {
    message: 'This webhook endpoint gets no new deliveries until it is resumed.',
    webhook_id: webhookId,
    reason,
    paused_at: formatIso(pausedAtMs),
  });
}

/**
 * The webhook event id of a fleet event. Another `scope` makes another id: installations have their own, and so has a
 * database since it may give numbers of events again (enter_server).
 */
export function fleetEventWebhookId(scope: string, fleetEventId: number): string {
  const hash = createHash('sha256').update(`${scope}:${fleetEventId}`).digest('hex');
  return `evt_${hash.slice(0, ID_HEX_CHARS)}`;
}

/** A new event id, for an event that is not a fleet event. */
export function newEventId(): string {
  return `evt_${randomHex()}`;
}

/**
 * What the ids of the deliveries of one statement begin with. Their numbers follow, in ORDINAL_HEX_CHARS: deliveries of one
 * transaction have the same time, and lists order them by id.
 */
export function newDeliveryIdStart(): string {
  return `dlv_${randomHex().slice(ORDINAL_HEX_CHARS)}`;
}

export const DELIVERY_ID = /^dlv_[0-9a-f]{32}$/;

function body(id: string, type: WebhookType, createdAtMs: number, data: object): string {
  return JSON.stringify({ id, type, created_at: formatIso(createdAtMs), data });
}

function randomHex(): string {
  return randomBytes(ID_HEX_CHARS / 2).toString('hex');
}

/**
 * Every type of event that a webhook can receive; `webhook_paused` is about another endpoint of the account, and `ping` is
 * sent by the test route only.
 */
export const WEBHOOK_TYPES = [
  'geofence_enter',
  'geofence_exit',
  'ignition_on',
  'ignition_off',
  'parking_start',
  'parking_end',
  'tamper_alert',
  'rfid',
  'alarm',
  'webhook_paused',
  'ping',
] as const;

export type WebhookType = (typeof WEBHOOK_TYPES)[number];

/** Subscribes to every type, present and future. */
export const ALL_TYPES = '*';

/** What an endpoint subscribes to: an element of its `events`. */
export type Subscription = WebhookType | typeof ALL_TYPES;

export function isSubscription(value: unknown): value is Subscription {
  return value === ALL_TYPES || WEBHOOK_TYPES.some((type) => type === value);
}

/** The types of fleet events, which have one type for entry and exit. */
type FleetEventType =
  | Exclude<WebhookType, 'geofence_enter' | 'geofence_exit' | 'webhook_paused' | 'ping'>
  | 'geofence';

/** The type under which webhooks receive a fleet event; `direction` is the one of its area, null without one. */
export function webhookTypeOf(type: FleetEventType, direction: 'entry' | 'exit' | null): WebhookType {
  if (type !== 'geofence') return type;
  return direction === 'exit' ? 'geofence_exit' : 'geofence_enter';
}

/**
 * Why an endpoint gets no new deliveries. `endpoint_quota`: too many of its deliveries wait. `account_quota`: too many of
 * its account, and more than its share of them. `failing`: no attempt has succeeded for days.
 */
export const PAUSE_REASONS = ['endpoint_quota', 'account_quota', 'failing'] as const;

export type PauseReason = (typeof PAUSE_REASONS)[number];
