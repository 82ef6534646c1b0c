import { MOVING_FROM_KMH, PARKING_MS } from '../devices/device.ts';
import type { DeviceEvent } from '../events/fleetEvent.ts';
import { distanceM } from '../geo/wgs84.ts';
import { invariant } from '../lib/errors.ts';
import { MINUTE_MS } from '../lib/time.ts';
import type { Steps } from '../lib/workTurns.ts';
import type { BatchPoint, DeviceEventAt, Fix, InOrderPoint } from './fix.ts';
import { FUTURE_TOLERANCE_MS } from './formats/parsePoint.ts';

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
    repeats: fix.sentAtMs === null ? null : firstRepeats(fix.sentAtMs, fix),
    slowSinceMs,
    parkedAtMs: isParked ? slowSinceMs : null,
  };
  return { state, events: eventsBetween(before, state) };
}

/**
 * A message that carries the newest point of a device again, as heartbeats do without a fix → the state with what it
 * lacked, and the events of that, at the position of the point. That the times are equal is an invariant. The state lacks:
 *
 *   alarm            when neither the point nor an earlier repeat carried it: whatever the order in which they come
 *   ignition, tag    that differs from the last one, if the message was sent later than all before it; or, where its
 *                    time of sending is not known, if none with this point has said so yet
 *
 * So a message that comes again finds nothing that it could add, whatever came in between. Where nothing changes, the
 * given object is returned.
 */
