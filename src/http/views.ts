import { formatIso } from '../base/isoTime.ts';
import type { LatestPosition } from '../engine/device.ts';
import { deviceStatus } from '../engine/deviceStatus.ts';
import { type Device, type NearDevice, updatedAtMs } from '../memory/device.ts';
import type { Command } from '../store/commands.ts';
import type { FleetEvent } from '../store/fleetEvents.ts';
import type { HistoryPoint } from '../store/positions.ts';
import type { ApiVersion } from './route.ts';

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

function geofenceDataV2({ areaId, ...rest }: FleetEvent['data']): FleetEvent['data'] {
  return { ...rest, geofenceId: areaId };
}
