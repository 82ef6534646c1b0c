import type { AreaQuota } from '../areas/areaQuota.ts';
import type { FleetEvent } from '../events/fleetEvents.sql.ts';
import type { RecordedEvent } from '../feeds/eventFeed.sql.ts';
import type { HistoryPoint } from '../history/newestPoints.sql.ts';
import type { ApiVersion } from '../http/route.ts';
import { formatIso } from '../lib/isoTime.ts';
import type { Command } from './commands.sql.ts';
import { deviceStatus } from './deviceStatus.ts';
import type { Occupant } from './knownDevice.ts';
import { type Device, type NearDevice, updatedAtMs } from './knownDevice.ts';
import type { LatestPosition } from './motion.ts';
import { dwellLeftSeconds } from './occupants.memory.ts';

/** Wire forms of the resources, field by field as the API document lists them. */

const locationView = (position: LatestPosition) => ({
  latitude: position.lat,
  longitude: position.lng,
  speed_kmh: position.speedKmh,
  recorded_at: formatIso(position.recordedAtMs),
});

const statusOf = ({ position }: Device, nowMs: number) =>
  deviceStatus(position?.recordedAtMs ?? null, position?.speedKmh ?? 0, nowMs);

export function deviceView(device: Device, nowMs: number) {
  const { fields, position } = device;
  return {
    id: fields.imei,
    imei: fields.imei,
    name: fields.name,
    plate: fields.plate,
    device_model: fields.model,
    odometer_km: position?.odometerKm ?? null,
    status: statusOf(device, nowMs),
    groups: fields.groups,
    location: position === null ? null : locationView(position),
    updated_at: formatIso(updatedAtMs(device)),
  };
}

/** As the feeds show it. */
export function changedDeviceView(
  device: Device,
  headingDeg: number,
  ignition: boolean | null,
  nowMs: number,
) {
  const { position } = device;
  const location =
    position === null
      ? null
      : { ...locationView(position), heading: headingDeg, altitude_m: position.altitudeM };
  return { ...deviceView(device, nowMs), location, ignition };
}

/** A device that the key does not see any more. */
export function removedDeviceView(imei: string) {
  return { id: imei, imei, removed: true as const };
}

export function nearestView({ device, distanceM }: NearDevice, nowMs: number) {
  const { fields, position } = device;
  return {
    id: fields.imei,
    imei: fields.imei,
    name: fields.name,
    plate: fields.plate,
    status: statusOf(device, nowMs),
    location: position === null ? null : locationView(position),
    distance_km: distanceM / 1000,
  };
}

/** A device in an area, whose minimum stay is `dwellSeconds`. */
export function occupantView(occupant: Occupant, dwellSeconds: number, nowMs: number) {
  const { device, insideSinceMs, confirmedAtMs } = occupant;
  const { imei, name, plate } = device.fields;
  return {
    device: { id: imei, imei, name, plate, status: statusOf(device, nowMs) },
    since: formatIso(insideSinceMs),
    entered_at: confirmedAtMs === null ? null : formatIso(confirmedAtMs),
    dwell_left_seconds: dwellLeftSeconds(occupant, dwellSeconds),
    last_point_at: formatIso(device.position?.recordedAtMs ?? insideSinceMs),
  };
}

export function latestLocationView(position: LatestPosition) {
  return {
    latitude: position.lat,
    longitude: position.lng,
    altitude_m: position.altitudeM,
    speed_kmh: position.speedKmh,
    recorded_at: formatIso(position.recordedAtMs),
  };
}

export function historyView(point: HistoryPoint) {
  return {
    latitude: point.lat,
    longitude: point.lng,
    speed_kmh: point.speedKmh,
    heading: point.heading,
    satellites: point.satellites,
    recorded_at: formatIso(point.recordedAtMs),
  };
}

export function commandView(command: Command) {
  return {
    id: command.id,
    type: command.type,
    status: command.status,
    queued_at: formatIso(command.queuedAtMs),
    sent_at: command.sentAtMs === null ? null : formatIso(command.sentAtMs),
  };
}

/** v2 shows the area of a geofence event under its older key, geofenceId. */
export function eventView(event: FleetEvent, version: ApiVersion) {
  return {
    id: event.id,
    type: event.type,
    message: event.message,
    device_imei: event.imei,
    data: version === 'v2' && event.type === 'geofence' ? geofenceDataV2(event.data) : event.data,
    read: event.read,
    occurred_at: formatIso(event.occurredAtMs),
  };
}

/** As the feed of events shows it. */
export function recordedEventView(event: RecordedEvent) {
  return { ...eventView(event, 'v3'), recorded_at: formatIso(event.recordedAtMs) };
}

function geofenceDataV2({ areaId, ...rest }: FleetEvent['data']): FleetEvent['data'] {
  return { ...rest, geofenceId: areaId };
}

/** How much there is, and may be. */
export interface Used {
  readonly used: number;
  readonly limit: number;
}

export function usageView({ areas, vertices, maxAreas, maxVertices }: AreaQuota, stays: Used) {
  return {
    areas: { used: areas, limit: maxAreas },
    vertices: { used: vertices, limit: maxVertices },
    stays,
  };
}
