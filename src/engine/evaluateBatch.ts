import { type DeviceEvent, type DeviceTrack, type SpeedFix, stepDevice, stepRepeat } from './deviceEvents.ts';
import type { Fix } from './fix.ts';
import { FUTURE_TOLERANCE_MS } from './rejection.ts';

/** A parsed point and the device that sent it. */
export interface BatchEntry {
  readonly deviceId: number;
  readonly fix: Fix;
}

export interface DeviceEventAt {
  readonly deviceId: number;
  readonly occurredAtMs: number;
  readonly event: DeviceEvent;
}

/**
 * What a batch does, before anything is stored:
 * - `ahead`: points newer than everything evaluated for their device, together and in time order per device, speeds
 *   decided, with how many events they `told`; devices in the order of their first points;
 * - `behind`: points not newer than the newest one: late, or stored already (only the database can tell);
 * - `repeats`: points with the device and time of an earlier one in the batch;
 * - `tracks`: the new state of every device that moved;
 * - `repeated`: that of every other device of whose newest point a repeat has told something new;
 * - `events`: in the order of production;
 * - `left`: points that are not evaluated, since there are too many events. Of a device they are its newest.
 * Numbers are indexes into the batch.
 */
export interface BatchEvaluation {
  readonly ahead: readonly { readonly entry: number; readonly fix: SpeedFix; readonly told: number }[];
  readonly behind: readonly number[];
  readonly repeats: readonly number[];
  readonly tracks: ReadonlyMap<number, DeviceTrack>;
  readonly repeated: ReadonlyMap<number, DeviceTrack>;
  readonly events: readonly DeviceEventAt[];
  readonly left: readonly number[];
}

/**
 * Evaluates a batch against the states that its devices had before it; the first of equal points stands. A repeat of the
 * newest point is told at the time when it was sent, unless that is further ahead of `nowMs` than a point may be. Ends
 * with the point that brings the events to `eventsMax`.
 */
export function evaluateBatch(
  entries: readonly BatchEntry[],
  before: ReadonlyMap<number, DeviceTrack>,
  nowMs: number,
  eventsMax = Number.POSITIVE_INFINITY,
): BatchEvaluation {
  const ahead: { entry: number; fix: SpeedFix; told: number }[] = [];
  const behind: number[] = [];
  const repeats: number[] = [];
  const tracks = new Map<number, DeviceTrack>();
  const repeated = new Map<number, DeviceTrack>();
  const events: DeviceEventAt[] = [];
  const left: number[] = [];
  let previous: BatchEntry | undefined;
  for (const n of inTimeOrder(entries)) {
    const entry = entries[n] as BatchEntry;
    const { deviceId, fix } = entry;
    if (events.length >= eventsMax) {
      left.push(n);
      continue;
    }
    const isSecond =
      previous !== undefined &&
      previous.deviceId === deviceId &&
      previous.fix.recordedAtMs === fix.recordedAtMs;
    previous = entry;
    const track = tracks.get(deviceId) ?? repeated.get(deviceId) ?? before.get(deviceId);
    if (track === undefined) throw new Error(`device ${deviceId} has no track`);
    if (track.recordedAtMs !== null && fix.recordedAtMs <= track.recordedAtMs) {
      (isSecond ? repeats : behind).push(n);
      if (fix.recordedAtMs < track.recordedAtMs) continue;
      const step = stepRepeat(track, fix);
      if (step.track !== track) (tracks.has(deviceId) ? tracks : repeated).set(deviceId, step.track);
      const occurredAtMs = repeatedAtMs(fix, nowMs);
      for (const event of step.events) events.push({ deviceId, occurredAtMs, event });
      continue;
    }
    const step = stepDevice(track, fix);
    tracks.set(deviceId, step.track);
    repeated.delete(deviceId);
    ahead.push({ entry: n, fix: step.fix, told: step.events.length });
    for (const event of step.events) events.push({ deviceId, occurredAtMs: fix.recordedAtMs, event });
  }
  return { ahead, behind, repeats, tracks, repeated, events, left };
}

function repeatedAtMs({ recordedAtMs, sentAtMs }: Fix, nowMs: number): number {
  return sentAtMs !== null && sentAtMs <= nowMs + FUTURE_TOLERANCE_MS ? sentAtMs : recordedAtMs;
}

/** Indexes by device, in the order of their first points in the batch, then time, then place in the batch. */
function inTimeOrder(entries: readonly BatchEntry[]): Uint32Array {
  const firstOf = new Map<number, number>();
  const first = Uint32Array.from(entries, ({ deviceId }, n) => {
    const known = firstOf.get(deviceId);
    if (known !== undefined) return known;
    firstOf.set(deviceId, n);
    return n;
  });
  const order = Uint32Array.from(entries, (_, n) => n);
  return order.sort((a, b) => {
    const x = entries[a] as BatchEntry;
    const y = entries[b] as BatchEntry;
    return first[a]! - first[b]! || x.fix.recordedAtMs - y.fix.recordedAtMs || a - b;
  });
}
