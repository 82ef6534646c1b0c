import type { LogFollower } from '../changelog/appliedTransactions.memory.ts';
import { recordPositions, selectUnapplied, type Unapplied } from '../changelog/changes.sql.ts';
import type { PositionUpdate } from '../devices/positionUpdates.ts';
import { encodeChangedStays, encodePositionUpdates } from '../devices/positionUpdates.ts';
import { packStays, type Stay } from '../devices/stays/packedStays.ts';
import { StayBudget } from '../devices/stays/stayCounts.ts';
import type { OnDamaged } from '../history/packedPoints.sql.ts';
import { invariant } from '../lib/errors.ts';
import { HOUR_MS } from '../lib/time.ts';
import type { WorkTurns } from '../lib/workTurns.ts';
import type { Sql, Tx } from '../postgres/sql.ts';
import { PostgresUnreachable } from '../postgres/sqlErrors.ts';
import { IN_POSTGRES, type Span } from '../traces/span.ts';
import type { Traces } from '../traces/traces.ts';
import { type BatchEvaluation, type DeviceState, derivedSpeedKmh } from './deviceEvents.ts';
import { evaluateFixes, type IngestMemory } from './evaluateFixes.ts';
import type { BatchPoint, FixOutcome, RateExceeded, RefusedStays } from './fix.ts';
import { POINTS_PER_SECOND } from './fix.ts';
import type { KnownInside } from './heavyParts.ts';
import { findStored, insertLatePositions, selectPredecessors } from './latePoints.sql.ts';
import { copyLockedStates, copyNewPositions, INSERTED_MAX } from './manyPoints.sql.ts';
import {
  insertNewPositions,
  type LockedState,
  lockDeviceStates,
  type StoredFix,
  updateDeviceStates,
  updateOwed,
  updateRefused,
  updateRepeated,
} from './points.sql.ts';
import { type StoredEvents, storeEvents } from './storeEvents.sql.ts';

/** One point on its way through a transaction. */
export interface CommitPoint extends BatchPoint {
  /** Null until the transaction has decided; it stays null when the point is left for a later one. */
  outcome: FixOutcome | null;
}

export interface CommittedFixes extends StoredEvents {
  /** Devices left out because another transaction has locked them. */
  readonly lockedElsewhere: ReadonlySet<number>;
  /**
   * Devices left out because memory does not know yet what they are evaluated against: it must follow the log first.
   */
  readonly awaitingMemory: ReadonlySet<number>;
  /** Devices left out because they are too much work to be committed together with others. */
  readonly oversized: ReadonlySet<number>;
  /** The new position of every device that moved, and of every one that said something new about its position. */
  readonly positionUpdates: readonly PositionUpdate[];
  /** The transaction, when there are position updates, and the worlds of their devices. */
  readonly xid: number | null;
  readonly movedIn: ReadonlySet<number>;
  /** Points at which stays did not begin. */
  readonly refusedStays: readonly RefusedStays[];
}

export interface CommitPorts {
  readonly sql: Sql;
  readonly memory: IngestMemory;
  /** What ids of webhook events are made from, of the server that the transaction is on. */
  readonly server: { readonly eventScope: string | null };
  /** How much of the change log memory holds, and a way to wait for more. */
  readonly follower: LogFollower;
  readonly turns: WorkTurns<string | number>;
  readonly onDamaged: OnDamaged;
  /** Learns the traces of events; null: nothing is traced. */
  readonly traces: Pick<Traces, 'noteEvent'> | null;
}

/**
 * Commits points in one transaction: locks the devices, evaluates the points against the locked states and against areas
 * at least as new as any acknowledged write, and stores points, states, events, deliveries and the entry of the change
 * log. At the end it fills in the outcome of each point. The partitions of all points exist already. `nowMs` becomes the
 * time at which the devices moved.
 *
 * It leaves out the points of some devices (see CommittedFixes), so that nobody waits with devices locked; the caller
 * sends them again. Only a transaction that is exclusive to one device, for which it is `known` where its points lie,
 * takes on an oversized one: as many of its first points as fit.
 */
