import { invariant } from '../base/invariant.ts';
import type { LatLng } from '../geometry/latLng.ts';
import { derivedSpeedKmh } from './derivedSpeed.ts';
import { MOVING_FROM_KMH } from './deviceStatus.ts';
import type { Fix } from './fix.ts';
import { addRepeat, firstRepeats, type Repeats } from './repeats.ts';

/**
 * What is kept of a device between two of its points: the newest point evaluated, and since when it stands.
 * recordedAtMs is null before the first point (NO_TRACK).
 */
export interface DeviceTrack {
  readonly recordedAtMs: number | null;
  readonly lat: number;
  readonly lng: number;
  readonly altitudeM: number;
  readonly speedKmh: number;
  readonly heading: number;
  readonly satellites: number;
  /** The last value known, from this point or an earlier one; so is ignition. */
  readonly odometerKm: number | null;
  readonly ignition: boolean | null;
  /** Of the newest point and its repeats alone; so is rfid. */
  readonly alarms: readonly string[];
  readonly rfid: string | null;
  /** null: nothing beyond the point itself. */
  readonly repeats: Repeats | null;
  /** The first of the slow points up to now; null while the newest point is fast. */
  readonly slowSinceMs: number | null;
  /** Equal to slowSinceMs once parking_start was produced, else null. */
  readonly parkedAtMs: number | null;
}

export const NO_TRACK: DeviceTrack = {
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

/** A fix whose speed is known: as reported, or derived. */
export type SpeedFix = Fix & { readonly speedKmh: number };

/** What one point tells about its device; `position` is the point's. */
export type DeviceEvent = { readonly position: LatLng } & (
  | { readonly type: 'ignition_on' | 'ignition_off' }
  | { readonly type: 'parking_start' | 'parking_end'; readonly parkedAtMs: number }
  | { readonly type: 'tamper_alert' | 'alarm'; readonly alarm: string }
  | { readonly type: 'rfid'; readonly rfid: string }
);

export interface DeviceStep {
  readonly track: DeviceTrack;
  readonly fix: SpeedFix;
  /** All of the time of the fix, in the order of the table below. */
  readonly events: readonly DeviceEvent[];
}

/** How long a device stands, by GPS time, before it counts as parked. */
const PARKING_MS = 120_000;

const TAMPER_ALARMS: ReadonlySet<string> = new Set(['tampering', 'tamper', 'removing']);

/**
 * One point later than the device's newest one (an invariant: late points never come here) → the new track, the
 * point with its speed, and the events it produces. "Slow" is under 5 km/h, "the previous point" the track's.
 *
 *   event                  when
 *   ignition_on, _off      the ignition is reported and differs from its last known value (no first value)
 *   parking_end            the point is fast and the device was parked
 *   parking_start          the point is slow and completes 120 s since the first slow point, once per stay
 *   tamper_alert           an alarm tampering, tamper or removing that the previous point did not carry
 *   alarm                  any other alarm that the previous point did not carry
 *   rfid                   a tag is reported and the previous point did not carry the same
 */
export function stepDevice(track: DeviceTrack, reported: Fix): DeviceStep {
  const { recordedAtMs } = reported;
  invariant(
    track.recordedAtMs === null || recordedAtMs > track.recordedAtMs,
    'a late point must not be stepped',
  );
  const speedKmh = reported.speedKmh ?? derivedSpeedKmh(track, reported);
  const fix = { ...reported, speedKmh };
  const slowSinceMs = speedKmh < MOVING_FROM_KMH ? (track.slowSinceMs ?? recordedAtMs) : null;
  const parked = slowSinceMs !== null && recordedAtMs - slowSinceMs >= PARKING_MS;
  const next: DeviceTrack = {
    recordedAtMs,
    lat: fix.lat,
    lng: fix.lng,
    altitudeM: fix.altitudeM,
    speedKmh,
    heading: fix.heading,
    satellites: fix.satellites,
    odometerKm: fix.odometerKm ?? track.odometerKm,
    ignition: fix.ignition ?? track.ignition,
    alarms: fix.alarms,
    rfid: fix.rfid,
    repeats: fix.sentAtMs === null ? null : { ...firstRepeats(fix), sentAtMs: fix.sentAtMs },
    slowSinceMs,
    parkedAtMs: parked ? slowSinceMs : null,
  };
  return { track: next, fix, events: eventsBetween(track, next) };
}

/**
 * A message that carries the newest point again (an invariant) → the track with what it lacked (see addRepeat), and the
 * events of that, at the place of the point. Nothing else of the track changes, and the very `track` is returned where
 * nothing does.
 */
export function stepRepeat(track: DeviceTrack, repeat: Fix): Pick<DeviceStep, 'track' | 'events'> {
  invariant(repeat.recordedAtMs === track.recordedAtMs, 'only the newest point is repeated');
  const next = addRepeat(track, repeat);
  return { track: next, events: next === track ? [] : eventsBetween(track, next) };
}

function eventsBetween(before: DeviceTrack, after: DeviceTrack): readonly DeviceEvent[] {
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
