import { fail, type Result } from '../../lib/result.ts';
import type { ParsedPoint, Rejection } from './parsePoint.ts';
import { KMH_PER_KNOT, NO_FIX, objectOrEmpty, parsePoint, REJECTIONS } from './parsePoint.ts';

/** Below this a timestamp is in seconds (until the year 5138), from it on in milliseconds (since March 1973). */
const FIRST_TIMESTAMP_IN_MS = 1e11;

/**
 * The parameters of /osmand → a fix, under the rules of parsePoint; `ignored` uses the names of /positions.
 *
 *   id | deviceid            the IMEI
 *   lat, lon | location      decimal degrees | "lat,lon" (read when both lat and lon are missing)
 *   timestamp                seconds, milliseconds or ISO 8601; missing: `nowMs`
 *   speed                    knots
 *   bearing | heading, altitude (m), driverUniqueId (→ rfid), alarm (the SOS button of Traccar Client)
 *   valid                    false or 0: INVALID_COORDINATES
 *
 * A blank parameter counts as missing. hdop, batt and whatever else a client sends is accepted and not stored.
 */
export function parseOsmand(
  params: OsmandParams,
  nowMs: number,
  oldestMs: number,
): Result<ParsedPoint, Rejection> {
  if (/^(?:false|0)$/i.test(param(params, 'valid') ?? '')) return fail(NO_FIX);
  const [latitude, longitude] = coordinates(params);
  const speedKnots = decimal(param(params, 'speed'));
  const point = {
    imei: param(params, 'id') ?? param(params, 'deviceid'),
    recorded_at: timestamp(param(params, 'timestamp'), nowMs),
    latitude,
    longitude,
    altitude_m: decimal(param(params, 'altitude')),
    speed_kmh: typeof speedKnots === 'number' ? speedKnots * KMH_PER_KNOT : speedKnots,
    heading: decimal(param(params, 'bearing') ?? param(params, 'heading')),
    alarm: param(params, 'alarm'),
    rfid: param(params, 'driverUniqueId'),
  };
  return parsePoint(point, nowMs, oldestMs);
}

function param(params: OsmandParams, name: OsmandName): string | undefined {
  const text = params[name]?.trim();
  return text === '' ? undefined : text;
}

function coordinates(params: OsmandParams): readonly unknown[] {
  const lat = param(params, 'lat');
  const lon = param(params, 'lon');
  const location = param(params, 'location');
  if (lat !== undefined || lon !== undefined || location === undefined) return [decimal(lat), decimal(lon)];
  const parts = location.split(',', 3);
  return parts.length === 2 ? parts.map((part) => decimal(part.trim())) : [];
}

function timestamp(text: string | undefined, nowMs: number): unknown {
  if (text === undefined) return nowMs;
  const value = decimal(text);
  return typeof value === 'number' && value < FIRST_TIMESTAMP_IN_MS ? Math.round(value * 1_000) : value;
}

/** With an exponent, because Java prints a latitude within 100 m of the equator as "4.5E-4". No hex, no Infinity. */
const DECIMAL = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,3})?$/;

/** The number that the text is. Other text is returned unchanged, and parsePoint rejects it. */
function decimal(text: string | undefined): number | string | undefined {
  return text !== undefined && DECIMAL.test(text) ? Number(text) : text;
}

const KMH_PER_M_S = 3.6;

/**
 * The JSON body of Traccar Client 9 at /osmand → a fix, under the rules of parsePoint; `ignored` uses the names of
 * /positions. The form is that of its library for locations in the background: speed in m/s, -1 where speed or heading
 * is unknown. Its odometer counts the distance of the phone since the app was installed and is not read. Without a
 * timestamp: `nowMs`. No location is INVALID_BODY, no device INVALID_IMEI, no coords INVALID_COORDINATES.
 */
export function parseOsmandJson(
  body: unknown,
  nowMs: number,
  oldestMs: number,
): Result<ParsedPoint, Rejection> {
  const { location, device_id: imei } = objectOrEmpty(body);
  if (typeof location !== 'object' || location === null || Array.isArray(location)) {
    return fail(REJECTIONS.INVALID_BODY);
  }
  const { timestamp, coords, extras, alarm } = objectOrEmpty(location);
  const { latitude, longitude, altitude, speed, heading } = objectOrEmpty(coords);
  const point = {
    imei,
    recorded_at: timestamp ?? nowMs,
    latitude,
    longitude,
    altitude_m: altitude,
    speed_kmh: typeof speed === 'number' ? speed * KMH_PER_M_S : speed,
    heading,
    alarm: objectOrEmpty(extras)['alarm'] ?? alarm,
  };
  return parsePoint(point, nowMs, oldestMs);
}

/** The parameters of /osmand that are read. */
const NAMES = [
  'id',
  'deviceid',
  'lat',
  'lon',
  'location',
  'timestamp',
  'speed',
  'bearing',
  'heading',
  'altitude',
  'driverUniqueId',
  'alarm',
  'valid',
] as const;

type OsmandName = (typeof NAMES)[number];

/** Query or form fields by name. */
export type OsmandParams = Readonly<Partial<Record<OsmandName, string>>>;

/** Phones send a dozen; each costs as much to decode as a point. */
const MAX_FIELDS = 256;

/**
 * What is read of a query and a form (without question mark); the fields of the form go before those of the query. A
 * parameter that is not read (`cell`, `wifi`) may be given any number of times.
 */
export function readOsmandParams(query: string, form: string): OsmandParams | 'given_twice' | 'too_many' {
  const params: Partial<Record<OsmandName, string>> = {};
  for (const text of [query, form]) {
    if (hasMoreFields(text, MAX_FIELDS)) return 'too_many';
    const seen = new Set<string>();
    for (const [name, value] of new URLSearchParams(text)) {
      if (!isRead(name)) continue;
      if (seen.has(name)) return 'given_twice';
      seen.add(name);
      params[name] = value;
    }
  }
  return params;
}

/**
 * The ingest token among the parameters: of the form before that of the query. One that is given twice is none, and
 * too many parameters are not searched.
 */
export function readTokenParameter(query: string, form: string): string | undefined {
  const inForm = tokensOf(form);
  const given = inForm.length > 0 ? inForm : tokensOf(query);
  return given.length === 1 ? given[0] : undefined;
}

const tokensOf = (text: string): readonly string[] =>
  hasMoreFields(text, MAX_FIELDS) ? [] : new URLSearchParams(text).getAll('token');

const READ: ReadonlySet<string> = new Set(NAMES);
const isRead = (name: string): name is OsmandName => READ.has(name);

function hasMoreFields(text: string, max: number): boolean {
  let fields = 1;
  for (let at = text.indexOf('&'); at !== -1 && fields <= max; at = text.indexOf('&', at + 1)) fields++;
  return fields > max;
}
