import type { Fleet } from '../devices/fleet.memory.ts';
import type { Steps } from '../lib/workTurns.ts';
import type { PositionUpdate } from './positionUpdates.ts';

/** Updates and stays between two pauses: a fraction of a millisecond. */
const WORK_PER_STEP = 200;

/** Applies position updates to memory. Returns the ids of devices that are not known there. */
export function* applyPositionUpdates(
  fleet: Pick<Fleet, 'move' | 'putStays'>,
  updates: Iterable<PositionUpdate>,
): Steps<number[]> {
  const unknown: number[] = [];
  let work = 0;
  for (const { deviceId, position, motion, stays } of updates) {
    if (!fleet.move(deviceId, position, motion)) unknown.push(deviceId);
    work++;
    if (stays !== null) work += yield* fleet.putStays(deviceId, stays, motion.revision);
    if (work < WORK_PER_STEP) continue;
    work = 0;
    yield;
  }
  return unknown;
}
