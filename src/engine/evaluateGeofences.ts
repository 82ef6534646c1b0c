import type { Steps } from '../base/workTurns.ts';
import type { SpeedFix } from './deviceEvents.ts';
import { type GeofenceEvent, geofenceSteps, type WatchedAreas } from './geofences.ts';
import { NO_STAYS, type Stay } from './stays.ts';

export interface GeofenceEventOf {
  readonly deviceId: number;
  readonly event: GeofenceEvent;
}

/** What the points of a batch did to the stays of their devices. */
export interface GeofenceEvaluation {
  /** Of the devices whose stays changed. */
  readonly stays: ReadonlyMap<number, readonly Stay[]>;
  /** In the order of the points; of one point exits first, then entries, each by area. */
  readonly events: readonly GeofenceEventOf[];
  /** The devices whose points were not all evaluated. Nothing of those left out is in `stays` and `events`. */
  readonly left: ReadonlyMap<number, LeftPoints>;
}

/** Points of one device that were left out: those from this place on (an index into the points). */
export interface LeftPoints {
  readonly from: number;
  /** True when the device is more than may be evaluated together with others. */
  readonly isHeavy: boolean;
}

/** How much work is done for one batch, and for one device of it; null: the one device of the batch may have it all. */
export interface GeofenceLimits {
  readonly ofDevice: number | null;
  readonly ofBatch: number;
}

/** A point to judge; what its device alone has `told` by it is part of the work. */
export interface JudgedPoint {
  readonly deviceId: number;
  readonly fix: SpeedFix;
  readonly told: number;
}

/** Work is counted in areas judged. An event costs this much more: it is stored, and waits in memory until then. */
export const EVENT_WORK = 25;
/** Points without anything to judge are done with before others have their turn. */
const POINTS_IN_ONE_GO = 256;

/**
 * Points newer than all before them, in time order and together per device, against the areas that watch their devices.
 * What is too much is left out: all devices once the work of the batch is done, and a device that is too much by itself.
 * Of the one device of a batch the first points are evaluated, so none that is left out is older than one that is not.
 */
export function* evaluateGeofences(
  points: readonly JudgedPoint[],
  before: ReadonlyMap<number, readonly Stay[]>,
  watchOf: (deviceId: number) => WatchedAreas,
  limits: GeofenceLimits,
): Steps<GeofenceEvaluation> {
  const stays = new Map<number, readonly Stay[]>();
  const events: GeofenceEventOf[] = [];
  const left = new Map<number, LeftPoints>();
  let work = 0;
  let untilPause = POINTS_IN_ONE_GO;
  for (let start = 0, end = 0; start < points.length; start = end) {
    const { deviceId } = points[start]!;
    end = endOfDevice(points, start);
    if (work >= limits.ofBatch) {
      left.set(deviceId, { from: start, isHeavy: false });
      continue;
    }
    const watch = watchOf(deviceId);
    const own: GeofenceEvent[] = [];
    let held = before.get(deviceId) ?? NO_STAYS;
    let isChanged = false;
    let ownWork = 0;
    for (let n = start; n < end; n++) {
      if (limits.ofDevice === null && ownWork >= limits.ofBatch) {
        left.set(deviceId, { from: n, isHeavy: true });
        break;
      }
      if (--untilPause === 0) {
        untilPause = POINTS_IN_ONE_GO;
        yield;
      }
      const { fix, told } = points[n]!;
      ownWork += EVENT_WORK * told;
      const near = watch.near(fix.lat, fix.lng);
      if (near.length > 0 || held.length > 0) {
        const step = yield* geofenceSteps(held, fix, watch, near);
        ownWork += near.length + held.length + EVENT_WORK * step.events.length;
        if (step.stays !== held) isChanged = true;
        held = step.stays;
        for (const event of step.events) own.push(event);
      }
      if (limits.ofDevice !== null && ownWork > limits.ofDevice) {
        left.set(deviceId, { from: start, isHeavy: true });
        break;
      }
    }
    work += ownWork;
    if (left.get(deviceId)?.from === start) continue;
    if (isChanged) stays.set(deviceId, held);
    for (const event of own) events.push({ deviceId, event });
  }
  return { stays, events, left };
}

function endOfDevice(points: readonly { readonly deviceId: number }[], start: number): number {
  let end = start + 1;
  while (end < points.length && points[end]!.deviceId === points[start]!.deviceId) end++;
  return end;
}
