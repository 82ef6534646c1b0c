import { EXAMPLE_CIRCLE } from '../areas/areaSchemas.ts';
import { EXAMPLE_IMEI, EXAMPLE_VAN, lat, lng, WORLD_ID } from '../devices/deviceSchemas.ts';
import type { Schema } from '../http/openapi/schema.ts';
import { choice, ID, integer, LAT_LNG, number, ref, shapeOf, text, time } from '../http/openapi/schema.ts';
import type { ApiVersion } from '../http/route.ts';
import {
  type DeviceEvent,
  type DeviceEventData,
  DIRECTIONS,
  deviceEventData,
  deviceEventMessage,
  type EventType,
  type GeofenceEvent,
  type GeofenceEventData,
  geofenceEventData,
  geofenceEventMessage,
} from './fleetEvent.ts';
import type { AreaEvent, FleetEvent } from './fleetEvents.sql.ts';

/** v2 shows the area of a geofence event under its older key, geofenceId. */
export function eventView(event: FleetEvent, version: ApiVersion): FleetEvent {
  if (version !== 'v2' || event.type !== 'geofence') return event;
  const { areaId, ...data } = event.data;
  return { ...event, data: { ...data, geofenceId: areaId } };
}

type DataOf<Key extends string> = Extract<DeviceEventData, { readonly [K in Key]: unknown }>;

const POSITION = { position: LAT_LNG };

const GEOFENCE: Record<keyof GeofenceEventData, Schema> = {
  ...POSITION,
  areaId: ID,
  areaName: text('At the time of the event.'),
  event: choice(['entry', 'exit']),
  enteredAt: time('The first point inside.'),
  dwellSeconds: integer("The area's threshold at the time of the event.", { minimum: 0 }),
  staySeconds: number('On exits only: from the first point inside to the first outside.', { minimum: 0 }),
};

const IGNITION: Record<keyof DataOf<'ignition'>, Schema> = { ...POSITION, ignition: { type: 'boolean' } };
const PARKING: Record<keyof DataOf<'parked_at'>, Schema> = {
  ...POSITION,
  parked_at: time('The first slow point of the stay.'),
};
const ALARM: Record<keyof DataOf<'alarm'>, Schema> = { ...POSITION, alarm: text('As the device names it.') };
const RFID: Record<keyof DataOf<'rfid'>, Schema> = { ...POSITION, rfid: text('The tag that was read.') };

/** The fields of `data` by type of event, for the event list and for webhooks. */
export const EVENT_DATA: Readonly<Record<EventType, Readonly<Record<string, Schema>>>> = {
  geofence: GEOFENCE,
  ignition_on: IGNITION,
  ignition_off: IGNITION,
  parking_start: PARKING,
  parking_end: PARKING,
  tamper_alert: ALARM,
  alarm: ALARM,
  rfid: RFID,
};

/** One schema for events of the same data, so that `type` says what `data` has. */
function fleetEvent(...types: readonly [EventType, ...EventType[]]): Schema {
  const data = EVENT_DATA[types[0]];
  const optional = 'staySeconds' in data ? ['staySeconds'] : [];
  return shapeOf<FleetEvent>({
    id: ID,
    type: choice(types),
    message: text('For a person.'),
    device_imei: text(),
    data: shapeOf<Readonly<Record<string, unknown>>>(data, { optional }),
    read: { type: 'boolean' },
    occurred_at: time('The GPS time of the point that produced it.'),
  });
}

export const EVENT_SCHEMAS = {
  AreaEvent: shapeOf<AreaEvent>({
    id: ID,
    area_id: ID,
    device: text('Its IMEI.'),
    event: choice(DIRECTIONS),
    position: ref('LatLng'),
    timestamp: time('The GPS time of the point that produced it.'),
  }),
  GeofenceEvent: fleetEvent('geofence'),
  IgnitionEvent: fleetEvent('ignition_on', 'ignition_off'),
  ParkingEvent: fleetEvent('parking_start', 'parking_end'),
  AlarmEvent: fleetEvent('tamper_alert', 'alarm'),
  RfidEvent: fleetEvent('rfid'),
  FleetEvent: {
    oneOf: [
      ref('GeofenceEvent'),
      ref('IgnitionEvent'),
      ref('ParkingEvent'),
      ref('AlarmEvent'),
      ref('RfidEvent'),
    ],
  },
} as const satisfies Readonly<Record<string, Schema>>;

const AT = { position: { lat, lng } };
const DEVICE_EVENTS: readonly DeviceEvent[] = [
  { ...AT, type: 'ignition_on' },
  { ...AT, type: 'ignition_off' },
  { ...AT, type: 'parking_start', parkedAtMs: Date.UTC(2026, 2, 2, 8, 10) },
  { ...AT, type: 'parking_end', parkedAtMs: Date.UTC(2026, 2, 2, 8, 10) },
  { ...AT, type: 'tamper_alert', alarm: 'tampering' },
  { ...AT, type: 'alarm', alarm: 'sos' },
  { ...AT, type: 'rfid', rfid: '04A1B2C3D4' },
];

const STAY = {
  worldId: WORLD_ID,
  areaId: EXAMPLE_CIRCLE.id,
  areaName: EXAMPLE_CIRCLE.definition.name,
  enteredAtMs: Date.UTC(2026, 2, 2, 8, 10),
  dwellSeconds: EXAMPLE_CIRCLE.definition.dwellSeconds,
  position: AT.position,
  occurredAtMs: EXAMPLE_VAN.position.recordedAtMs,
};
const GEOFENCE_EVENTS: readonly GeofenceEvent[] = [
  { ...STAY, direction: 'entry' },
  { ...STAY, direction: 'exit', staySeconds: 321 },
];

/** One event of every type, and geofence events of both directions. */
export const EXAMPLE_EVENTS: readonly FleetEvent[] = [
  ...GEOFENCE_EVENTS.map((event) => ({
    type: 'geofence' as const,
    message: geofenceEventMessage(event, 'Van 12'),
    data: geofenceEventData(event),
  })),
  ...DEVICE_EVENTS.map((event) => ({
    type: event.type,
    message: deviceEventMessage(event, 'Van 12'),
    data: deviceEventData(event),
  })),
].map(({ type, message, data }, n) => ({
  id: 9041 - n,
  type,
  message,
  device_imei: EXAMPLE_IMEI,
  data,
  read: false,
  occurred_at: new Date(EXAMPLE_VAN.position.recordedAtMs),
}));
