import type { Steps } from '../base/workTurns.ts';
import type { BatchPoint, InOrderPoint } from './evaluateBatch.ts';
import { type GeofenceEvent, geofenceSteps, type WatchedAreas } from './geofences.ts';
import { NO_STAYS, type Stay } from './stays.ts';

/** A geofence event and the point that produced it. */
export interface GeofenceEventAt<Point extends BatchPoint = BatchPoint> {
  readonly point: Point;
  readonly event: GeofenceEvent;
}

/** What the points of a batch did to the stays of their devices. */
export interface GeofenceEvaluation<Point extends BatchPoint = BatchPoint> {
  /** New stays, by device, where they changed. */
  readonly stays: ReadonlyMap<number, readonly Stay[]>;
  /** In the order of the points; for one point exits first, then entries, each by area. */
  readonly events: readonly GeofenceEventAt<Point>[];
  /** The devices whose points were not all evaluated. `stays` and `events` contain nothing of the points left out. */
  readonly deferred: ReadonlyMap<number, DeferredPoints>;
}

/** Points of one device that are left for a later batch. */
export interface DeferredPoints {
  /** The time of the first point left out; null: the whole device is left out. */
  readonly fromMs: number | null;
  /** True when the device is more work than may be done together with others. */
  readonly isOversized: boolean;
}

/**
 * How much work is done for one batch, and for one device of it; null: the only device of the batch may use all of it.
 */
export interface GeofenceLimits {
  readonly ofDevice: number | null;
  readonly ofBatch: number;
}

/** Work is counted in areas evaluated. An event costs this much more: it is stored, and waits in memory until then. */
export const EVENT_WORK = 25;
/** Points without areas to evaluate that are processed before other work has its turn. */
const POINTS_PER_STEP = 256;

/**
 * Evaluates points against the areas that watch their devices. The points are newer than all before them, sorted by
 * device and time (BatchEvaluation.inOrder); the events of the device itself count as work too.
 *
 * What exceeds the limits is deferred: all devices after the one that uses up the work of the batch, and any device
 * that is too much by itself. When the batch has only one device, its first points are evaluated, so no deferred point
 * is older than an evaluated one.
 */
export function* evaluateGeofences<Point extends BatchPoint>(
  points: readonly InOrderPoint<Point>[],
  before: ReadonlyMap<number, { readonly stays: readonly Stay[] }>,
  watchOf: (deviceId: number) => WatchedAreas,
  limits: GeofenceLimits,
): Steps<GeofenceEvaluation<Point>> {
  const stays = new Map<number, readonly Stay[]>();
  const events: GeofenceEventAt<Point>[] = [];
  const deferred = new Map<number, DeferredPoints>();
  let work = 0;
  let untilPause = POINTS_PER_STEP;
  for (let start = 0, end = 0; start < points.length; start = end) {
    const { deviceId } = points[start]!.point;
    end = endOfDevice(points, start);
    if (work >= limits.ofBatch) {
      deferred.set(deviceId, { fromMs: null, isOversized: false });
      continue;
    }
    const watch = watchOf(deviceId);
    const eventsBefore = events.length;
    let current = before.get(deviceId)?.stays ?? NO_STAYS;
    let isChanged = false;
    let deviceWork = 0;
    let isOversized = false;
    for (let n = start; n < end; n++) {
      const { point, eventCount } = points[n]!;
      if (limits.ofDevice === null && deviceWork >= limits.ofBatch) {
        deferred.set(deviceId, { fromMs: point.fix.recordedAtMs, isOversized: true });
        break;
      }
      if (--untilPause === 0) {
        untilPause = POINTS_PER_STEP;
        yield;
      }
      deviceWork += EVENT_WORK * eventCount;
      const near = watch.near(point.fix.lat, point.fix.lng);
      if (near.length > 0 || current.length > 0) {
        const step = yield* geofenceSteps(current, point.fix, watch, near);
        deviceWork += near.length + current.length + EVENT_WORK * step.events.length;
        if (step.stays !== current) isChanged = true;
        current = step.stays;
        for (const event of step.events) events.push({ point, event });
      }
      isOversized = limits.ofDevice !== null && deviceWork > limits.ofDevice;
      if (isOversized) break;
    }
    work += deviceWork;
    if (isOversized) {
      deferred.set(deviceId, { fromMs: null, isOversized });
      events.length = eventsBefore;
    } else if (isChanged) {
      stays.set(deviceId, current);
    }
  }
  return { stays, events, deferred };
}

function endOfDevice(points: readonly InOrderPoint[], start: number): number {
  const { deviceId } = points[start]!.point;
  let end = start + 1;
  while (end < points.length && points[end]!.point.deviceId === deviceId) end++;
  return end;
}
