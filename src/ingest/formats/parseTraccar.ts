import { fail, ok, type Result } from '../../lib/result.ts';
import {
  KMH_PER_KNOT,
  NO_FIX,
  objectOrEmpty,
  type ParsedPoint,
  parseInstantMs,
  parsePoint,
  REJECTIONS,
  type Rejection,
} from './parsePoint.ts';

/** The parts that are read of what Traccar forwards with `forward.type=json`. */
interface TraccarBody {
  position?: unknown;
  device?: unknown;
}
interface TraccarPosition {
  fixTime?: unknown;
  deviceTime?: unknown;
  latitude?: unknown;
  longitude?: unknown;
  altitude?: unknown;
  speed?: unknown;
  course?: unknown;
  valid?: unknown;
  attributes?: unknown;
}
interface TraccarAttributes {
  sat?: unknown;
  ignition?: unknown;
  alarm?: unknown;
  odometer?: unknown;
  totalDistance?: unknown;
  driverUniqueId?: unknown;
}

/**
 * The body of POST /traccar → a fix, under the rules of parsePoint; `ignored` uses the names of /positions.
 * Speed is in knots, odometer and totalDistance in metres. `valid:false` says that the receiver had no fix,
 * so its coordinates are leftovers: INVALID_COORDINATES. No position object is INVALID_BODY, no device INVALID_IMEI.
 * deviceTime says when the device sent it: later than fixTime where Traccar repeats the last fix (`outdated`).
 */
export function parseTraccar(body: unknown, nowMs: number, oldestMs: number): Result<ParsedPoint, Rejection> {
  const { position: positionPart, device: devicePart }: TraccarBody = objectOrEmpty(body);
  if (typeof positionPart !== 'object' || positionPart === null) return fail(REJECTIONS.INVALID_BODY);
  const position: TraccarPosition = positionPart;
  if (position.valid === false) return fail(NO_FIX);
  const device: { uniqueId?: unknown } = objectOrEmpty(devicePart);
  const attributes: TraccarAttributes = objectOrEmpty(position.attributes);
  const point = {
    imei: device.uniqueId,
    recorded_at: position.fixTime,
    latitude: position.latitude,
    longitude: position.longitude,
    altitude_m: position.altitude,
    speed_kmh: convert(position.speed, (knots) => knots * KMH_PER_KNOT),
    heading: position.course,
    satellites: attributes.sat,
    odometer_km: convert(attributes.odometer ?? attributes.totalDistance, (metres) => metres / 1_000),
    ignition: attributes.ignition,
    alarm: attributes.alarm,
    rfid: attributes.driverUniqueId,
  };
  const parsed = parsePoint(point, nowMs, oldestMs);
  const sentAtMs = parseInstantMs(position.deviceTime);
  if (!parsed.ok || sentAtMs === null || sentAtMs <= parsed.value.fix.recordedAtMs) return parsed;
  return ok({ ...parsed.value, fix: { ...parsed.value.fix, sentAtMs } });
}

/** A number in another unit. Anything else is returned unchanged, and parsePoint rejects it. */
function convert(value: unknown, toUnit: (value: number) => number): unknown {
  return typeof value === 'number' ? toUnit(value) : value;
}
