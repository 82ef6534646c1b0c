import type { Occupant, OccupyingDevice } from '../device.ts';
import type { Ranked } from '../sortedList.ts';
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

/** Longer blocks are split, so a change copies at most this many slots. */
const BLOCK_MAX = 128;
const SLOT_BYTES = 4;

/**
 * The devices of one world that are in one area, by the beginning of their stays, then by IMEI. It holds their slots in
 * short blocks, each a text of four bytes a slot (see PackedStays for why), and finds their stays with the devices.
 */
class OccupantList implements Ranked<Occupant, Occupant> {
  readonly keyOf = itself;
  readonly order = bySince;
  readonly #areaId: number;
  readonly #deviceAt: (slot: number) => OccupyingDevice;
  #blocks: string[] = [''];
  #size = 0;

  constructor(areaId: number, deviceAt: (slot: number) => OccupyingDevice) {
    this.#areaId = areaId;
    this.#deviceAt = deviceAt;
  }

  get size(): number {
    return this.#size;
  }

  /** Adds a device whose stay here began then. The device itself need not have this stay yet. */
  put(device: OccupyingDevice, insideSinceMs: number): void {
    const b = this.#blockFor(insideSinceMs, device.fields.imei);
    const block = this.#blocks[b] as string;
    const at = SLOT_BYTES * this.#lowerBound(block, insideSinceMs, device.fields.imei);
    this.#size++;
    const length = block.length + SLOT_BYTES;
    bytes.write(block, 'latin1');
    bytes.copyWithin(at + SLOT_BYTES, at, block.length);
    bytes.writeUInt32BE(device.slot, at);
    if (length <= BLOCK_MAX * SLOT_BYTES) {
      this.#blocks[b] = bytes.toString('latin1', 0, length);
      return;
    }
    const half = (BLOCK_MAX >> 1) * SLOT_BYTES;
    this.#blocks.splice(b, 1, bytes.toString('latin1', 0, half), bytes.toString('latin1', half, length));
  }

  /** Removes a device whose stay here began then. */
  remove(device: OccupyingDevice, insideSinceMs: number): boolean {
    const b = this.#blockFor(insideSinceMs, device.fields.imei);
    const block = this.#blocks[b] as string;
    const n = this.#lowerBound(block, insideSinceMs, device.fields.imei);
    if (n * SLOT_BYTES >= block.length || slotAt(block, n) !== device.slot) return false;
    this.#size--;
    if (block.length === SLOT_BYTES && this.#blocks.length > 1) {
      this.#blocks.splice(b, 1);
      return true;
    }
    bytes.write(block, 'latin1');
    bytes.copyWithin(n * SLOT_BYTES, (n + 1) * SLOT_BYTES, block.length);
    this.#blocks[b] = bytes.toString('latin1', 0, block.length - SLOT_BYTES);
    return true;
  }

  rank({ insideSinceMs, device }: Occupant): number {
    const b = this.#blockFor(insideSinceMs, device.fields.imei);
    let rank = 0;
    for (let i = 0; i < b; i++) rank += (this.#blocks[i] as string).length / SLOT_BYTES;
    return rank + this.#lowerBound(this.#blocks[b] as string, insideSinceMs, device.fields.imei);
  }

  at(index: number): Occupant | undefined {
    return this.slice(index, 1)[0];
  }

  slice(index: number, limit: number): Occupant[] {
    const out: Occupant[] = [];
    let rest = index;
    for (const block of this.#blocks) {
      if (out.length >= limit) break;
      const slots = block.length / SLOT_BYTES;
      for (let n = rest; n < slots && out.length < limit; n++) out.push(this.#occupant(slotAt(block, n)));
      rest = Math.max(0, rest - slots);
    }
    return out;
  }

  #occupant(slot: number): Occupant {
    const device = this.#deviceAt(slot);
    const stays = reader.open(device.stays);
    return { ...stays.stay(stays.indexOf(this.#areaId)), device };
  }

  /** The last block whose first device is not after this one. */
  #blockFor(insideSinceMs: number, imei: string): number {
    let low = 0;
    let high = this.#blocks.length - 1;
    while (low < high) {
      const mid = (low + high + 1) >> 1;
      if (this.#isBefore(slotAt(this.#blocks[mid] as string, 0), insideSinceMs, imei, true)) low = mid;
      else high = mid - 1;
    }
    return low;
  }

  #lowerBound(block: string, insideSinceMs: number, imei: string): number {
    let low = 0;
    let high = block.length / SLOT_BYTES;
    while (low < high) {
      const mid = (low + high) >> 1;
      if (this.#isBefore(slotAt(block, mid), insideSinceMs, imei, false)) low = mid + 1;
      else high = mid;
    }
    return low;
  }

  #isBefore(slot: number, insideSinceMs: number, imei: string, orEqual: boolean): boolean {
    const device = this.#deviceAt(slot);
    const stays = reader.open(device.stays);
    const sinceMs = stays.insideSinceMs(stays.indexOf(this.#areaId));
    if (sinceMs !== insideSinceMs) return sinceMs < insideSinceMs;
    return device.fields.imei < imei || (orEqual && device.fields.imei === imei);
  }
}

/** One for all, since each use ends before the next begins; so with the bytes of a block that is made. */
const reader = new StayReader();
const bytes = Buffer.alloc((BLOCK_MAX + 1) * SLOT_BYTES);

function slotAt(block: string, n: number): number {
  let slot = 0;
  for (let at = n * SLOT_BYTES; at < (n + 1) * SLOT_BYTES; at++) slot = slot * 256 + block.charCodeAt(at);
  return slot;
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
