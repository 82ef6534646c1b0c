import { ID, LAT_LNG } from '../http/openapi/commonSchemas.ts';
import { choice, integer, number, ref, type Schema, shapeOf, text, time } from '../http/openapi/schema.ts';
import { AREA_EVENT, type areaEventView } from './areaEvents.routes.ts';
import type { DeviceEventData } from './deviceEvent.ts';
import type { eventView } from './events.routes.ts';
import type { EventType } from './eventTypes.ts';
import type { GeofenceEventData } from './geofenceEvent.ts';

type DataOf<Key extends string> = Extract<DeviceEventData, { readonly [K in Key]: unknown }>;

const POSITION = { position: LAT_LNG };

/** `data` of an entry or exit, for the event list and for webhooks. */
export const GEOFENCE_DATA: Record<keyof GeofenceEventData, Schema> = {
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
  geofence: GEOFENCE_DATA,
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
  return shapeOf<ReturnType<typeof eventView>>({
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
  AreaEvent: shapeOf<ReturnType<typeof areaEventView>>({
    id: ID,
    area_id: ID,
    device: text('Its IMEI.'),
    event: choice(AREA_EVENT.values),
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
