import { EXAMPLE_CIRCLE } from '../areas/areaExamples.ts';
import { EXAMPLE_IMEI, EXAMPLE_VAN, lat, lng, WORLD_ID } from '../devices/deviceExamples.ts';
import type { DeviceEvent } from './deviceEvent.ts';
import { deviceEventData, deviceEventMessage } from './deviceEvent.ts';
import type { FleetEvent } from './fleetEvents.sql.ts';
import type { GeofenceEvent } from './geofenceEvent.ts';
import { geofenceEventData, geofenceEventMessage } from './geofenceEvent.ts';

const AT = { position: { lat, lng } };
const ALL_OF_ALL_TYPES: readonly DeviceEvent[] = [
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

/** One event of every type, and the geofence events of both directions first. */
export const EXAMPLE_EVENTS: readonly (FleetEvent & { readonly direction: 'entry' | 'exit' | null })[] = [
  ...GEOFENCE_EVENTS.map((event) => ({
    type: 'geofence' as const,
    direction: event.direction,
    message: geofenceEventMessage(event, 'Van 12'),
    data: geofenceEventData(event),
  })),
  ...ALL_OF_ALL_TYPES.map((event) => ({
    type: event.type,
    direction: null,
    message: deviceEventMessage(event, 'Van 12'),
    data: deviceEventData(event),
  })),
].map((event, n) => ({
  ...event,
  id: 9041 - n,
  imei: EXAMPLE_IMEI,
  read: false,
  occurredAtMs: EXAMPLE_VAN.position.recordedAtMs,
}));
