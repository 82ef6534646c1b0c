import type { Steps } from '../base/workTurns.ts';
import type { Fleet } from '../memory/fleet.ts';
import type { Move } from './moves.ts';

/** Moves between two looks at the clock: a fraction of a millisecond. */
const MOVES_PER_STEP = 200;

/** Moves devices in memory; returns the ids of those that are not known there. */
export function* moveDevices(fleet: Pick<Fleet, 'move'>, moves: Iterable<Move>): Steps<number[]> {
  const unknown: number[] = [];
  let moved = 0;
  for (const { deviceId, position } of moves) {
    if (!fleet.move(deviceId, position)) unknown.push(deviceId);
    if (++moved % MOVES_PER_STEP === 0) yield;
  }
  return unknown;
}
