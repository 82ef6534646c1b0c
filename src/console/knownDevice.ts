import type { Device } from './types.ts';

/** What is kept of a device. It changes with the device: whoever keeps a part of it for later copies that. */
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
 * Brings what is kept of a device to what the stream says of it now. Texts that are equal and the objects stay: what is
 * new and lives on is copied twice by the garbage collector, for 10 000 changes a second.
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

function knownLocation(location: NonNullable<Device['location']>): KnownLocation {
  const { latitude, longitude, speed_kmh: speedKmh, recorded_at, heading } = location;
  return { latitude, longitude, speedKmh, recordedAtMs: Date.parse(recorded_at), heading };
}
