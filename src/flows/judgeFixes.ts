import type { WorkTurns } from '../base/workTurns.ts';
import { type BatchEntry, type BatchEvaluation, evaluateBatch } from '../engine/evaluateBatch.ts';
import {
  EVENT_WORK,
  evaluateGeofences,
  type GeofenceEvaluation,
  type GeofenceLimits,
} from '../engine/evaluateGeofences.ts';
import type { WatchedAreas } from '../engine/geofences.ts';
import { watchedAreas } from '../memory/watchedAreas.ts';
import type { LockedTrack } from '../store/tracks.ts';
import type { Memory } from './applyChanges.ts';
import { inTurns } from './inTurns.ts';

export interface JudgePorts {
  readonly memory: Pick<Memory, 'areas' | 'tenancy'>;
  readonly turns: Pick<WorkTurns<string>, 'run'>;
}

/** Judged or told in one transaction: half a million areas, or 20 000 events, and some hundred megabytes at most. */
const WORK_MAX = 500_000;
/** Of one device beside others: four hundred events, or so many areas judged that they take some milliseconds. */
const LIMITS_TOGETHER: GeofenceLimits = { ofBatch: WORK_MAX, ofDevice: 400 * EVENT_WORK };
const LIMITS_ALONE: GeofenceLimits = { ofBatch: WORK_MAX, ofDevice: null };

/** What is committed of a batch, judged. */
export interface Judged {
  /** The places among the entries of what is committed; all that follows is of these alone. */
  readonly places: readonly number[];
  /** Devices that are too much to be committed together with others. */
  readonly heavy: ReadonlySet<number>;
  readonly batch: readonly BatchEntry[];
  readonly evaluation: BatchEvaluation;
  readonly ahead: ReturnType<typeof aheadOf>;
  readonly geofences: GeofenceEvaluation;
}

/**
 * Evaluates the entries at `known` places, whose devices are locked, and sets aside what is too much for one transaction:
 * of one device that `isAlone` its last points, else whole devices.
 */
export async function judgeFixes(
  { memory, turns }: JudgePorts,
  entries: readonly BatchEntry[],
  known: readonly number[],
  locked: ReadonlyMap<number, LockedTrack>,
  nowMs: number,
  isAlone: boolean,
): Promise<Judged> {
  const tracks = mapValues(locked, ({ track }) => track);
  const stays = mapValues(locked, (state) => state.stays);
  const batch = known.map((n) => entries[n] as BatchEntry);
  const evaluation = evaluateBatch(batch, tracks, nowMs, WORK_MAX / EVENT_WORK);
  const ahead = aheadOf(batch, evaluation);
  const limits = isAlone ? LIMITS_ALONE : LIMITS_TOGETHER;
  const geofences = await inTurns(
    turns,
    isAlone ? 'points of one device' : 'points',
    evaluateGeofences(ahead, stays, watchesOf(memory, locked), limits),
  );
  const { left } = geofences;
  if (left.size === 0 && evaluation.left.length === 0) {
    return { places: known, heavy: new Set(), batch, evaluation, ahead, geofences };
  }

  const heavy = new Set([...left].flatMap(([deviceId, { isHeavy }]) => (isHeavy ? [deviceId] : [])));
  // Of a device that is left out from its first point on, nothing is committed, late points included.
  const endMs = mapValues(left, ({ from }) => {
    const [before, first] = [ahead[from - 1], ahead[from] as (typeof ahead)[number]];
    return before?.deviceId === first.deviceId ? first.fix.recordedAtMs : Number.NEGATIVE_INFINITY;
  });
  const unjudged = new Set(evaluation.left.map((n) => known[n]));
  const places = known.filter((n) => {
    if (unjudged.has(n)) return false;
    const { deviceId, fix } = entries[n] as BatchEntry;
    return fix.recordedAtMs < (endMs.get(deviceId) ?? Number.POSITIVE_INFINITY);
  });
  const kept = places.map((n) => entries[n] as BatchEntry);
  const ofKept = evaluateBatch(kept, tracks, nowMs);
  return { places, heavy, batch: kept, evaluation: ofKept, ahead: aheadOf(kept, ofKept), geofences };
}

function aheadOf(batch: readonly BatchEntry[], { ahead }: BatchEvaluation) {
  return ahead.map(({ entry, fix, told }) => ({ ...(batch[entry] as BatchEntry), fix, told }));
}

/** The areas that watch each device, looked up once for each world of the batch. */
function watchesOf(
  { areas, tenancy }: JudgePorts['memory'],
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
