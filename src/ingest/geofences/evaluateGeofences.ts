import type { AreaCatalog } from '../../areas/areaCatalog.memory.ts';
import { StayBudget, type StayLimit, StayRoom } from '../../devices/stays/stayCounts.ts';
import { NO_STAYS, type Stay } from '../../devices/stays/stays.ts';
import type { GeofenceEvent } from '../../events/fleetEvent.ts';
import { Pace, type Steps } from '../../lib/workTurns.ts';
import type { Tenancy } from '../../tenants/tenancy.memory.ts';
import type { BatchPoint, InOrderPoint } from '../fix.ts';
import { askShape, type GeofenceRun, geofenceSteps, type WatchedAreas } from './geofences.ts';

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
  /** The devices at some of whose points stays did not begin, for lack of room. */
  readonly refused: ReadonlyMap<number, RefusedStays>;
}

/** Points of one device at which stays did not begin: the times of the first and the last, and how many by limit. */
export interface RefusedStays {
  readonly firstMs: number;
  readonly lastMs: number;
  readonly points: Readonly<Record<StayLimit, number>>;
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
  /** Areas and stays of one point; a device with such a point is oversized. Without it a point has no limit. */
  readonly ofPoint?: number;
  /** The same by processor time, since nobody knows beforehand what one area costs. */
  readonly times?: EvaluationTimes;
  /** The stays that may begin; without it accounts have no limit. */
  readonly stays?: StayBudget;
}

/** Work is counted in areas evaluated. An event costs this much more: it is stored, and waits in memory until then. */
export const EVENT_WORK = 25;

/**
 * Evaluates points against the areas that watch their devices. The points are newer than all before them, sorted by
 * device and time (BatchEvaluation.inOrder); the events of the device itself count as work too.
 *
 * What exceeds the limits is deferred: all devices after the one that uses up the work of the batch or of its world, and
 * any device that exceeds one of them alone. When the batch has only one device, its first points are evaluated, so that
 * deferred points are newer than evaluated ones.
 */
export function* evaluateGeofences<Point extends BatchPoint>(
  points: readonly InOrderPoint<Point>[],
  before: ReadonlyMap<number, { readonly stays: readonly Stay[] }>,
  watchOf: (deviceId: number) => WatchedAreas,
  limits: GeofenceLimits,
  contains: GeofenceRun['contains'] = askShape,
): Steps<GeofenceEvaluation<Point>> {
  const stays = new Map<number, readonly Stay[]>();
  const events: GeofenceEventAt<Point>[] = [];
  const deferred = new Map<number, DeferredPoints>();
  const refused = new Map<number, RefusedStays>();
  const budget = limits.stays ?? new StayBudget();
  const pace = new Pace();
  const time = new EvaluationTime(pace, limits.times ?? UNLIMITED);
  const run: GeofenceRun = { pace, contains, isSpent: () => time.isSpent() };
  let work = 0;
  for (let start = 0, end = 0; start < points.length; start = end) {
    const { deviceId } = points[start]!.point;
    end = endOfDevice(points, start);
    const watch = watchOf(deviceId);
    if (work >= limits.ofBatch || time.isUsedUp(watch.deviceWorldId)) {
      deferred.set(deviceId, { fromMs: null, isOversized: false });
      continue;
    }
    time.begin(end - start);
    const eventsBefore = events.length;
    let current = before.get(deviceId)?.stays ?? NO_STAYS;
    const room = new StayRoom(budget, current.length);
    let refusal: RefusedStays | null = null;
    let isChanged = false;
    let deviceWork = 0;
    let isOversized = false;
    for (let n = start; n < end && !isOversized; n++) {
      const { point, eventCount } = points[n]!;
      if (pace.isDue()) {
        yield* pace.pause();
        isOversized = time.isSpent();
      }
      isOversized ||= limits.ofDevice === null && deviceWork >= limits.ofBatch;
      if (!isOversized) {
        deviceWork += EVENT_WORK * eventCount;
        const near = watch.near(point.fix.lat, point.fix.lng);
        const asked = near.length + current.length;
        if (limits.ofPoint !== undefined && asked > limits.ofPoint) isOversized = true;
        else if (asked > 0) {
          const step = yield* geofenceSteps(current, point.fix, watch, near, room, run);
          if (step === null) {
            isOversized = true;
            room.undo();
          } else {
            room.next();
            deviceWork += asked + EVENT_WORK * step.events.length;
            if (step.stays !== current) isChanged = true;
            current = step.stays;
            if (step.refusedBy !== null)
              refusal = refusedAgain(refusal, point.fix.recordedAtMs, step.refusedBy);
            for (const event of step.events) events.push({ point, event });
          }
        }
      }
      if (limits.ofDevice !== null) isOversized ||= deviceWork > limits.ofDevice;
      else if (isOversized) deferred.set(deviceId, { fromMs: point.fix.recordedAtMs, isOversized });
    }
    time.end(watch.deviceWorldId, end - start);
    work += deviceWork;
    if (isOversized && limits.ofDevice !== null) {
      deferred.set(deviceId, { fromMs: null, isOversized });
      events.length = eventsBefore;
      continue;
    }
    room.keep();
    if (isChanged) stays.set(deviceId, current);
    if (refusal !== null) refused.set(deviceId, refusal);
  }
  return { stays, events, deferred, refused };
}

