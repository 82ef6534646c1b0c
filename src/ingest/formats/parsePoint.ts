import { IMEI } from '../../devices/device.ts';
import { isLatLng } from '../../geo/wgs84.ts';
import { fail, ok, type Result } from '../../lib/result.ts';
import { formatIso, MINUTE_MS, parseIsoMs } from '../../lib/time.ts';
import { type Fix, POINTS_PER_SECOND, type RateExceeded } from '../fix.ts';

export interface ParsedPoint {
  readonly fix: Fix;
  /** Wire names of the optional fields whose value was impossible and is treated as missing. */
  readonly ignored: readonly string[];
}

// No sensor measures values beyond these, and every column and message has room for the others.
const MAX_ALTITUDE_M = 100_000;
const MAX_SPEED_KMH = 10_000;
const MAX_SATELLITES = 1_000;
const MAX_ODOMETER_KM = 100_000_000;
const MAX_TEXT_LENGTH = 200;

/**
 * One point of any origin → a fix, or the first reason against it: body, IMEI, coordinates, timestamp.
 * Never throws. `oldestMs` is the oldest instant that any plan keeps.
 *
 * - The IMEI is text: as a number it would have lost its leading zeros.
 * - `recorded_at` is ISO 8601 text (see parseIsoMs) or a number of epoch milliseconds, cut to whole ones.
 *   Digits in a string are neither: "20260314" is a date to some and a number to others.
 * - null is a missing field. An optional field with an impossible value is missing too, and named in `ignored`.
 * - `alarm` is a comma list; `alarm` and `rfid` are trimmed, and empty text is a missing field.
 */
export function parsePoint(value: unknown, nowMs: number, oldestMs: number): Result<ParsedPoint, Rejection> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return REJECTED.INVALID_BODY;
  const { imei, recorded_at, latitude, longitude, ignition, alarm, rfid } = value as WireObject;
  const { altitude_m, speed_kmh, heading, satellites, odometer_km } = value as WireObject;
  if (typeof imei !== 'string' || !IMEI.test(imei)) return REJECTED.INVALID_IMEI;
  if (typeof latitude !== 'number' || typeof longitude !== 'number' || !isLatLng(latitude, longitude)) {
    return REJECTED.INVALID_COORDINATES;
  }
  if (latitude === 0 && longitude === 0) return REJECTED.INVALID_COORDINATES;
  const recordedAtMs = parseInstantMs(recorded_at);
  if (recordedAtMs === null) return REJECTED.INVALID_TIMESTAMP;
  const latestMs = nowMs + FUTURE_TOLERANCE_MS;
  if (recordedAtMs > latestMs) return REJECTED.FUTURE_TIMESTAMP;
  if (recordedAtMs < oldestMs) {
    const inSecondsMs = typeof recorded_at === 'number' ? recorded_at * 1_000 : Number.NaN;
    return inSecondsMs >= oldestMs && inSecondsMs <= latestMs ? REJECTED.SECONDS : REJECTED.TOO_OLD;
  }

  const ignored: string[] = [];
  const fix: Fix = {
    imei,
    recordedAtMs,
    sentAtMs: null,
    lat: latitude + 0, // -0 becomes 0
    lng: longitude + 0,
    altitudeM: numberWithin(altitude_m, -MAX_ALTITUDE_M, MAX_ALTITUDE_M, 'altitude_m', ignored) ?? 0,
    speedKmh: numberWithin(speed_kmh, 0, MAX_SPEED_KMH, 'speed_kmh', ignored),
    heading: numberWithin(heading, 0, 360, 'heading', ignored) ?? 0,
    satellites: parseSatellites(satellites, ignored),
    odometerKm: numberWithin(odometer_km, 0, MAX_ODOMETER_KM, 'odometer_km', ignored),
    ignition: parseIgnition(ignition, ignored),
    alarms: parseAlarms(alarm, ignored),
    rfid: parseText(rfid, 'rfid', ignored),
  };
  return ok({ fix, ignored });
}

/** ISO 8601 text or a number of epoch milliseconds → whole milliseconds; null for anything else. */
export function parseInstantMs(value: unknown): number | null {
  if (typeof value === 'string') return parseIsoMs(value);
  return typeof value === 'number' && Number.isFinite(value) ? Math.trunc(value) : null;
}

function numberWithin(
  value: unknown,
  min: number,
  max: number,
  field: string,
  ignored: string[],
): number | null {
  if (value === undefined || value === null) return null;
  if (typeof value === 'number' && value >= min && value <= max) return value + 0;
  ignored.push(field);
  return null;
}

function parseSatellites(value: unknown, ignored: string[]): number {
  const count = numberWithin(value, 0, MAX_SATELLITES, 'satellites', ignored) ?? 0;
  if (Number.isInteger(count)) return count;
  ignored.push('satellites');
  return 0;
}

function parseIgnition(value: unknown, ignored: string[]): boolean | null {
  if (value === undefined || value === null) return null;
  if (typeof value === 'boolean') return value;
  ignored.push('ignition');
  return null;
}

const NO_ALARMS: readonly string[] = [];

