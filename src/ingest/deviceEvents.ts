import { MOVING_FROM_KMH, PARKING_MS } from '../devices/deviceStatus.ts';
import type { DeviceEvent } from '../events/deviceEvent.ts';
import { distanceM } from '../geo/distance.ts';
import { MINUTE_MS } from '../lib/durations.ts';
import { invariant } from '../lib/invariant.ts';
import type { Fix } from './fix.ts';
import { addRepeat, firstRepeats, type Repeats } from './repeats.ts';

/**
 * What is kept of a device between two of its points: the newest evaluated point, and since when the device stands
 * still. recordedAtMs is null before the first point (NO_STATE).
 */
export interface DeviceState {
  readonly recordedAtMs: number | null;
  readonly lat: number;
  readonly lng: number;
  readonly altitudeM: number;
  readonly speedKmh: number;
  readonly heading: number;
  readonly satellites: number;
  /** The last known value, from this point or an earlier one. The same holds for ignition. */
  readonly odometerKm: number | null;
  readonly ignition: boolean | null;
  /** From the newest point and its repeats only. The same holds for rfid. */
  readonly alarms: readonly string[];
  readonly rfid: string | null;
  /** What repeats of the newest point have reported; null: nothing beyond the point itself. */
  readonly repeats: Repeats | null;
  /** The first of the slow points up to now; null while the newest point is fast. */
  readonly slowSinceMs: number | null;
  /** Equal to slowSinceMs once parking_start was produced, else null. */
  readonly parkedAtMs: number | null;
}

export const NO_STATE: DeviceState = {
  recordedAtMs: null,
  lat: 0,
  lng: 0,
  altitudeM: 0,
  speedKmh: 0,
  heading: 0,
  satellites: 0,
  odometerKm: null,
  ignition: null,
  alarms: [],
  rfid: null,
  repeats: null,
  slowSinceMs: null,
  parkedAtMs: null,
};

export interface DeviceStep {
  readonly state: DeviceState;
  /** In the order of the table below. */
  readonly events: readonly DeviceEvent[];
}

const TAMPER_ALARMS: ReadonlySet<string> = new Set(['tampering', 'tamper', 'removing']);

/**
 * One point later than the device's newest one → the new state, and the events that the point produces. Late points
 * must not come here: that is an invariant. A missing speed is derived. "Slow" is under 5 km/h; "the previous point" is
 * the one in `before`.
 *
 *   event                  when
 *   ignition_on, _off      the ignition is reported and differs from its last known value (a first value is no event)
 *   parking_end            the point is fast and the device was parked
 *   parking_start          the point is slow and completes 120 s since the first slow point, once per stay
 *   tamper_alert           an alarm tampering, tamper or removing that the previous point did not carry
 *   alarm                  any other alarm that the previous point did not carry
 *   rfid                   a tag is reported and the previous point did not carry the same
 */
export function stepDevice(before: DeviceState, fix: Fix): DeviceStep {
  const { recordedAtMs } = fix;
  invariant(
    before.recordedAtMs === null || recordedAtMs > before.recordedAtMs,
    'a late point must not be stepped',
  );
  const speedKmh = fix.speedKmh ?? derivedSpeedKmh(before, fix);
  const slowSinceMs = speedKmh < MOVING_FROM_KMH ? (before.slowSinceMs ?? recordedAtMs) : null;
  const isParked = slowSinceMs !== null && recordedAtMs - slowSinceMs >= PARKING_MS;
  const state: DeviceState = {
    recordedAtMs,
    lat: fix.lat,
    lng: fix.lng,
    altitudeM: fix.altitudeM,
    speedKmh,
    heading: fix.heading,
    satellites: fix.satellites,
    odometerKm: fix.odometerKm ?? before.odometerKm,
    ignition: fix.ignition ?? before.ignition,
    alarms: fix.alarms,
    rfid: fix.rfid,
    repeats: fix.sentAtMs === null ? null : { ...firstRepeats(fix), sentAtMs: fix.sentAtMs },
    slowSinceMs,
    parkedAtMs: isParked ? slowSinceMs : null,
  };
  return { state, events: eventsBetween(before, state) };
}

/**
 * A message that carries the newest point again → the state with what it lacked (see addRepeat), and the events of
 * that, at the position of the point. That the times are equal is an invariant. Nothing else of the state changes;
 * where nothing changes at all, the given object is returned.
 */
export function stepRepeat(before: DeviceState, repeat: Fix): DeviceStep {
  invariant(repeat.recordedAtMs === before.recordedAtMs, 'only the newest point is repeated');
  const state = addRepeat(before, repeat);
  return { state, events: state === before ? NO_EVENTS : eventsBetween(before, state) };
}

const NO_EVENTS: readonly DeviceEvent[] = [];

function eventsBetween(before: DeviceState, after: DeviceState): readonly DeviceEvent[] {
  const events: DeviceEvent[] = [];
  const position = { lat: after.lat, lng: after.lng };
  if (before.ignition !== null && after.ignition !== before.ignition) {
    events.push({ position, type: after.ignition ? 'ignition_on' : 'ignition_off' });
  }
  if (before.parkedAtMs !== null && after.parkedAtMs === null) {
    events.push({ position, type: 'parking_end', parkedAtMs: before.parkedAtMs });
  }
  if (before.parkedAtMs === null && after.parkedAtMs !== null) {
    events.push({ position, type: 'parking_start', parkedAtMs: after.parkedAtMs });
  }
  for (const alarm of after.alarms) {
    if (before.alarms.includes(alarm)) continue;
    events.push({ position, type: TAMPER_ALARMS.has(alarm) ? 'tamper_alert' : 'alarm', alarm });
  }
  if (after.rfid !== null && after.rfid !== before.rfid)
    events.push({ position, type: 'rfid', rfid: after.rfid });
  return events;
}

/** A place at a time; recordedAtMs null: there is none. */
interface Passage {
  readonly recordedAtMs: number | null;
  readonly lat: number;
  readonly lng: number;
}

const LONGEST_GAP_MS = 10 * MINUTE_MS;
const KMH_PER_M_MS = 3_600;

/**
 * The speed in km/h of a point that reports none: the straight way from the previous point of its device over
 * the time between them. 0 when there is no previous point or it is more than 10 minutes older, since a mean
 * over a longer time says nothing about now.
 */
export function derivedSpeedKmh(previous: Passage, point: Passage): number {
  if (previous.recordedAtMs === null || point.recordedAtMs === null) return 0;
  const elapsedMs = point.recordedAtMs - previous.recordedAtMs;
  if (elapsedMs <= 0 || elapsedMs > LONGEST_GAP_MS) return 0;
  return (distanceM(previous.lat, previous.lng, point.lat, point.lng) / elapsedMs) * KMH_PER_M_MS;
}