export async function commitFixes(
  ports: CommitPorts,
  points: readonly CommitPoint[],
  nowMs: number,
  known: KnownInside | null = null,
  budget = new StayBudget(),
  span: Span | null = null,
): Promise<CommittedFixes> {
  const { sql, memory, follower } = ports;
  // Read first. Memory may be loaded from another server during the transaction, with other device ids.
  const { server } = follower.applied;
  return sql.begin(async (tx) => {
    span?.step('lock devices', IN_POSTGRES);
    const deviceIds = [...new Set(points.map((point) => point.deviceId))];
    const lock = deviceIds.length > INSERTED_MAX ? copyLockedStates : undefined;
    const { locked, lockedElsewhere } = await lockDeviceStates(tx, deviceIds, lock);
    const unapplied = await selectUnapplied(tx, { ...follower.applied.writes, server });
    if (unapplied === 'history' || follower.applied.isMixed)
      throw new PostgresUnreachable({ code: 'OTHER_SERVER' });
    const awaitingMemory = devicesAwaitingMemory(unapplied, memory.tenancy, locked);
    const areAllReady = locked.size === deviceIds.length && awaitingMemory.size === 0;
    const ready = areAllReady
      ? points
      : points.filter(({ deviceId }) => locked.has(deviceId) && !awaitingMemory.has(deviceId));
    const beyond = await beyondRate(tx, ready, locked, nowMs, ports.onDamaged);
    const within = beyond.size === 0 ? ready : ready.filter((point) => !beyond.has(point));
    span?.step('evaluate');
    const evaluated = await evaluateFixes(ports, within, locked, nowMs, known, budget);
    const { evaluation, geofences, oversized } = evaluated;
    const { inOrder, late, repeats, moved, amended } = evaluation;

    span?.step('store points', IN_POSTGRES);
    const store = inOrder.length > INSERTED_MAX ? copyNewPositions : insertNewPositions;
    await store(
      tx,
      inOrder.map(({ point, speedKmh }) => storedFix(point, speedKmh)),
    );
    const isNew = await storeLate(tx, late, nowMs, ports.onDamaged);
    const stored = inOrder.map(({ point }) => point);
    const owedMs = owedBy(
      late.length === 0 ? stored : stored.concat(late.filter((_, n) => isNew[n])),
      locked,
    );
    await updateDeviceStates(tx, moved, geofences.stays, owedMs, nowMs);
    if (owedMs.size > moved.size) {
      await updateOwed(tx, new Map([...owedMs].filter(([deviceId]) => !moved.has(deviceId))));
    }
    await updateRepeated(tx, amended);
    await updateRefused(tx, geofences.refused);
    span?.step('store events', IN_POSTGRES);
    const hasEvents = evaluation.events.length > 0 || geofences.events.length > 0;
    const events = hasEvents
      ? await storeEvents(tx, ports, evaluation.events, geofences.events, locked, nowMs)
      : NO_EVENTS;
    span?.set({ 'fleet.points': within.length, 'fleet.events': events.eventCount });
    const updates = positionUpdatesOf(evaluation, geofences.stays, locked, nowMs);
    const xid =
      updates.length === 0
        ? null
        : await recordPositions(tx, encodePositionUpdates(updates), encodeChangedStays(updates));
    if (xid !== null) for (const { motion } of updates) motion.xid = xid;

    if (locked.size + lockedElsewhere.size < deviceIds.length) {
      for (const point of points) {
        const exists = locked.has(point.deviceId) || lockedElsewhere.has(point.deviceId);
        if (!exists) point.outcome = 'unknown_device';
      }
    }
    for (const [point, exceeded] of beyond) point.outcome = exceeded;
    for (const { point } of inOrder) point.outcome = 'accepted';
    for (const point of repeats) point.outcome = 'duplicate';
    for (const [n, point] of late.entries()) point.outcome = isNew[n] === true ? 'late' : 'duplicate';
    span?.step('commit', IN_POSTGRES);
    return {
      lockedElsewhere,
      awaitingMemory,
      oversized,
      positionUpdates: updates,
      xid,
      movedIn: new Set(updates.map(({ deviceId }) => locked.get(deviceId)?.worldId ?? 0)),
      refusedStays: [...geofences.refused.values()],
      ...events,
    };
  });
}

