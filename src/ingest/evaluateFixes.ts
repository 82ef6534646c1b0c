import type { AreaCatalog } from '../areas/areaCatalog.memory.ts';
import type { Fleet } from '../devices/fleet.memory.ts';
import { NO_STAYS, type Stay } from '../devices/stays/packedStays.ts';
import { StayBudget, type StayLimit, StayRoom } from '../devices/stays/stayCounts.ts';
import type { GeofenceEvent } from '../events/fleetEvent.ts';
import { inTurns, Pace, type Steps, type WorkTurns } from '../lib/workTurns.ts';
import { type BatchEvaluation, evaluateBatch } from './deviceEvents.ts';
import type { BatchPoint, InOrderPoint, RefusedStays } from './fix.ts';
import { askShape, type GeofenceRun, geofenceSteps, type WatchedAreas } from './geofences.ts';
import type { LockedState } from './points.sql.ts';
import type { Subscriptions, Tenancy } from './watchers.memory.ts';

/** What points are evaluated against, and what they change. */
export interface IngestMemory {
  readonly fleet: Fleet;
  readonly areas: AreaCatalog;
  readonly tenancy: Tenancy;
  readonly subscriptions: Subscriptions;
}

/** Work is counted in areas evaluated. An event costs this much more: it is stored, and waits in memory until then. */
export const EVENT_WORK = 25;
/** Work of one transaction: half a million areas evaluated, or 20 000 events, and some hundred megabytes at most. */
const WORK_MAX = 500_000;
/**
 * One device beside others: four hundred events, or as many areas as take some milliseconds; and a point among two
 * thousand areas, whose stays would take the others in its transaction some 40 ms to store.
 */
const SHARED_LIMITS = { ofBatch: WORK_MAX, ofDevice: 400 * EVENT_WORK, ofPoint: 2_000 };
/** A point among ten areas takes some ten microseconds. `overdueMs` is far below what Postgres lets a transaction idle. */
const SHARED_TIMES = { baseMs: 10, perPointMs: 0.05, ofBatchMs: 250, overdueMs: 3_000 };
const EXCLUSIVE_LIMITS = { ofBatch: WORK_MAX, ofDevice: null };
/** What the areas contain is known, but for those that were changed since it was found out. */
const EXCLUSIVE_TIMES = {
  baseMs: 1_000,
  perPointMs: 0.05,
  ofBatchMs: Number.POSITIVE_INFINITY,
  overdueMs: 5_000,
};

/** The points that this transaction commits, evaluated. What it defers is in neither evaluation. */
export interface EvaluatedFixes<Point extends BatchPoint> {
  readonly evaluation: BatchEvaluation<Point>;
  readonly geofences: GeofenceEvaluation<Point>;
  /** Devices that are too much work to be committed together with others. */
  readonly oversized: ReadonlySet<number>;
}

/**
 * Evaluates points of locked devices and defers what is too much for one transaction: whole devices or, when the
 * transaction is exclusive to one device and it is `known` where its points lie, the last points of that device.
 */
export async function evaluateFixes<Point extends BatchPoint>(
  { memory, turns }: { readonly memory: IngestMemory; readonly turns: WorkTurns<string | number> },
  points: readonly Point[],
  locked: ReadonlyMap<number, LockedState>,
  nowMs: number,
  known: Pick<GeofenceRun, 'contains'> | null,
  budget: StayBudget,
): Promise<EvaluatedFixes<Point>> {
  const key = known === null ? 'points' : 'points of one device';
  // The devices are locked: this is urgent.
  const run = <T>(steps: Steps<T>): Promise<T> => inTurns(turns, key, steps, true);
  const evaluation = await run(evaluateBatch(points, locked, nowMs, WORK_MAX / EVENT_WORK));
  const limits = { ...limitsOf(known), stays: budget };
  const contains = known === null ? askShape : known.contains.bind(known);
  const geofences = await run(
    evaluateGeofences(evaluation.inOrder, locked, watchOf(memory, locked), limits, contains),
  );
  if (geofences.deferred.size === 0 && evaluation.deferred.length === 0) {
    return { evaluation, geofences, oversized: NONE };
  }

  const oversized = new Set<number>();
  for (const [deviceId, { isOversized }] of geofences.deferred) if (isOversized) oversized.add(deviceId);
  const unevaluated = new Set(evaluation.deferred);
  const committed = points.filter(
    (point) => !unevaluated.has(point) && !isDeferred(point, geofences.deferred.get(point.deviceId)),
  );
  // States are those after the last committed point. Geofences need no second evaluation: theirs end there already.
  return {
    evaluation: await run(evaluateBatch(committed, locked, nowMs)),
    geofences,
    oversized,
  };
}

const NONE: ReadonlySet<number> = new Set();

function limitsOf(known: Pick<GeofenceRun, 'contains'> | null): GeofenceLimits {
  const { overdueMs, ...times } = known === null ? SHARED_TIMES : EXCLUSIVE_TIMES;
  const untilMs = performance.now() + overdueMs;
  const isOverdue = () => performance.now() > untilMs;
  return { ...(known === null ? SHARED_LIMITS : EXCLUSIVE_LIMITS), times: { ...times, isOverdue } };
}

/** Nothing of a device that is left out whole is committed, late points included. */
function isDeferred({ fix }: BatchPoint, deferred: DeferredPoints | undefined): boolean {
  if (deferred === undefined) return false;
  return deferred.fromMs === null || fix.recordedAtMs >= deferred.fromMs;
}

/** The areas that watch each device, looked up once for each world of the batch. */
function watchOf(
  { areas, tenancy }: IngestMemory,
  locked: ReadonlyMap<number, LockedState>,
): (deviceId: number) => WatchedAreas {
  const byWorld = new Map<number, WatchedAreas>();
  return (deviceId) => {
    const { worldId } = locked.get(deviceId) as LockedState;
    let watch = byWorld.get(worldId);
    if (watch === undefined) {
      watch = watchedAreas(areas, tenancy, worldId);
      byWorld.set(worldId, watch);
    }
    return watch;
  };
}

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
