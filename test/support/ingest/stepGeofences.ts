import { StayBudget, StayRoom } from '../../../src/devices/stays/stayCounts.ts';
import type { Stay } from '../../../src/devices/stays/stays.ts';
import {
  askShape,
  type GeofenceStep,
  geofenceSteps,
  type PointFacts,
  type WatchedAreas,
} from '../../../src/ingest/geofences.ts';
import { inOneGo, Pace } from '../../../src/lib/workTurns.ts';

/** One point against all areas that watch its device, without limits. */
export function stepGeofences(stays: readonly Stay[], fix: PointFacts, watch: WatchedAreas): GeofenceStep {
  const run = { pace: new Pace(), contains: askShape, isSpent: () => false };
  const room = new StayRoom(new StayBudget(), stays.length);
  const step = inOneGo(geofenceSteps(stays, fix, watch, watch.near(fix.lat, fix.lng), room, run));
  if (step === null) throw new Error('the step took too long');
  return step;
}
