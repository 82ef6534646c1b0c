import { DAY_MS, formatIso, MINUTE_MS } from '../lib/time.ts';
import { type Device, type LatestPosition, MOVING_FROM_KMH, type NearDevice, updatedAtMs } from './device.ts';

/**
 * The views of polled resources (see deviceSchemas.ts) as JSON text, written straight from memory: the same bytes as
 * JSON.stringify makes of the view, without the view and at a third of the time.
 */
export function deviceJson(device: Device, nowMs: number): string {
  const { fields, position } = device;
  const { imei } = fields;
  return (
    `{"id":"${imei}","imei":"${imei}","name":${quoted(fields.name)},"plate":${quoted(fields.plate)}` +
    `,"device_model":${quoted(fields.model)},"odometer_km":${position?.odometerKm ?? null}` +
    `,"status":"${statusOf(position, nowMs)}","groups":${listJson(fields.groups)}` +
    `,"location":${locationJson(position)},"updated_at":"${formatIso(updatedAtMs(device))}"}`
  );
}

/** A device as the feeds show it: with heading, altitude and ignition. */
export function changedDeviceJson(
  device: Device,
  headingDeg: number,
  ignition: boolean | null,
  nowMs: number,
): string {
  const { fields, position } = device;
  const { imei } = fields;
  const location =
    position === null
      ? 'null'
      : `${locationJson(position).slice(0, -1)},"heading":${headingDeg},"altitude_m":${position.altitudeM}}`;
  return (
    `{"id":"${imei}","imei":"${imei}","name":${quoted(fields.name)},"plate":${quoted(fields.plate)}` +
    `,"device_model":${quoted(fields.model)},"odometer_km":${position?.odometerKm ?? null}` +
    `,"status":"${statusOf(position, nowMs)}","groups":${listJson(fields.groups)}` +
    `,"location":${location},"updated_at":"${formatIso(updatedAtMs(device))}","ignition":${ignition}}`
  );
}

/** What a device is called and what it does, without where it is. */
export function deviceNamesJson({ fields, position }: Device, nowMs: number): string {
  const { imei, name, plate } = fields;
  return (
    `{"id":"${imei}","imei":"${imei}","name":${quoted(name)},"plate":${quoted(plate)}` +
    `,"status":"${statusOf(position, nowMs)}"}`
  );
}

export function removedDeviceJson(imei: string): string {
  return `{"id":"${imei}","imei":"${imei}","removed":true}`;
}

export function nearDeviceJson({ device, distanceM }: NearDevice, nowMs: number): string {
  const { fields, position } = device;
  const { imei } = fields;
  return (
    `{"id":"${imei}","imei":"${imei}","name":${quoted(fields.name)},"plate":${quoted(fields.plate)}` +
    `,"status":"${statusOf(position, nowMs)}","location":${locationJson(position)}` +
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
export function statusOf(
  position: { readonly recordedAtMs: number; readonly speedKmh: number } | null,
  nowMs: number,
): DeviceStatus {
  if (position === null) return 'unknown';
  const ageMs = nowMs - position.recordedAtMs;
  if (position.speedKmh < MOVING_FROM_KMH) return ageMs <= PARKED_FOR_MS ? 'parked' : 'offline';
  return ageMs <= MOVING_FOR_MS ? 'moving' : 'offline';
}

/** An IMEI is digits and needs no quoting; all other text may hold anything. */
function quoted(text: string | null): string {
  if (text === null) return 'null';
  for (let at = 0; at < text.length; at++) {
    if (needsEscape(text.charCodeAt(at))) return JSON.stringify(text);
  }
  return `"${text}"`;
}

/** Control characters, the quotation mark, the backslash, and surrogates, which may stand alone (RFC 8259 section 7). */
function needsEscape(charCode: number): boolean {
  return charCode < 0x20 || charCode === 0x22 || charCode === 0x5c || charCode >= 0xd800;
}

function listJson(texts: readonly string[]): string {
  let json = '';
  for (const text of texts) json += json === '' ? quoted(text) : `,${quoted(text)}`;
  return `[${json}]`;
}