const NO_EVENTS: StoredEvents = { eventCount: 0, queuedFor: new Map(), isOutboxFilled: false };
const NONE: ReadonlySet<number> = new Set();

/** The devices watched from a world (see Tenancy) that has changes which memory does not know yet. */
function devicesAwaitingMemory(
  unapplied: Exclude<Unapplied, 'history'>,
  tenancy: IngestMemory['tenancy'],
  locked: ReadonlyMap<number, LockedState>,
): ReadonlySet<number> {
  if (unapplied === 'anything') return new Set(locked.keys());
  if (unapplied.size === 0) return NONE;
  const isChanged = (worldId: number) =>
    tenancy.watchersOf(worldId).some((watcher) => unapplied.has(watcher));
  return new Set([...locked].flatMap(([deviceId, { worldId }]) => (isChanged(worldId) ? [deviceId] : [])));
}

/**
 * The time that a point takes at the highest rate. A device owes as much for each that it stores, less the time that has
 * passed since, and may owe an hour.
 */
const POINT_MS = 1_000 / POINTS_PER_SECOND;

/** How many points a device may store that owes so much. */
const roomOf = (owedMs: number): number => Math.max(0, Math.floor((HOUR_MS - owedMs) / POINT_MS));

/**
 * The points of locked devices that are too many for their rate, with when to send them again. Points are counted in the
 * order in which they were sent. One that is stored already, or that repeats another, stores nothing and does not count.
 */
async function beyondRate<Point extends BatchPoint>(
  tx: Tx,
  points: readonly Point[],
  locked: ReadonlyMap<number, LockedState>,
  nowMs: number,
  onDamaged: OnDamaged,
): Promise<ReadonlyMap<Point, RateExceeded>> {
  const beyond = new Map<Point, RateExceeded>();
  let mostOwedMs = 0;
  for (const { owedMs } of locked.values()) if (owedMs > mostOwedMs) mostOwedMs = owedMs;
  if (roomOf(mostOwedMs) >= points.length) return beyond;
  const crowded = [...Map.groupBy(points, ({ deviceId }) => deviceId)].filter(
    ([deviceId, sent]) => sent.length > roomOf(locked.get(deviceId)?.owedMs ?? 0),
  );
  const late = crowded.flatMap(([deviceId, sent]) => {
    const newestMs = locked.get(deviceId)?.state.recordedAtMs ?? Number.NEGATIVE_INFINITY;
    return sent.filter(({ fix }) => fix.recordedAtMs <= newestMs);
  });
  const keys = late.map(({ deviceId, fix }) => ({ deviceId, recordedAtMs: fix.recordedAtMs }));
  const isStored = await findStored(tx, keys, nowMs, onDamaged);
  const stored = new Set(late.filter((_, n) => isStored[n]));
  for (const [deviceId, sent] of crowded) {
    const owedMs = locked.get(deviceId)?.owedMs ?? 0;
    const decided = new Map<number, RateExceeded | null>();
    let ordinal = 0;
    for (const point of sent) {
      if (stored.has(point)) continue;
      const { recordedAtMs } = point.fix;
      // What repeats a point is stored no more than the point itself.
      let exceeded = decided.get(recordedAtMs);
      if (exceeded === undefined) {
        ordinal++;
        const retryAtMs = Math.ceil(nowMs + owedMs + ordinal * POINT_MS - HOUR_MS);
        exceeded = ordinal > roomOf(owedMs) ? { retryAtMs } : null;
        decided.set(recordedAtMs, exceeded);
      }
      if (exceeded !== null) beyond.set(point, exceeded);
    }
  }
  return beyond;
}

/**
 * What the devices of these points owe for them, and for those before. Points of one device that follow each other cost
 * little.
 */
