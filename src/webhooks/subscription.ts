import { ALL_TYPES, type WebhookType } from './webhookTypes.ts';

/** True when an endpoint with these `events` receives this type: its list has the type itself or the wildcard. */
export function matches(events: readonly string[], type: WebhookType): boolean {
  return events.includes(type) || events.includes(ALL_TYPES);
}
