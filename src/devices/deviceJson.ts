import { DAY_MS, formatIso, MINUTE_MS } from '../lib/time.ts';
import {
  type Device,
  type LatestPosition,
  MOVING_FROM_KMH,
  type NearDevice,
  type StatusFacts,
} from './device.ts';
import { imeiEnd, quoted } from './namesText.ts';

// What the API shows of devices (see deviceSchemas.ts), written straight from memory as JSON text: in a third of the
// time that JSON.stringify takes.

export function deviceJson(device: Device, nowMs: number): string {
  return `${jsonUpToLocation(device, nowMs)}${locationJson(device.position)}${updatedJson(device)}}`;
}

/** A device as the feeds show it: with heading, altitude and ignition. */
export function changedDeviceJson(
  device: Device,
  nowMs: number,
  headingDeg: number,
  ignition: boolean | null,
): string {
  const { position } = device;
  const location =
    position === null
      ? 'null'
      : `${locationJson(position).slice(0, -1)},"heading":${headingDeg},"altitude_m":${position.altitudeM}}`;
  return `${jsonUpToLocation(device, nowMs)}${location}${updatedJson(device)},"ignition":${ignition}}`;
}

function jsonUpToLocation({ names, model, groups, position }: Device, nowMs: number): string {
  return (
    `${namesJson(names)},"device_model":${quoted(model)},"odometer_km":${position?.odometerKm ?? null}` +
    `,"status":"${statusOf(position, nowMs)}","groups":${listJson(groups)},"location":`
  );
}

/** The beginning of an object: see namesText. */
function namesJson(names: string): string {
  const end = imeiEnd(names);
  const imei = names.slice(0, end);
  return `{"id":"${imei}","imei":"${imei}","name":${names.slice(end)}`;
}

function updatedJson({ updatedAtMs }: Device): string {
  return `,"updated_at":"${formatIso(updatedAtMs)}"`;
}

/** What a device is called and what it does, without where it is. */
export function deviceNamesJson({ names, position }: Device, nowMs: number): string {
  return `${namesJson(names)},"status":"${statusOf(position, nowMs)}"}`;
}

export function removedDeviceJson(imei: string): string {
  return `{"id":"${imei}","imei":"${imei}","removed":true}`;
}

export function nearDeviceJson({ device, distanceM }: NearDevice, nowMs: number): string {
  const { names, position } = device;
  return (
    `${namesJson(names)},"status":"${statusOf(position, nowMs)}","location":${locationJson(position)}` +
    `,"distance_km":${distanceM / 1000}}`
  );
}

export function latestLocationJson({ lat, lng, altitudeM, speedKmh, recordedAtMs }: LatestPosition): string {
  return (
    `{"latitude":${lat},"longitude":${lng},"altitude_m":${altitudeM},"speed_kmh":${speedKmh}` +
    `,"recorded_at":"${formatIso(recordedAtMs)}"}`
  );
}

function locationJson(position: LatestPosition | null): string {
  if (position === null) return 'null';
  const { lat, lng, speedKmh, recordedAtMs } = position;
  return `{"latitude":${lat},"longitude":${lng},"speed_kmh":${speedKmh},"recorded_at":"${formatIso(recordedAtMs)}"}`;
}

export const DEVICE_STATUSES = ['moving', 'parked', 'offline', 'unknown'] as const;

export type DeviceStatus = (typeof DEVICE_STATUSES)[number];

const PARKED_FOR_MS = DAY_MS;
const MOVING_FOR_MS = 10 * MINUTE_MS;

/**
 * The status of a device, computed when it is read from its newest point and the server's clock.
 *
 *   no point                               unknown
 *   under 5 km/h, at most 24 h old         parked
 *   5 km/h or more, at most 10 min old     moving
 *   else                                   offline
 */
export function statusOf(position: StatusFacts | null, nowMs: number): DeviceStatus {
  if (position === null) return 'unknown';
  const ageMs = nowMs - position.recordedAtMs;
  if (position.speedKmh < MOVING_FROM_KMH) return ageMs <= PARKED_FOR_MS ? 'parked' : 'offline';
  return ageMs <= MOVING_FOR_MS ? 'moving' : 'offline';
}

function listJson(texts: readonly string[]): string {
  let json = '';
  for (const text of texts) json += json === '' ? quoted(text) : `,${quoted(text)}`;
  return `[${json}]`;
}

/** What a text was made of. */
interface KeptText {
  readonly device: Device;
  readonly status: string;
  readonly text: string;
}

/**
 * Keeps the texts of devices: most have not changed since the last call, and making one takes ten times as long as
 * finding it here. The row of a device determines its slot; devices with the same slot replace each other.
 */
export class DeviceTexts {
  readonly #write: typeof changedDeviceJson;
  readonly #kept: (KeptText | undefined)[];

  /** `slots`: a power of two. */
  constructor(write: typeof changedDeviceJson, slots: number) {
    this.#write = write;
    this.#kept = new Array(slots).fill(undefined);
  }

  text(device: Device, nowMs: number, headingDeg = 0, ignition: boolean | null = null): string {
    const slot = device.row & (this.#kept.length - 1);
    const kept = this.#kept[slot];
    const status = statusOf(device.statusFacts, nowMs);
    if (kept?.status === status && kept.device.isSame(device)) return kept.text;
    // Joined from pieces, a string is a tree of them until it is copied into one.
    const text = Buffer.from(this.#write(device, nowMs, headingDeg, ignition)).toString();
    this.#kept[slot] = { device: device.mark(), status, text };
    return text;
  }
}