function owedBy(stored: Iterable<BatchPoint>, locked: ReadonlyMap<number, LockedState>): Map<number, number> {
  const owedMs = new Map<number, number>();
  let device = Number.NaN;
  let owed = 0;
  for (const { deviceId } of stored) {
    if (deviceId !== device) {
      if (owed > 0) owedMs.set(device, owed);
      device = deviceId;
      owed = owedMs.get(deviceId) ?? (locked.get(deviceId) as LockedState).owedMs;
    }
    owed += POINT_MS;
  }
  if (owed > 0) owedMs.set(device, owed);
  return owedMs;
}

/**
 * Stores late points, sorted by device and time, and returns for each whether it is new. A missing speed is derived
 * from the point before it, which is stored or in the same batch.
 */
export async function storeLate(
  tx: Tx,
  late: readonly BatchPoint[],
  nowMs: number,
  onDamaged: OnDamaged,
): Promise<boolean[]> {
  if (late.length === 0) return [];
  const withoutSpeed = late.flatMap((point, n) =>
    point.fix.speedKmh === null ? [{ point, previous: late[n - 1] }] : [],
  );
  const predecessors = await selectPredecessors(
    tx,
    withoutSpeed.map(({ point }) => ({
      deviceId: point.deviceId,
      recordedAtMs: point.fix.recordedAtMs,
    })),
    nowMs,
    onDamaged,
  );
  const speeds = new Map(
    withoutSpeed.map(({ point, previous }, n) => {
      const inBatch = previous?.deviceId === point.deviceId ? previous.fix : null;
      const inStore = predecessors[n] ?? null;
      const nearer =
        inBatch !== null && (inStore === null || inBatch.recordedAtMs > inStore.recordedAtMs)
          ? inBatch
          : inStore;
      return [point, nearer === null ? 0 : derivedSpeedKmh(nearer, point.fix)];
    }),
  );
  return insertLatePositions(
    tx,
    late.map((point) => storedFix(point, point.fix.speedKmh ?? speeds.get(point) ?? 0)),
    nowMs,
    onDamaged,
  );
}

/** A point with its device and its speed, as it is stored. */
const storedFix = ({ deviceId, fix }: BatchPoint, speedKmh: number): StoredFix => ({
  deviceId,
  recordedAtMs: fix.recordedAtMs,
  lat: fix.lat,
  lng: fix.lng,
  altitudeM: fix.altitudeM,
  speedKmh,
  heading: fix.heading,
  satellites: fix.satellites,
  odometerKm: fix.odometerKm,
});

/** The transaction has no id before it writes to the change log. */
type NewUpdate = PositionUpdate & { readonly motion: { xid: number } };

/** A repeat that changes the ignition makes an entry in the change log as well: its device stays where it is, and did not move. */
function positionUpdatesOf(
  { moved, amended }: Pick<BatchEvaluation<CommitPoint>, 'moved' | 'amended'>,
  stays: ReadonlyMap<number, readonly Stay[]>,
  locked: ReadonlyMap<number, LockedState>,
  nowMs: number,
): NewUpdate[] {
  const updates: NewUpdate[] = [];
  const add = (deviceId: number, state: DeviceState, before: LockedState, movedAtMs: number): void => {
    const { recordedAtMs, lat, lng, altitudeM, speedKmh, odometerKm, heading, ignition } = state;
    invariant(recordedAtMs !== null, 'a device that moved has a time');
    const changed = stays.get(deviceId);
    updates.push({
      deviceId,
      position: { recordedAtMs, lat, lng, altitudeM, speedKmh, odometerKm, movedAtMs },
      motion: { headingDeg: heading, ignition, revision: before.revision + 1, xid: 0 },
      stays: changed === undefined ? null : packStays(changed),
    });
  };
  for (const [deviceId, state] of moved) add(deviceId, state, locked.get(deviceId) as LockedState, nowMs);
  for (const [deviceId, state] of amended) {
    const before = locked.get(deviceId) as LockedState;
    if (state.ignition !== before.state.ignition) add(deviceId, state, before, before.movedAtMs);
  }
  return updates;
}
