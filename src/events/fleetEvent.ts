import type { LatLng } from '../geo/wgs84.ts';
import { formatIso } from '../lib/time.ts';

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

/** Of geofence events. */
export const DIRECTIONS = ['entry', 'exit'] as const;

export type Direction = (typeof DIRECTIONS)[number];

/** Something that one point shows about its device; `position` is the point's. */
export type DeviceEvent = { readonly position: LatLng } & (
  | { readonly type: 'ignition_on' | 'ignition_off' }
  | { readonly type: 'parking_start' | 'parking_end'; readonly parkedAtMs: number }
  | { readonly type: 'tamper_alert' | 'alarm'; readonly alarm: string }
  | { readonly type: 'rfid'; readonly rfid: string }
);

/** `data` of a device event on the wire: always the position, and what the type needs. */
export type DeviceEventData = { readonly position: LatLng } & (
  | { readonly ignition: boolean }
  | { readonly parked_at: string }
  | { readonly alarm: string }
  | { readonly rfid: string }
);

export function deviceEventData(event: DeviceEvent): DeviceEventData {
  const { position } = event;
  switch (event.type) {
    case 'ignition_on':
    case 'ignition_off':
      return { position, ignition: event.type === 'ignition_on' };
    case 'parking_start':
    case 'parking_end':
      return { position, parked_at: formatIso(event.parkedAtMs) };
    case 'tamper_alert':
    case 'alarm':
      return { position, alarm: event.alarm };
    case 'rfid':
      return { position, rfid: event.rfid };
  }
}

/** One sentence for a person; `deviceLabel` is the device's name, or its plate or IMEI when it has none. */
export function deviceEventMessage(event: DeviceEvent, deviceLabel: string): string {
  switch (event.type) {
    case 'ignition_on':
      return `${deviceLabel} switched its ignition on`;
    case 'ignition_off':
      return `${deviceLabel} switched its ignition off`;
    case 'parking_start':
      return `${deviceLabel} has parked`;
    case 'parking_end':
      return `${deviceLabel} is on its way again`;
    case 'tamper_alert':
      return `${deviceLabel} reports tampering: ${event.alarm}`;
    case 'alarm':
      return `${deviceLabel} raised an alarm: ${event.alarm}`;
    case 'rfid':
      return `${deviceLabel} read the tag ${event.rfid}`;
  }
}

/** A device entered or left an area, as one of its points shows. */
export type GeofenceEvent = {
  /** The world that may read it. */
  readonly worldId: number;
  readonly areaId: number;
  readonly areaName: string;
  /** The first inside point of the stay. */
  readonly enteredAtMs: number;
  /** The area's threshold at this point. */
  readonly dwellSeconds: number;
  /** Position and time are those of the point that confirmed the entry, or of the first point outside. */
  readonly position: LatLng;
  readonly occurredAtMs: number;
} & (
  | { readonly direction: 'entry' }
  /** staySeconds: from the first point inside to the first outside, to the millisecond. */
  | { readonly direction: 'exit'; readonly staySeconds: number }
);

/** `data` of a geofence event on the wire, in the keys of v3. */
export type GeofenceEventData = {
  readonly position: LatLng;
  readonly areaId: number;
  readonly areaName: string;
  readonly event: Direction;
  readonly enteredAt: string;
  readonly dwellSeconds: number;
  /** On exits only. */
  readonly staySeconds?: number;
};

export function geofenceEventData(event: GeofenceEvent): GeofenceEventData {
  const data = {
    position: event.position,
    areaId: event.areaId,
    areaName: event.areaName,
    event: event.direction,
    enteredAt: formatIso(event.enteredAtMs),
    dwellSeconds: event.dwellSeconds,
  };
  return event.direction === 'exit' ? { ...data, staySeconds: event.staySeconds } : data;
}

/** One sentence for a person; `deviceLabel` as for a device event. */
export function geofenceEventMessage(event: GeofenceEvent, deviceLabel: string): string {
  return `${deviceLabel} ${event.direction === 'entry' ? 'entered' : 'left'} ${event.areaName}`;
}

/** What the `type` filter of the event list selects; a direction only narrows geofence events. */
export interface EventTypeFilter {
  readonly type: EventType;
  readonly direction?: Direction;
}

const GEOFENCE_ALIASES: ReadonlyMap<string, Direction> = new Map([
  ['geofence_enter', 'entry'],
  ['geofence_entry', 'entry'],
  ['geofence_exit', 'exit'],
]);

/** Every value of a `type` filter: the event types and the three geofence aliases. */
export const EVENT_TYPE_FILTERS: readonly string[] = [...EVENT_TYPES, ...GEOFENCE_ALIASES.keys()];

/** The value of a `type` filter → what it selects; null for any other text. */
export function parseEventTypeFilter(text: string): EventTypeFilter | null {
  const direction = GEOFENCE_ALIASES.get(text);
  if (direction !== undefined) return { type: 'geofence', direction };
  const type = EVENT_TYPES.find((known) => known === text);
  return type === undefined ? null : { type };
}
