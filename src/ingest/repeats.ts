import { invariant } from '../lib/invariant.ts';
import type { Fix } from './fix.ts';

/**
 * What messages that repeated the newest point have said, as far as one that comes again must be known by it. Kept with
 * the device's state until its next point.
 */
export interface Repeats {
  /** The latest time of sending among those with an ignition or a tag; at first that of the point itself. */
  readonly sentAtMs: number;
  /** Said without a time of sending: by the point itself, or by repeats. */
  readonly ignitions: readonly boolean[];
  readonly rfids: readonly string[];
}

/** What a repeat may add to, of a device's state: see DeviceState. */
interface Reported {
  readonly recordedAtMs: number | null;
  readonly ignition: boolean | null;
  readonly alarms: readonly string[];
  readonly rfid: string | null;
}

/**
 * Alarms of one point and its repeats, and tags of its repeats; more make no events, since they could not be remembered.
 */
export const REMEMBERED_MAX = 100;

/** What is known before the first repeat; a point that says no ignition stands for the value known before it. */
export function firstRepeats({ recordedAtMs, ignition, rfid }: Reported): Repeats {
  invariant(recordedAtMs !== null, 'only a point is repeated');
  return {
    sentAtMs: recordedAtMs,
    ignitions: ignition === null ? [] : [ignition],
    rfids: rfid === null ? [] : [rfid],
  };
}

/**
 * A message that carries the newest point of a device again, as heartbeats do where there is no fix → what the device's
 * state is to be. The state lacks:
 *
 *   alarm            when neither the point nor an earlier repeat carried it: whatever the order in which they come
 *   ignition, tag    that differs from the last one, if the message was sent later than all before it; or, where its
 *                    time of sending is not known, if none with this point has said so yet
 *
 * So a message that comes again finds nothing that it could add, whatever came in between. Returns the very `track`
 * when nothing changes.
 */
export function addRepeat<Track extends Reported & { readonly repeats: Repeats | null }>(
  track: Track,
  repeat: Fix,
): Track {
  const alarms = withAlarms(track.alarms, repeat.alarms);
  const seen = track.repeats ?? firstRepeats(track);
  const repeats = withRepeat(seen, repeat);
  const ignition = isNews(repeat, repeat.ignition, seen.ignitions, repeats.ignitions, seen)
    ? repeat.ignition
    : track.ignition;
  const rfid = isNews(repeat, repeat.rfid, seen.rfids, repeats.rfids, seen) ? repeat.rfid : track.rfid;
  if (alarms === track.alarms && repeats === seen) return track;
  return { ...track, alarms, ignition, rfid, repeats: repeats === seen ? track.repeats : repeats };
}

/** Sent later than all before it, or said for the first time and remembered from now on. */
function isNews<T>(
  { sentAtMs }: Fix,
  value: T | null,
  before: readonly T[],
  after: readonly T[],
  seen: Repeats,
): boolean {
  if (value === null) return false;
  return sentAtMs === null ? before !== after : sentAtMs > seen.sentAtMs;
}

function withRepeat(seen: Repeats, { sentAtMs, ignition, rfid }: Fix): Repeats {
  if (sentAtMs !== null) {
    const says = ignition !== null || rfid !== null;
    return says && sentAtMs > seen.sentAtMs ? { ...seen, sentAtMs } : seen;
  }
  const ignitions = withValue(seen.ignitions, ignition);
  const rfids = withValue(seen.rfids, rfid);
  return ignitions === seen.ignitions && rfids === seen.rfids ? seen : { ...seen, ignitions, rfids };
}

function withValue<T>(values: readonly T[], value: T | null): readonly T[] {
  const isFull = values.length >= REMEMBERED_MAX;
  return value === null || isFull || values.includes(value) ? values : [...values, value];
}

function withAlarms(alarms: readonly string[], more: readonly string[]): readonly string[] {
  const added = more.filter((alarm) => !alarms.includes(alarm));
  const room = Math.max(0, REMEMBERED_MAX - alarms.length);
  return added.length === 0 || room === 0 ? alarms : [...alarms, ...added.slice(0, room)];
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
