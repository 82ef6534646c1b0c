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

/** The value of a `type` filter → what it selects: an event type or one of the three geofence aliases; else null. */
export function parseEventTypeFilter(text: string): EventTypeFilter | null {
  if (text === 'geofence_enter' || text === 'geofence_entry') return { type: 'geofence', direction: 'entry' };
  if (text === 'geofence_exit') return { type: 'geofence', direction: 'exit' };
  const type = EVENT_TYPES.find((known) => known === text);
  return type === undefined ? null : { type };
}
