import type { DeviceTrack } from '../engine/deviceEvents.ts';
import type { BatchEntry } from '../engine/evaluateBatch.ts';
import { type FeedStand, recordPositions, selectUnapplied, type Unapplied } from '../store/changes.ts';
import { insertNewPositions } from '../store/positions.ts';
import { PostgresUnreachable, type Sql } from '../store/sql.ts';
import { type LockedTrack, lockTracks, updateRepeated, updateTracks } from '../store/tracks.ts';
import type { Memory } from './applyChanges.ts';
import { fixEvents } from './fixEvents.ts';
import { type JudgePorts, judgeFixes } from './judgeFixes.ts';
import { encodeMoves, type Move } from './moves.ts';
import { storeBehind, storedFix } from './storeBehind.ts';
import { storeEvents } from './storeEvents.ts';

/** What became of one point of a batch. */
export type FixOutcome = 'accepted' | 'late' | 'duplicate' | 'unknown_device';

export interface CommittedFixes {
  /** One for each entry, in order; null: not in this transaction, for one of the reasons below or for its weight. */
  readonly outcomes: readonly (FixOutcome | null)[];
  /** Devices that somebody else has locked. */
  readonly held: ReadonlySet<number>;
  /** Devices that are judged by what memory does not know yet: it must catch up with the feed first. */
  readonly behind: ReadonlySet<number>;
  /** Devices that are too much to be committed together with others. */
  readonly heavy: ReadonlySet<number>;
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
  readonly turns: JudgePorts['turns'];
}

/**
 * One transaction from points to truth: locks the devices, judges the points by the state read under the lock and by
 * areas at least as new as any acknowledged write, stores points, states, events, deliveries and the feed entry. The partitions
 * of all points exist already. `nowMs` becomes the time at which the devices moved.
 *
 * Devices that are locked elsewhere are left out, and those that memory may not judge yet: nobody waits for the feed
 * with devices locked, and only for what its own devices are judged by. Left out are also those with more to judge and to tell than others may wait
 * for, unless all points are of one device that `isAlone`: then its first points are committed, as many as are not too
 * much. What was left out is sent again; each point is in one transaction, whole.
 */
export async function commitFixes(
  ports: CommitPorts,
  entries: readonly BatchEntry[],
  nowMs: number,
  isAlone = false,
): Promise<CommittedFixes> {
  const { sql, memory, follower } = ports;
  // The ids of the entries are of this server: another one may have given them to other devices.
  const { history } = follower.stand;
  return sql.begin(async (tx) => {
    const { locked, held } = await lockTracks(tx, [...new Set(entries.map((entry) => entry.deviceId))]);
    const unapplied = await selectUnapplied(tx, { ...follower.stand, history });
    if (unapplied === 'history') throw new PostgresUnreachable({ code: 'OTHER_SERVER' });
    const behind = judgedByUnapplied(unapplied, memory.tenancy, locked);
    const known = entries.flatMap(({ deviceId }, n) =>
      locked.has(deviceId) && !behind.has(deviceId) ? [n] : [],
    );
    const judged = await judgeFixes(ports, entries, known, locked, nowMs, isAlone);
    const { places, heavy, batch, evaluation, ahead, geofences } = judged;

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
    const { count: eventCount, queuedFor, isOutboxFilled } = await storeEvents(tx, ports, events, nowMs);
    const moves = [...evaluation.tracks].map(([deviceId, track]) => moveOf(deviceId, track, nowMs));
    if (moves.length > 0) await recordPositions(tx, encodeMoves(moves));

    const outcomes = entries.map(({ deviceId }): FixOutcome | null =>
      locked.has(deviceId) || held.has(deviceId) ? null : 'unknown_device',
    );
    for (const n of places) outcomes[n] = 'accepted';
    for (const n of evaluation.repeats) outcomes[places[n] as number] = 'duplicate';
    evaluation.behind.forEach((n, i) => {
      outcomes[places[n] as number] = fresh[i] === true ? 'late' : 'duplicate';
    });
    return { outcomes, held, behind, heavy, moves, eventCount, queuedFor, isOutboxFilled };
  });
}

const NONE: ReadonlySet<number> = new Set();

/** The devices whose watchers (see Tenancy) have changes that memory does not know yet. */
function judgedByUnapplied(
  unapplied: Exclude<Unapplied, 'history'>,
  tenancy: Memory['tenancy'],
  locked: ReadonlyMap<number, LockedTrack>,
): ReadonlySet<number> {
  if (unapplied === 'anything') return new Set(locked.keys());
  if (unapplied.size === 0) return NONE;
  const isConcerned = (worldId: number) => tenancy.watchersOf(worldId).some((other) => unapplied.has(other));
  return new Set([...locked].flatMap(([deviceId, { worldId }]) => (isConcerned(worldId) ? [deviceId] : [])));
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
