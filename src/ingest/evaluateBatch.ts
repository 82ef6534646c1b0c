import type { DeviceEvent } from '../events/deviceEvent.ts';
import type { Steps } from '../lib/workTurns.ts';
import { type DeviceState, stepDevice, stepRepeat } from './deviceEvents.ts';
import type { Fix } from './fix.ts';
import { FUTURE_TOLERANCE_MS } from './formats/rejection.ts';

/** A parsed point and the device that sent it. */
export interface BatchPoint {
  readonly deviceId: number;
  readonly fix: Fix;
}

/** A point that is newer than everything evaluated for its device before it. */
export interface InOrderPoint<Point extends BatchPoint = BatchPoint> {
  readonly point: Point;
  /** As reported, or derived from the previous point. */
  readonly speedKmh: number;
  /** How many device events it produced. */
  readonly eventCount: number;
}

export interface DeviceEventAt<Point extends BatchPoint = BatchPoint> {
  readonly point: Point;
  readonly occurredAtMs: number;
  readonly event: DeviceEvent;
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
 * ahead of `nowMs` than a point may be. Evaluation ends with the point that brings the events to `eventsMax`.
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
    if (state === undefined) throw new Error(`device ${deviceId} has no state`);
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
