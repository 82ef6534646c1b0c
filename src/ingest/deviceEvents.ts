import { MOVING_FROM_KMH, PARKING_MS } from '../devices/device.ts';
import type { DeviceEvent } from '../events/fleetEvent.ts';
import { distanceM } from '../geo/wgs84.ts';
import { invariant } from '../lib/invariant.ts';
import { MINUTE_MS } from '../lib/time.ts';
import type { Fix } from './fix.ts';

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
 *   ignition_on, _off      the ignition is reported and differs from its last known value; a first value is not an event
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

/** A position and its time; recordedAtMs is null before the first one. */
interface TimedPosition {
  readonly recordedAtMs: number | null;
  readonly lat: number;
  readonly lng: number;
}

const LONGEST_GAP_MS = 10 * MINUTE_MS;
const KMH_PER_M_MS = 3_600;
const SPEED_PARTS = 1_000;

/**
 * The speed in km/h of a point that reports none: the straight distance from the previous point of its device,
 * divided by the time between them. 0 without a previous point, or when it is more than 10 minutes older, since a mean
 * over a longer time says nothing about now. It has three decimals: more would be noise, and would be stored.
 */
export function derivedSpeedKmh(previous: TimedPosition, point: TimedPosition): number {
  if (previous.recordedAtMs === null || point.recordedAtMs === null) return 0;
  const elapsedMs = point.recordedAtMs - previous.recordedAtMs;
  if (elapsedMs <= 0 || elapsedMs > LONGEST_GAP_MS) return 0;
  const speedKmh = (distanceM(previous.lat, previous.lng, point.lat, point.lng) / elapsedMs) * KMH_PER_M_MS;
  return Math.round(speedKmh * SPEED_PARTS) / SPEED_PARTS;
}

/**
 * What messages that repeated the newest point have said, as far as one that comes again must be known by it. Kept with
 * the device's state until its next point.
 */
interface Repeats {
  /** The latest time of sending among those with an ignition or a tag; at first that of the point itself. */
  readonly sentAtMs: number;
  /** Said without a time of sending: by the point itself, or by repeats. */
  readonly ignitions: readonly boolean[];
  readonly rfids: readonly string[];
}

/** What a repeat may add to, of a device's state: see DeviceState. */
interface Reported {
  readonly recordedAtMs: number | null;
  readonly ignition: boolean | null;
  readonly alarms: readonly string[];
  readonly rfid: string | null;
}

/**
 * Alarms of one point and its repeats, and tags of its repeats; more make no events, since they could not be remembered.
 */
export const REMEMBERED_MAX = 100;

/** What is known before the first repeat. Without an ignition of its own a point has the value known before it. */
function firstRepeats({ recordedAtMs, ignition, rfid }: Reported): Repeats {
  invariant(recordedAtMs !== null, 'only a point is repeated');
  return {
    sentAtMs: recordedAtMs,
    ignitions: ignition === null ? [] : [ignition],
    rfids: rfid === null ? [] : [rfid],
  };
}

/**
 * A message that carries the newest point of a device again, as heartbeats do without a fix → what the device's
 * state is to be. The state lacks:
 *
 *   alarm            when neither the point nor an earlier repeat carried it: whatever the order in which they come
 *   ignition, tag    that differs from the last one, if the message was sent later than all before it; or, where its
 *                    time of sending is not known, if none with this point has said so yet
 *
 * So a message that comes again finds nothing that it could add, whatever came in between. Returns the very `track`
 * when nothing changes.
 */
function addRepeat<Track extends Reported & { readonly repeats: Repeats | null }>(
  track: Track,
  repeat: Fix,
): Track {
  const alarms = withAlarms(track.alarms, repeat.alarms);
  const seen = track.repeats ?? firstRepeats(track);
  const repeats = withRepeat(seen, repeat);
  const ignition = isNews(repeat, repeat.ignition, seen.ignitions, repeats.ignitions, seen)
    ? repeat.ignition
    : track.ignition;
  const rfid = isNews(repeat, repeat.rfid, seen.rfids, repeats.rfids, seen) ? repeat.rfid : track.rfid;
  if (alarms === track.alarms && repeats === seen) return track;
  return { ...track, alarms, ignition, rfid, repeats: repeats === seen ? track.repeats : repeats };
}

/** Sent later than all before it, or said for the first time and remembered from now on. */
function isNews<T>(
  { sentAtMs }: Fix,
  value: T | null,
  before: readonly T[],
  after: readonly T[],
  seen: Repeats,
): boolean {
  if (value === null) return false;
  return sentAtMs === null ? before !== after : sentAtMs > seen.sentAtMs;
}

function withRepeat(seen: Repeats, { sentAtMs, ignition, rfid }: Fix): Repeats {
  if (sentAtMs !== null) {
    const says = ignition !== null || rfid !== null;
    return says && sentAtMs > seen.sentAtMs ? { ...seen, sentAtMs } : seen;
  }
  const ignitions = withValue(seen.ignitions, ignition);
  const rfids = withValue(seen.rfids, rfid);
  return ignitions === seen.ignitions && rfids === seen.rfids ? seen : { ...seen, ignitions, rfids };
}

function withValue<T>(values: readonly T[], value: T | null): readonly T[] {
  const isFull = values.length >= REMEMBERED_MAX;
  return value === null || isFull || values.includes(value) ? values : [...values, value];
}

function withAlarms(alarms: readonly string[], more: readonly string[]): readonly string[] {
  const added = more.filter((alarm) => !alarms.includes(alarm));
  const room = Math.max(0, REMEMBERED_MAX - alarms.length);
  return added.length === 0 || room === 0 ? alarms : [...alarms, ...added.slice(0, room)];
}

/** As compact JSON: [sentAtMs, ignitions, rfids]; null for none. */
export function encodeRepeats(repeats: Repeats | null): string | null {
  return repeats && JSON.stringify([repeats.sentAtMs, repeats.ignitions, repeats.rfids]);
}

/** The inverse of `encodeRepeats`. */
export function decodeRepeats(stored: string | null): Repeats | null {
  if (stored === null) return null;
  const row: unknown = JSON.parse(stored);
  invariant(Array.isArray(row) && row.length === 3, 'repeats are stored as three values');
  const [sentAtMs, ignitions, rfids]: unknown[] = row;
  invariant(Number.isSafeInteger(sentAtMs), 'repeats have a time of sending');
  invariant(Array.isArray(ignitions) && Array.isArray(rfids), 'repeats are stored as two lists');
  return { sentAtMs: sentAtMs as number, ignitions, rfids };
}
