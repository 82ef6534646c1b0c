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
