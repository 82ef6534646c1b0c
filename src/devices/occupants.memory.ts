import type { Occupant, OccupyingDevice } from './knownDevice.ts';
import { OccupantList } from './occupantList.ts';
import { joinStays, type PackedStays, StayReader } from './packedStays.ts';
import type { StayCounts } from './stayCounts.ts';

export const OCCUPANT_STATES = ['inside', 'pending', 'all'] as const;
/** `inside`: the entry is confirmed. `pending`: it is not yet. */
export type OccupantState = (typeof OCCUPANT_STATES)[number];

/**
 * Seconds of GPS time until the entry is confirmed, as of the newest point of the device: 0 once it is, and when only the
 * next point is missing because the minimum stay was shortened.
 */
export function dwellLeftSeconds(
  { device, insideSinceMs, confirmedAtMs }: Occupant,
  dwellSeconds: number,
): number {
  if (confirmedAtMs !== null) return 0;
  const lastMs = device.position?.recordedAtMs ?? insideSinceMs;
  return Math.max(0, (dwellSeconds * 1_000 - (lastMs - insideSinceMs)) / 1_000);
}

/** Stays that are compared, and that begin or end, before other work has its turn: a fraction of a millisecond. */
const COMPARED_PER_STEP = 4_096;
const CHANGED_PER_STEP = 256;

/** The devices of one world by the areas that they are in. */
export class Occupants {
  readonly #deviceAt: (slot: number) => OccupyingDevice;
  readonly #counts: StayCounts;
  readonly #inside = new Map<number, OccupantList>();
  readonly #pending = new Map<number, OccupantList>();

  constructor(deviceAt: (slot: number) => OccupyingDevice, counts: StayCounts) {
    this.#deviceAt = deviceAt;
    this.#counts = counts;
  }

  /** Those of an area, in up to two lists, each by the beginning of the stay, then by IMEI. */
  lists(areaId: number, state: OccupantState): OccupantList[] {
    const inside = state === 'pending' ? undefined : this.#inside.get(areaId);
    const pending = state === 'inside' ? undefined : this.#pending.get(areaId);
    return [inside, pending].filter((list) => list !== undefined);
  }

  /** A device came into this world with its stays. */
  enter(device: OccupyingDevice): void {
    before.open(device.stays);
    for (let n = 0; n < before.count; n++) this.#add(device, before, n);
  }

  /** A device left this world. */
  leave(device: OccupyingDevice): void {
    before.open(device.stays);
    for (let n = 0; n < before.count; n++) this.#remove(device, before, n);
  }

  /**
   * Gives a device of this world some of its new stays, those of areas from `fromAreaId` on. Returns the area from which
   * to go on, or null when it has all of them.
   */
  replace(device: OccupyingDevice, stays: PackedStays, fromAreaId: number): number | null {
    before.open(device.stays);
    after.open(stays);
    let b = before.indexOf(fromAreaId);
    let a = after.indexOf(fromAreaId);
    let changed = 0;
    for (let n = 0; n < COMPARED_PER_STEP && changed < CHANGED_PER_STEP; n++) {
      const areaId = lowerArea(b, a);
      if (areaId === Number.POSITIVE_INFINITY) break;
      const was = b < before.count && before.areaId(b) === areaId ? b++ : -1;
      const is = a < after.count && after.areaId(a) === areaId ? a++ : -1;
      if (was !== -1 && is !== -1 && isSame(was, is)) continue;
      if (was !== -1) this.#remove(device, before, was);
      if (is !== -1) this.#add(device, after, is);
      changed++;
    }
    const rest = lowerArea(b, a);
    const isComplete = rest === Number.POSITIVE_INFINITY;
    // The lists find the beginning of a stay here: it must be as they have it before anything else looks.
    if (isComplete) device.stays = stays;
    else if (changed > 0) device.stays = joinStays(after, before, rest);
    return isComplete ? null : rest;
  }

  #add(device: OccupyingDevice, stays: StayReader, n: number): void {
    const areaId = stays.areaId(n);
    const lists = this.#listsOf(stays, n);
    let list = lists.get(areaId);
    if (list === undefined) {
      list = new OccupantList(areaId, this.#deviceAt);
      lists.set(areaId, list);
    }
    list.put(device, stays.insideSinceMs(n));
    this.#counts.begin(areaId);
  }

  #remove(device: OccupyingDevice, stays: StayReader, n: number): void {
    const areaId = stays.areaId(n);
    const lists = this.#listsOf(stays, n);
    const list = lists.get(areaId);
    if (list?.remove(device, stays.insideSinceMs(n)) !== true) return;
    this.#counts.end(areaId);
    if (list.size === 0) lists.delete(areaId);
  }

  #listsOf(stays: StayReader, n: number): Map<number, OccupantList> {
    return stays.isPending(n) ? this.#pending : this.#inside;
  }
}

/** One pair for all, since each use ends before the next begins. */
const before = new StayReader();
const after = new StayReader();

function lowerArea(b: number, a: number): number {
  const own = b < before.count ? before.areaId(b) : Number.POSITIVE_INFINITY;
  const next = a < after.count ? after.areaId(a) : Number.POSITIVE_INFINITY;
  return Math.min(own, next);
}

function isSame(was: number, is: number): boolean {
  return (
    before.insideSinceMs(was) === after.insideSinceMs(is) &&
    before.confirmedAtMs(was) === after.confirmedAtMs(is)
  );
}
