import { setTimeout as sleep } from 'node:timers/promises';
import type { Recorder } from './recorder.ts';
import type { SimulatedPod, Site } from './site.ts';
import type { World } from './world.ts';

/** What a client works with. Each has random numbers of its own, so that what one does changes nothing for the others. */
export interface Client {
  readonly site: Site;
  readonly world: World;
  readonly recorder: Recorder;
  readonly random: () => number;
  /** True when it should end: writers first, followers when everything has come to rest. */
  readonly isOver: () => boolean;
  /** The run has failed: nobody waits for an answer any more. */
  readonly isAbandoned: () => boolean;
  readonly late: LateWrites;
}

/** Writes of which a pod hears late. */
export interface LateWrites {
  /** How many are still to be made, by all writers. */
  left: number;
  /** Settles when the last one of those that have begun, or wait for each other, has ended. */
  ended: Promise<void>;
}

export function oneOf<T>(random: () => number, values: readonly T[]): T {
  return values[Math.floor(random() * values.length)] as T;
}

export const anyPod = ({ site, random }: Pick<Client, 'site' | 'random'>): SimulatedPod =>
  oneOf(random, site.pods);

/** Rests for so long. */
export const rest = ({ random }: Pick<Client, 'random'>, fromMs: number, toMs: number): Promise<void> =>
  sleep(fromMs + random() * (toMs - fromMs));

/** A key that clients may poll with. */
export interface CycledKey {
  readonly id: number;
  readonly key: string;
}

/** What administrators have made, for those who poll. */
export interface Made {
  readonly keys: CycledKey[];
  readonly imeis: string[];
}

// Names of registers.
export const placeOf = (areaId: number): string => `place of area ${areaId}`;
export const nameOf = (areaId: number): string => `name of area ${areaId}`;
export const keyOf = ({ id }: CycledKey): string => `key ${id}`;
export const deviceOf = (imei: string): string => `device ${imei}`;
export const SHARED_AREA = 'shared area';
export const SUSPENDED_ACCOUNT = 'suspended account';