function parseAlarms(value: unknown, ignored: string[]): readonly string[] {
  const text = parseText(value, 'alarm', ignored);
  if (text === null) return NO_ALARMS;
  const names = text.split(',').map((name) => name.trim());
  return [...new Set(names.filter((name) => name !== ''))];
}

function parseText(value: unknown, field: string, ignored: string[]): string | null {
  if (value === undefined || value === null) return null;
  if (typeof value === 'string' && value.length <= MAX_TEXT_LENGTH) {
    const text = value.trim();
    if (text === '') return null;
    if (isPrintable(text)) return text;
  }
  ignored.push(field);
  return null;
}

/**
 * No control characters (Postgres refuses NUL, a terminal obeys those of C1), no bidirectional embeddings, overrides
 * and isolates (they would reverse the text around them), and no lone surrogates (they would come back as another
 * text).
 */
function isPrintable(text: string): boolean {
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code < 0x20 || (code >= 0x7f && code < 0xa0)) return false;
    if ((code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069)) return false;
  }
  return text.isWellFormed();
}

/** One knot is one nautical mile (1852 m) an hour. */
export const KMH_PER_KNOT = 1.852;

/** An object of a body, of which nothing is known. */
export type WireObject = Readonly<Record<string, unknown>>;

/** `value` as an object, empty when it is something else. */
export function objectOrEmpty(value: unknown): WireObject {
  return typeof value === 'object' && value !== null ? (value as WireObject) : {};
}

/** Why one point is not stored. `code` is on the wire and fixed, `message` is for a person. */
export interface Rejection {
  readonly code: RejectionCode;
  readonly message: string;
}

export type RejectionCode =
  | 'INVALID_BODY'
  | 'INVALID_IMEI'
  | 'INVALID_COORDINATES'
  | 'INVALID_TIMESTAMP'
  | 'FUTURE_TIMESTAMP'
  | 'TOO_OLD'
  | 'UNKNOWN_DEVICE'
  | 'RATE_EXCEEDED'
  | 'TOO_COMPLEX';

/** How far a device's clock may be ahead of the server's. */
export const FUTURE_TOLERANCE_MS = 10 * MINUTE_MS;

/** The rejection of each code. Messages speak for every wire format and never repeat the input. */
export const REJECTIONS: { readonly [Code in Exclude<RejectionCode, 'RATE_EXCEEDED'>]: Rejection } = {
  INVALID_BODY: { code: 'INVALID_BODY', message: 'the point is not a JSON object' },
  INVALID_IMEI: { code: 'INVALID_IMEI', message: 'the IMEI must be a string of 14 to 17 digits' },
  INVALID_COORDINATES: {
    code: 'INVALID_COORDINATES',
    message: 'the latitude must be a number from -90 to 90, the longitude from -180 to 180, and not both 0',
  },
  INVALID_TIMESTAMP: {
    code: 'INVALID_TIMESTAMP',
    message: 'the timestamp must be ISO 8601 text or epoch milliseconds',
  },
  FUTURE_TIMESTAMP: {
    code: 'FUTURE_TIMESTAMP',
    message: `the timestamp is more than ${FUTURE_TOLERANCE_MS / MINUTE_MS} minutes ahead of the server`,
  },
  TOO_OLD: { code: 'TOO_OLD', message: 'the timestamp is older than the longest history that is kept' },
  UNKNOWN_DEVICE: { code: 'UNKNOWN_DEVICE', message: 'no device with this IMEI is known' },
  TOO_COMPLEX: {
    code: 'TOO_COMPLEX',
    message:
      'the areas around the position take too long to evaluate, so the point is not stored; simplify or remove some of them',
  },
};

/** Says when to send the point again. */
export function rateExceeded({ retryAtMs }: RateExceeded): Rejection {
  return {
    code: 'RATE_EXCEEDED',
    message: `the device has stored more than ${POINTS_PER_SECOND} points a second over an hour; send this point again at ${formatIso(retryAtMs)} or later`,
  };
}

/** A number of seconds where milliseconds are meant would be an instant of January 1970. */
const SECONDS_FOR_MS: Rejection = {
  code: 'TOO_OLD',
  message: 'the timestamp is a time of 1970: a number counts milliseconds, and this one looks like seconds',
};

/** A receiver without a fix sends coordinates that are leftovers. */
export const NO_FIX: Rejection = { code: 'INVALID_COORDINATES', message: 'the receiver had no valid fix' };

/** One shared answer per code: a batch of bad points allocates nothing. */
const REJECTED = {
  INVALID_BODY: fail(REJECTIONS.INVALID_BODY),
  INVALID_IMEI: fail(REJECTIONS.INVALID_IMEI),
  INVALID_COORDINATES: fail(REJECTIONS.INVALID_COORDINATES),
  INVALID_TIMESTAMP: fail(REJECTIONS.INVALID_TIMESTAMP),
  FUTURE_TIMESTAMP: fail(REJECTIONS.FUTURE_TIMESTAMP),
  TOO_OLD: fail(REJECTIONS.TOO_OLD),
  SECONDS: fail(SECONDS_FOR_MS),
};
