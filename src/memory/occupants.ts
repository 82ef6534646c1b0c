import { indexOfArea, type Stay } from '../engine/stays.ts';
import type { Device } from './device.ts';
import { SortedList } from './sortedList.ts';

/** A device in an area, with its stay there. */
export interface Occupant extends Stay {
  readonly device: Device;
}

/** A device with its stays, ordered by area. */
export interface OccupyingDevice extends Device {
  occupants: readonly Occupant[];
}

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

export const NO_OCCUPANTS: readonly Occupant[] = [];

/** Stays that are compared before other work has its turn: a fraction of a millisecond. */
const STAYS_PER_STEP = 256;

type OccupantList = SortedList<Occupant, Occupant>;

/** The devices of one world by the areas that they are in. */
export class Occupants {
  readonly #inside = new Map<number, OccupantList>();
  readonly #pending = new Map<number, OccupantList>();

  /** Those of an area, in up to two lists, each by the beginning of the stay, then by IMEI. */
  lists(areaId: number, state: OccupantState): OccupantList[] {
    const inside = state === 'pending' ? undefined : this.#inside.get(areaId);
    const pending = state === 'inside' ? undefined : this.#pending.get(areaId);
    return [inside, pending].filter((list) => list !== undefined);
  }

  /** A device came into this world with its stays. */
  enter({ occupants }: OccupyingDevice): void {
    for (const occupant of occupants) this.#add(occupant);
  }

  /** A device left this world. */
  leave({ occupants }: OccupyingDevice): void {
    for (const occupant of occupants) this.#remove(occupant);
  }

  /**
   * Gives a device of this world some of its new stays, those of areas from `fromAreaId` on. Returns the area from which
   * to go on, or null when it has all of them.
   */
  replace(device: OccupyingDevice, stays: readonly Stay[], fromAreaId: number): number | null {
    const { occupants } = device;
    let b = indexOfArea(occupants, fromAreaId);
    let a = indexOfArea(stays, fromAreaId);
    const next = occupants.slice(0, b);
    for (let n = 0; n < STAYS_PER_STEP; n++) {
      const areaId = lowerArea(occupants[b], stays[a]);
      if (areaId === null) break;
      const before = occupants[b]?.areaId === areaId ? occupants[b++] : undefined;
      const after = stays[a]?.areaId === areaId ? stays[a++] : undefined;
      if (before !== undefined && after !== undefined && isSame(before, after)) {
        next.push(before);
        continue;
      }
      if (before !== undefined) this.#remove(before);
      if (after === undefined) continue;
      const { insideSinceMs, confirmedAtMs } = after;
      const occupant: Occupant = { areaId, insideSinceMs, confirmedAtMs, device };
      this.#add(occupant);
      next.push(occupant);
    }
    const rest = lowerArea(occupants[b], stays[a]);
    for (; b < occupants.length; b++) next.push(occupants[b] as Occupant);
    // A copy has no spare room.
    device.occupants = next.length === 0 ? NO_OCCUPANTS : next.slice();
    return rest;
  }

  #add(occupant: Occupant): void {
    const lists = this.#listsOf(occupant);
    let list = lists.get(occupant.areaId);
    if (list === undefined) {
      list = new SortedList(itself, bySince);
      lists.set(occupant.areaId, list);
    }
    list.put(occupant);
  }

  #remove(occupant: Occupant): void {
    const lists = this.#listsOf(occupant);
    const list = lists.get(occupant.areaId);
    list?.remove(occupant);
    if (list?.size === 0) lists.delete(occupant.areaId);
  }

  #listsOf({ confirmedAtMs }: Stay): Map<number, OccupantList> {
    return confirmedAtMs === null ? this.#pending : this.#inside;
  }
}

function itself(occupant: Occupant): Occupant {
  return occupant;
}

function bySince(a: Occupant, b: Occupant): number {
  const apartMs = a.insideSinceMs - b.insideSinceMs;
  if (apartMs !== 0) return apartMs;
  const { imei } = a.device.fields;
  const other = b.device.fields.imei;
  return imei < other ? -1 : imei === other ? 0 : 1;
}

function isSame(a: Stay, b: Stay): boolean {
  return a.insideSinceMs === b.insideSinceMs && a.confirmedAtMs === b.confirmedAtMs;
}

function lowerArea(a: Stay | undefined, b: Stay | undefined): number | null {
  if (a === undefined || b === undefined) return (a ?? b)?.areaId ?? null;
  return Math.min(a.areaId, b.areaId);
}