export function stepRepeat(before: DeviceState, repeat: Fix): DeviceStep {
  invariant(repeat.recordedAtMs === before.recordedAtMs, 'only the newest point is repeated');
  const alarms = withNew(before.alarms, repeat.alarms);
  const seen = before.repeats ?? firstRepeats(repeat.recordedAtMs, before);
  const repeats = withRepeat(seen, repeat);
  if (alarms === before.alarms && repeats === seen) return { state: before, events: NO_EVENTS };
  const { sentAtMs, ignition, rfid } = repeat;
  const isNews = (isFirst: boolean) => (sentAtMs === null ? isFirst : sentAtMs > seen.sentAtMs);
  const state: DeviceState = {
    ...before,
    alarms,
    ignition: ignition !== null && isNews(repeats.ignitions !== seen.ignitions) ? ignition : before.ignition,
    rfid: rfid !== null && isNews(repeats.rfids !== seen.rfids) ? rfid : before.rfid,
    repeats: repeats === seen ? before.repeats : repeats,
  };
  return { state, events: eventsBetween(before, state) };
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

type TimedPosition = Pick<DeviceState, 'recordedAtMs' | 'lat' | 'lng'>;

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

/** Alarms of one point and its repeats, and tags of its repeats; more make no events, since they could not be remembered. */
export const REMEMBERED_MAX = 100;

/** What is known before the first repeat. Without an ignition of its own a point has the value known before it. */
function firstRepeats(
  recordedAtMs: number,
  { ignition, rfid }: Pick<DeviceState, 'ignition' | 'rfid'>,
): Repeats {
  return {
    sentAtMs: recordedAtMs,
    ignitions: ignition === null ? [] : [ignition],
    rfids: rfid === null ? [] : [rfid],
  };
}

function withRepeat(seen: Repeats, { sentAtMs, ignition, rfid }: Fix): Repeats {
  if (sentAtMs !== null) {
    const says = ignition !== null || rfid !== null;
    return says && sentAtMs > seen.sentAtMs ? { ...seen, sentAtMs } : seen;
  }
  const ignitions = withNew(seen.ignitions, ignition === null ? [] : [ignition]);
  const rfids = withNew(seen.rfids, rfid === null ? [] : [rfid]);
  return ignitions === seen.ignitions && rfids === seen.rfids ? seen : { ...seen, ignitions, rfids };
}

/** The very `values` when there is nothing to add, or no room. */
function withNew<T>(values: readonly T[], more: readonly T[]): readonly T[] {
  const added = more
    .filter((value) => !values.includes(value))
    .slice(0, Math.max(0, REMEMBERED_MAX - values.length));
  return added.length === 0 ? values : [...values, ...added];
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

/**
 * What a batch does, before anything is stored. Every point of the batch is in exactly one of the first four lists:
 * - `inOrder`: newer than everything evaluated for its device. Sorted by device, then time; devices are in the order of
 *   their first points in the batch.
 * - `late`: not newer than the newest evaluated point. Only the database knows whether it is stored already.
 * - `repeats`: same device and time as an earlier point of the batch.
 * - `deferred`: not evaluated, because there are too many events. Of a device these are its newest points.
 *
 * The rest is what the points changed:
 * - `moved`: the new state of every device with a point in order.
 * - `amended`: the new state of every other device to whose newest point a repeat has added something.
 * - `events`: in the order of production.
 */
export interface BatchEvaluation<Point extends BatchPoint = BatchPoint> {
  readonly inOrder: readonly InOrderPoint<Point>[];
  readonly late: readonly Point[];
  readonly repeats: readonly Point[];
  readonly deferred: readonly Point[];
  readonly moved: ReadonlyMap<number, DeviceState>;
  readonly amended: ReadonlyMap<number, DeviceState>;
  readonly events: readonly DeviceEventAt<Point>[];
}

/** Some two hundred microseconds of work. */
const POINTS_PER_STEP = 250;

/**
 * Evaluates a batch against the states that its devices had before it. Of points with equal device and time the first
 * counts. What a repeat of the newest point adds has the time at which the repeat was sent, unless that is further
 * ahead of `nowMs` than a point may be. Evaluation ends with the point whose events reach `eventsMax`.
 */
export function* evaluateBatch<Point extends BatchPoint>(
  points: readonly Point[],
  before: ReadonlyMap<number, { readonly state: DeviceState }>,
  nowMs: number,
  eventsMax = Number.POSITIVE_INFINITY,
): Steps<BatchEvaluation<Point>> {
  const inOrder: InOrderPoint<Point>[] = [];
  const late: Point[] = [];
  const repeats: Point[] = [];
  const deferred: Point[] = [];
  const moved = new Map<number, DeviceState>();
  const amended = new Map<number, DeviceState>();
  const events: DeviceEventAt<Point>[] = [];
  let previous: Point | undefined;
  let untilPause = POINTS_PER_STEP;
  for (const n of inTimeOrder(points)) {
    if (--untilPause === 0) {
      untilPause = POINTS_PER_STEP;
      yield;
    }
    const point = points[n] as Point;
    const { deviceId, fix } = point;
    if (events.length >= eventsMax) {
      deferred.push(point);
      continue;
    }
    const isRepeat =
      previous !== undefined &&
      previous.deviceId === deviceId &&
      previous.fix.recordedAtMs === fix.recordedAtMs;
    previous = point;
    const state = moved.get(deviceId) ?? amended.get(deviceId) ?? before.get(deviceId)?.state;
    invariant(state !== undefined, `device ${deviceId} has a state`);
    if (state.recordedAtMs === null || fix.recordedAtMs > state.recordedAtMs) {
      const step = stepDevice(state, fix);
      moved.set(deviceId, step.state);
      amended.delete(deviceId);
      inOrder.push({ point, speedKmh: step.state.speedKmh, eventCount: step.events.length });
      for (const event of step.events) events.push({ point, occurredAtMs: fix.recordedAtMs, event });
      continue;
    }
    (isRepeat ? repeats : late).push(point);
    if (fix.recordedAtMs < state.recordedAtMs) continue;
    const step = stepRepeat(state, fix);
    if (step.state !== state) (moved.has(deviceId) ? moved : amended).set(deviceId, step.state);
    const occurredAtMs = repeatedAtMs(fix, nowMs);
    for (const event of step.events) events.push({ point, occurredAtMs, event });
  }
  return { inOrder, late, repeats, deferred, moved, amended, events };
}

function repeatedAtMs({ recordedAtMs, sentAtMs }: Fix, nowMs: number): number {
  return sentAtMs !== null && sentAtMs <= nowMs + FUTURE_TOLERANCE_MS ? sentAtMs : recordedAtMs;
}

/** Indexes by device, in the order of their first points in the batch, then by time, then by index. */
function inTimeOrder(points: readonly BatchPoint[]): Uint32Array {
  const firstOf = new Map<number, number>();
  const first = Uint32Array.from(points, ({ deviceId }, n) => {
    const known = firstOf.get(deviceId);
    if (known !== undefined) return known;
    firstOf.set(deviceId, n);
    return n;
  });
  const order = Uint32Array.from(points, (_, n) => n);
  return order.sort((a, b) => {
    const x = points[a] as BatchPoint;
    const y = points[b] as BatchPoint;
    return first[a]! - first[b]! || x.fix.recordedAtMs - y.fix.recordedAtMs || a - b;
  });
}
