import { DAY_MS, MINUTE_MS } from '../lib/durations.ts';

/** How long a device stands still, by GPS time, before it counts as parked. */
export const PARKING_MS = 120_000;

export const DEVICE_STATUSES = ['moving', 'parked', 'offline', 'unknown'] as const;

export type DeviceStatus = (typeof DEVICE_STATUSES)[number];

/** Below this a device stands; GPS reports a few km/h of noise for a parked vehicle. */
export const MOVING_FROM_KMH = 5;

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
export function deviceStatus(recordedAtMs: number | null, speedKmh: number, nowMs: number): DeviceStatus {
  if (recordedAtMs === null) return 'unknown';
  const ageMs = nowMs - recordedAtMs;
  if (speedKmh < MOVING_FROM_KMH) return ageMs <= PARKED_FOR_MS ? 'parked' : 'offline';
  return ageMs <= MOVING_FOR_MS ? 'moving' : 'offline';
}
