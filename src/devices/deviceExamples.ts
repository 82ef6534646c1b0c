import { EXAMPLE_CIRCLE } from '../areas/areaExamples.ts';
import type { FleetEvent } from '../events/fleetEvents.sql.ts';
import { distanceM } from '../geo/distance.ts';
import type { HistoryPoint } from '../history/newestPoints.sql.ts';
import type { DeviceEvent } from '../ingest/deviceEvents.ts';
import { deviceEventData, deviceEventMessage } from '../ingest/deviceEventView.ts';
import { geofenceEventData, geofenceEventMessage } from '../ingest/geofenceEventView.ts';
import type { GeofenceEvent } from '../ingest/geofences.ts';
import type { Command } from './commands.sql.ts';
import type { Device, NearDevice } from './knownDevice.ts';

// A small fleet from which the code's own views make every example: what stands in the description is what the
// service would answer about these vehicles.

export const EXAMPLE_NOW_MS = Date.UTC(2026, 2, 2, 8, 15, 30);
const WORLD_ID = 1;
export const EXAMPLE_IMEI = '356938035643809';
/** Where the nearest vehicles are asked for: a square in Rome. */
export const EXAMPLE_POINT = { lat: 41.9028, lng: 12.4964 };

export const EXAMPLE_VAN: Device & { readonly position: NonNullable<Device['position']> } = {
  fields: {
    id: 1,
    imei: EXAMPLE_IMEI,
    worldId: WORLD_ID,
    name: 'Van 12',
    plate: 'GA 731 KL',
    model: 'FMB920',
    groups: ['north', 'refrigerated'],
    editedAtMs: Date.UTC(2026, 0, 12, 9),
  },
  position: {
    recordedAtMs: Date.UTC(2026, 2, 2, 8, 15, 21),
    lat: 41.905,
    lng: 12.4823,
    altitudeM: 31,
    speedKmh: 37.5,
    odometerKm: 48211.4,
    movedAtMs: Date.UTC(2026, 2, 2, 8, 15, 22, 104),
  },
};

/** Known by its IMEI only, and never heard of. */
export const EXAMPLE_SILENT_DEVICE: Device = {
  fields: {
    id: 2,
    imei: '356938035643817',
    worldId: WORLD_ID,
    name: null,
    plate: null,
    model: null,
    groups: [],
    editedAtMs: Date.UTC(2026, 2, 1, 16, 40),
  },
  position: null,
};

const { lat, lng } = EXAMPLE_VAN.position;

export const EXAMPLE_NEAR: NearDevice = {
  device: EXAMPLE_VAN,
  distanceM: distanceM(EXAMPLE_POINT.lat, EXAMPLE_POINT.lng, lat, lng),
};

export const EXAMPLE_HISTORY: HistoryPoint = {
  lat,
  lng,
  speedKmh: EXAMPLE_VAN.position.speedKmh,
  heading: 214,
  satellites: 11,
  recordedAtMs: EXAMPLE_VAN.position.recordedAtMs,
};

export const EXAMPLE_COMMANDS: readonly Command[] = [
  { id: 18, type: 'position_request', status: 'pending', queuedAtMs: EXAMPLE_NOW_MS, sentAtMs: null },
  {
    id: 17,
    type: 'configuration',
    status: 'sent',
    queuedAtMs: EXAMPLE_NOW_MS - 90_000,
    sentAtMs: EXAMPLE_NOW_MS - 60_000,
  },
];

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
