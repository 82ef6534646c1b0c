import type { DeviceTrack } from '../engine/deviceEvents.ts';
import { type BatchEntry, evaluateBatch } from '../engine/evaluateBatch.ts';
import { evaluateGeofences } from '../engine/evaluateGeofences.ts';
import type { WatchedAreas } from '../engine/geofences.ts';
import { watchedAreas } from '../memory/watchedAreas.ts';
import { type FeedStand, recordPositions, selectUnapplied, type Unapplied } from '../store/changes.ts';
import { insertNewPositions } from '../store/positions.ts';
import { PostgresUnreachable, type Sql } from '../store/sql.ts';
import { type LockedTrack, lockTracks, updateRepeated, updateTracks } from '../store/tracks.ts';
import type { Memory } from './applyChanges.ts';
import { fixEvents } from './fixEvents.ts';
import { encodeMoves, type Move } from './moves.ts';
import { storeBehind, storedFix } from './storeBehind.ts';
import { storeEvents } from './storeEvents.ts';

/** What became of one point of a batch. */
export type FixOutcome = 'accepted' | 'late' | 'duplicate' | 'unknown_device';

export interface CommittedFixes {
  /** One for each entry, in order. */
  readonly outcomes: readonly FixOutcome[];
  /** The new position of every device that moved. */
  readonly moves: readonly Move[];
  readonly eventCount: number;
  /** Webhook endpoints with something new to send. */
  readonly queuedFor: readonly number[];
  /** True when deliveries wait in the outbox to be made. */
  readonly isOutboxFilled: boolean;
}

export interface CommitPorts {
  readonly sql: Sql;
  readonly memory: Pick<Memory, 'fleet' | 'areas' | 'tenancy' | 'subscriptions'>;
  readonly instanceId: string;
  /** Where memory stands in the change feed, and how it gets on. */
  readonly follower: { readonly stand: FeedStand; catchUp(): Promise<void> };
}

/** How often a batch steps back before it waits for the feed under its locks: areas may change all the time. */
const STEPS_BACK_MAX = 5;

/**
 * One transaction from points to truth: locks the devices, judges the points by the state read under the lock and by
 * areas at least as new as any acknowledged write, stores points, states, events, deliveries and the feed entry. The partitions
 * of all points exist already. `nowMs` becomes the time at which the devices moved.
 *
 * What memory must learn first is waited for without the locks, since other pods may want them, and only when these
 * devices are judged by it: somebody else's import of a million devices is none of their business.
 */
export async function commitFixes(
  ports: CommitPorts,
  entries: readonly BatchEntry[],
  nowMs: number,
): Promise<CommittedFixes> {
  const { follower } = ports;
  for (let stepsBack = 0; ; stepsBack++) {
    try {
      return await commitOnce(ports, entries, nowMs, stepsBack === STEPS_BACK_MAX);
    } catch (error) {
      if (!(error instanceof MemoryBehind)) throw error;
      await follower.catchUp();
    }
  }
}

/** Rejects with MemoryBehind, with nothing stored, when memory may not judge the batch yet; unless it `waits`. */
async function commitOnce(
  { sql, memory, follower, instanceId }: CommitPorts,
  entries: readonly BatchEntry[],
  nowMs: number,
  waits: boolean,
): Promise<CommittedFixes> {
  return sql.begin(async (tx) => {
    const locked = await lockTracks(tx, [...new Set(entries.map((entry) => entry.deviceId))]);
    const unapplied = await selectUnapplied(tx, follower.stand);
    if (unapplied === 'history') throw new PostgresUnreachable({ code: 'OTHER_SERVER' });
    if (concerns(unapplied, memory.tenancy, locked)) {
      if (!waits) throw new MemoryBehind();
      await follower.catchUp();
    }
    const known = entries.flatMap((entry, n) => (locked.has(entry.deviceId) ? [n] : []));
    const batch = known.map((n) => entries[n] as BatchEntry);
    const evaluation = evaluateBatch(
      batch,
      mapValues(locked, ({ track }) => track),
      nowMs,
    );
    const ahead = evaluation.ahead.map(({ entry, fix }) => ({ ...(batch[entry] as BatchEntry), fix }));
    const stays = mapValues(locked, (state) => state.stays);
    const geofences = evaluateGeofences(ahead, stays, watchesOf(memory, locked));

    await insertNewPositions(
      tx,
      ahead.map((point) => storedFix(point, point.fix.speedKmh)),
    );
    const fresh = await storeBehind(
      tx,
      evaluation.behind.map((n) => batch[n] as BatchEntry),
    );
    await updateTracks(tx, evaluation.tracks, geofences.stays, nowMs);
    await updateRepeated(tx, evaluation.repeated);
    const events = fixEvents(memory.fleet, batch, evaluation.events, geofences.events, locked);
    const { count: eventCount, ...queued } = await storeEvents(tx, { memory, instanceId }, events, nowMs);
    const moves = [...evaluation.tracks].map(([deviceId, track]) => moveOf(deviceId, track, nowMs));
    if (moves.length > 0) await recordPositions(tx, encodeMoves(moves));

    const outcomes = entries.map(
      (entry): FixOutcome => (locked.has(entry.deviceId) ? 'accepted' : 'unknown_device'),
    );
    for (const n of evaluation.repeats) outcomes[known[n] as number] = 'duplicate';
    evaluation.behind.forEach((n, i) => {
      outcomes[known[n] as number] = fresh[i] === true ? 'late' : 'duplicate';
    });
    return { outcomes, moves, eventCount, ...queued };
  });
}

class MemoryBehind extends Error {
  override name = 'MemoryBehind';
}

/** True when these devices may be judged by what memory does not know yet. */
function concerns(
  unapplied: Exclude<Unapplied, 'history'>,
  tenancy: Memory['tenancy'],
  locked: ReadonlyMap<number, LockedTrack>,
): boolean {
  if (unapplied === 'anything') return true;
  if (unapplied.size === 0) return false;
  const worldIds = new Set([...locked.values()].map(({ worldId }) => worldId));
  return [...worldIds].some((worldId) =>
    tenancy.watchersOf(worldId).some((watcher) => unapplied.has(watcher)),
  );
}

/** The areas that watch each device, looked up once for each world of the batch. */
function watchesOf(
  { areas, tenancy }: CommitPorts['memory'],
  locked: ReadonlyMap<number, LockedTrack>,
): (deviceId: number) => WatchedAreas {
  const byWorld = new Map<number, WatchedAreas>();
  return (deviceId) => {
    const { worldId } = locked.get(deviceId) as LockedTrack;
    let watch = byWorld.get(worldId);
    if (watch === undefined) {
      watch = watchedAreas(areas, tenancy, worldId);
      byWorld.set(worldId, watch);
    }
    return watch;
  };
}

function mapValues<K, V, R>(map: ReadonlyMap<K, V>, pick: (value: V) => R): Map<K, R> {
  return new Map([...map].map(([key, value]) => [key, pick(value)]));
}

function moveOf(deviceId: number, track: DeviceTrack, movedAtMs: number): Move {
  if (track.recordedAtMs === null) throw new Error('a device that moved has a time');
  return {
    deviceId,
    position: {
      recordedAtMs: track.recordedAtMs,
      lat: track.lat,
      lng: track.lng,
      altitudeM: track.altitudeM,
      speedKmh: track.speedKmh,
      odometerKm: track.odometerKm,
      movedAtMs,
    },
  };
}
