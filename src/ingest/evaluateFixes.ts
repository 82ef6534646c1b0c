import type { AreaCatalog } from '../areas/areaCatalog.memory.ts';
import type { Fleet } from '../devices/fleet.memory.ts';
import type { StayBudget } from '../devices/stays/stayCounts.ts';
import { inTurns, type Steps, type WorkTurns } from '../lib/workTurns.ts';
import type { Tenancy } from '../tenants/tenancy.memory.ts';
import type { Subscriptions } from '../webhooks/subscriptions.memory.ts';
import { type DeviceState, stepDevice, stepRepeat } from './deviceEvents.ts';
import type { BatchPoint, DeviceEventAt, Fix, InOrderPoint } from './fix.ts';
import { FUTURE_TOLERANCE_MS } from './formats/parsePoint.ts';
import {
  type DeferredPoints,
  EVENT_WORK,
  evaluateGeofences,
  type GeofenceEvaluation,
  type GeofenceLimits,
  watchedAreas,
} from './geofences/evaluateGeofences.ts';
import { askShape, type KnownInside, type WatchedAreas } from './geofences/geofences.ts';
import type { LockedState } from './points.sql.ts';

/** What points are evaluated against, and what they change. */
export interface IngestMemory {
  readonly fleet: Fleet;
  readonly areas: AreaCatalog;
  readonly tenancy: Tenancy;
  readonly subscriptions: Subscriptions;
}

export interface EvaluatePorts {
  readonly memory: IngestMemory;
  readonly turns: WorkTurns<string | number>;
}

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
  { memory, turns }: EvaluatePorts,
  points: readonly Point[],
  locked: ReadonlyMap<number, LockedState>,
  nowMs: number,
  known: KnownInside | null,
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

function limitsOf(known: KnownInside | null): GeofenceLimits {
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
  { areas, tenancy }: EvaluatePorts['memory'],
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
