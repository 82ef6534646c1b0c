import type { Device } from './types.ts';

/** What is kept of a device. It is updated in place, so code that needs a value later must copy it. */
export interface KnownDevice {
  readonly imei: string;
  readonly name: string | null;
  readonly plate: string | null;
  readonly status: Device['status'];
  readonly location: KnownLocation | null;
  readonly ignition: boolean | null;
}

export interface KnownLocation {
  readonly latitude: number;
  readonly longitude: number;
  readonly speedKmh: number;
  readonly recordedAtMs: number;
  /** Degrees clockwise from north. */
  readonly heading: number;
}

const PARKED_BELOW_KMH = 5;
const PARKED_FOR_MS = 86_400_000;
const MOVING_FOR_MS = 600_000;

/**
 * The status of a device at a time of the server's clock, by the rule of the API (docs/decisions.md): parked under 5 km/h
 * for 24 hours, moving for 10 minutes, then offline; unknown without a position.
 */
export function statusAt(location: KnownLocation | null, nowMs: number): Device['status'] {
  if (location === null) return 'unknown';
  const ageMs = nowMs - location.recordedAtMs;
  if (location.speedKmh < PARKED_BELOW_KMH) return ageMs <= PARKED_FOR_MS ? 'parked' : 'offline';
  return ageMs <= MOVING_FOR_MS ? 'moving' : 'offline';
}

export function setStatus(device: Writable<KnownDevice>, status: Device['status']): void {
  device.status = status;
}

type Writable<T> = { -readonly [Field in keyof T]: T[Field] };

export function knownDevice({ imei, name, plate, status, location, ignition }: Device): KnownDevice {
  return {
    imei,
    name,
    plate,
    status,
    location: location === null ? null : knownLocation(location),
    ignition,
  };
}

/**
 * Updates a kept device to what the stream reports now. Objects and equal texts are reused: the garbage collector
 * copies new values that stay alive twice, which adds up at 10 000 changes a second.
 */
export function update(known: KnownDevice, { name, plate, status, location, ignition }: Device): void {
  const device: Writable<KnownDevice> = known;
  if (device.name !== name) device.name = name;
  if (device.plate !== plate) device.plate = plate;
  if (device.status !== status) device.status = status;
  device.ignition = ignition;
  const place: Writable<KnownLocation> | null = device.location;
  if (place === null || location === null) {
    device.location = location === null ? null : knownLocation(location);
    return;
  }
  place.latitude = location.latitude;
  place.longitude = location.longitude;
  place.speedKmh = location.speed_kmh;
  place.recordedAtMs = Date.parse(location.recorded_at);
  place.heading = location.heading;
}

/** What the stream would say of a device that is known. */
export function changeOf({ location, ...device }: KnownDevice): Device {
  if (location === null) return { ...device, location };
  const { latitude, longitude, speedKmh, recordedAtMs, heading } = location;
  const recorded_at = new Date(recordedAtMs).toISOString();
  return { ...device, location: { latitude, longitude, speed_kmh: speedKmh, recorded_at, heading } };
}

function knownLocation(location: NonNullable<Device['location']>): KnownLocation {
  const { latitude, longitude, speed_kmh: speedKmh, recorded_at, heading } = location;
  return { latitude, longitude, speedKmh, recordedAtMs: Date.parse(recorded_at), heading };
}
