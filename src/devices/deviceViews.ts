import { formatIso } from '../lib/isoTime.ts';
import { deviceStatus } from './deviceStatus.ts';
import { type Device, type NearDevice, updatedAtMs } from './device.ts';
import type { LatestPosition } from './motion.ts';

/** Wire forms of the resources, field by field as the API document lists them. */

const locationView = (position: LatestPosition) => ({
  latitude: position.lat,
  longitude: position.lng,
  speed_kmh: position.speedKmh,
  recorded_at: formatIso(position.recordedAtMs),
});

export const statusOf = ({ position }: Device, nowMs: number) =>
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

/** A device as the feeds show it. */
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

export function latestLocationView(position: LatestPosition) {
  return {
    latitude: position.lat,
    longitude: position.lng,
    altitude_m: position.altitudeM,
    speed_kmh: position.speedKmh,
    recorded_at: formatIso(position.recordedAtMs),
  };
}
