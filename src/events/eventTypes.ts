/** Every type of fleet event, as stored and shown. */
export const EVENT_TYPES = [
  'geofence',
  'ignition_on',
  'ignition_off',
  'parking_start',
  'parking_end',
  'tamper_alert',
  'rfid',
  'alarm',
] as const;

export type EventType = (typeof EVENT_TYPES)[number];

/** What the `type` filter of the event list selects; a direction only narrows geofence events. */
export interface EventTypeFilter {
  readonly type: EventType;
  readonly direction?: 'entry' | 'exit';
}

const GEOFENCE_ALIASES = {
  geofence_enter: 'entry',
  geofence_entry: 'entry',
  geofence_exit: 'exit',
} as const;

/** Every value of a `type` filter: the event types and the three geofence aliases. */
export const EVENT_TYPE_FILTERS: readonly string[] = [...EVENT_TYPES, ...Object.keys(GEOFENCE_ALIASES)];

/** The value of a `type` filter → what it selects; null for any other text. */
export function parseEventTypeFilter(text: string): EventTypeFilter | null {
  if (Object.hasOwn(GEOFENCE_ALIASES, text)) {
    return { type: 'geofence', direction: GEOFENCE_ALIASES[text as keyof typeof GEOFENCE_ALIASES] };
  }
  const type = EVENT_TYPES.find((known) => known === text);
  return type === undefined ? null : { type };
}