function refusedAgain(before: RefusedStays | null, atMs: number, limit: StayLimit): RefusedStays {
  const points = before?.points ?? { account: 0, device: 0 };
  return {
    firstMs: before?.firstMs ?? atMs,
    lastMs: atMs,
    points: { ...points, [limit]: points[limit] + 1 },
  };
}

function endOfDevice(points: readonly InOrderPoint[], start: number): number {
  const { deviceId } = points[start]!.point;
  let end = start + 1;
  while (end < points.length && points[end]!.point.deviceId === deviceId) end++;
  return end;
}

/** How much processor time the evaluation of a batch may take, in milliseconds. */
interface EvaluationTimes {
  /** Of one device, and of all devices of one world: so much, and so much more for each of their points. */
  readonly baseMs: number;
  readonly perPointMs: number;
  /** Of all devices. */
  readonly ofBatchMs: number;
  /** True when others have waited for the batch for long enough, however little of it was done. */
  isOverdue(): boolean;
}

const UNLIMITED: EvaluationTimes = {
  baseMs: Number.POSITIVE_INFINITY,
  perPointMs: 0,
  ofBatchMs: Number.POSITIVE_INFINITY,
  isOverdue: () => false,
};

/** What the devices of a world have used. */
interface Share {
  workedMs: number;
  points: number;
}

/** Divides the time of a batch among worlds and devices, so that none of them uses up what the others need. */
class EvaluationTime {
  readonly #pace: Pace;
  readonly #times: EvaluationTimes;
  readonly #byWorld = new Map<number, Share>();
  #beganMs = 0;
  #deviceLimitMs = 0;

  constructor(pace: Pace, times: EvaluationTimes) {
    this.#pace = pace;
    this.#times = times;
  }

  /** Whether no further device of the world is to be evaluated. */
  isUsedUp(worldId: number): boolean {
    const { ofBatchMs } = this.#times;
    if (this.#pace.workedMs > ofBatchMs || this.#times.isOverdue()) return true;
    const share = this.#byWorld.get(worldId);
    return share !== undefined && share.workedMs > this.#limitMs(share.points);
  }

  /** Begins the time of a device with this many points. */
  begin(points: number): void {
    this.#beganMs = this.#pace.workedMs;
    this.#deviceLimitMs = this.#limitMs(points);
  }

  /** Whether the device has used more than it may. True for a moment is true from then on. */
  isSpent(): boolean {
    return this.#pace.workedMs - this.#beganMs > this.#deviceLimitMs || this.#times.isOverdue();
  }

  end(worldId: number, points: number): void {
    const share = this.#byWorld.get(worldId) ?? { workedMs: 0, points: 0 };
    share.workedMs += this.#pace.workedMs - this.#beganMs;
    share.points += points;
    this.#byWorld.set(worldId, share);
  }

  #limitMs(points: number): number {
    return this.#times.baseMs + this.#times.perPointMs * points;
  }
}

/**
 * The areas that watch the devices of one world, for the engine. Made for one batch and not kept: memberships are
 * looked up here, once.
 */
export function watchedAreas(areas: AreaCatalog, tenancy: Tenancy, deviceWorldId: number): WatchedAreas {
  const worldIds = tenancy.watchersOf(deviceWorldId);
  return {
    deviceWorldId,
    near: (lat, lng) => areas.near(worldIds, lat, lng),
    byId: (areaId) => areas.area(worldIds, areaId),
    isShared: (worldId) => tenancy.isShared(worldId),
  };
}
