import { fail, ok, type Result } from '../../lib/result.ts';
import type { ParsedPoint, Rejection } from './parsePoint.ts';
import { KMH_PER_KNOT, NO_FIX, objectOrEmpty, parseInstantMs, parsePoint, REJECTIONS } from './parsePoint.ts';

/**
 * The body of POST /traccar → a fix, under the rules of parsePoint; `ignored` uses the names of /positions.
 * Speed is in knots, odometer and totalDistance in metres. `valid:false` says that the receiver had no fix,
 * so its coordinates are leftovers: INVALID_COORDINATES. No position object is INVALID_BODY, no device INVALID_IMEI.
 * deviceTime says when the device sent it: later than fixTime where Traccar repeats the last fix (`outdated`).
 */
export function parseTraccar(body: unknown, nowMs: number, oldestMs: number): Result<ParsedPoint, Rejection> {
  const { position, device } = objectOrEmpty(body);
  if (typeof position !== 'object' || position === null) return fail(REJECTIONS.INVALID_BODY);
  const { fixTime, deviceTime, valid, latitude, longitude, altitude, speed, course, attributes } =
    objectOrEmpty(position);
  if (valid === false) return fail(NO_FIX);
  const { sat, ignition, alarm, odometer, totalDistance, driverUniqueId } = objectOrEmpty(attributes);
  const point = {
    imei: objectOrEmpty(device)['uniqueId'],
    recorded_at: fixTime,
    latitude,
    longitude,
    altitude_m: altitude,
    speed_kmh: convert(speed, (knots) => knots * KMH_PER_KNOT),
    heading: course,
    satellites: sat,
    odometer_km: convert(odometer ?? totalDistance, (metres) => metres / 1_000),
    ignition,
    alarm,
    rfid: driverUniqueId,
  };
  const parsed = parsePoint(point, nowMs, oldestMs);
  const sentAtMs = parseInstantMs(deviceTime);
  if (!parsed.ok || sentAtMs === null || sentAtMs <= parsed.value.fix.recordedAtMs) return parsed;
  return ok({ ...parsed.value, fix: { ...parsed.value.fix, sentAtMs } });
}

/** A number in another unit. Anything else is returned unchanged, and parsePoint rejects it. */
function convert(value: unknown, toUnit: (value: number) => number): unknown {
  return typeof value === 'number' ? toUnit(value) : value;
}
