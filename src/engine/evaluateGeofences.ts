import type { SpeedFix } from './deviceEvents.ts';
import { type GeofenceEvent, stepGeofences, type WatchedAreas } from './geofences.ts';
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
}

/** Points newer than all before them, in time order per device, against the areas that watch their devices. */
export function evaluateGeofences(
  points: readonly { readonly deviceId: number; readonly fix: SpeedFix }[],
  before: ReadonlyMap<number, readonly Stay[]>,
  watchOf: (deviceId: number) => WatchedAreas,
): GeofenceEvaluation {
  const stays = new Map<number, readonly Stay[]>();
  const events: GeofenceEventOf[] = [];
  for (const { deviceId, fix } of points) {
    const held = stays.get(deviceId) ?? before.get(deviceId) ?? NO_STAYS;
    const step = stepGeofences(held, fix, watchOf(deviceId));
    if (step.stays !== held) stays.set(deviceId, step.stays);
    for (const event of step.events) events.push({ deviceId, event });
  }
  return { stays, events };
}
