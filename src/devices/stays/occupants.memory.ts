import type { Steps } from '../../lib/workTurns.ts';
import { Device, type Occupant } from '../device.ts';
import type { DeviceColumns } from '../deviceColumns.memory.ts';
import type { Ranked } from '../sortedList.ts';
import { joinStays, NO_PACKED_STAYS, type PackedStays, StayReader } from './packedStays.ts';
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
  readonly #columns: DeviceColumns;
  readonly #counts: StayCounts;
  readonly #inside = new Map<number, OccupantList>();
  readonly #pending = new Map<number, OccupantList>();

  constructor(columns: DeviceColumns, counts: StayCounts) {
    this.#columns = columns;
    this.#counts = counts;
  }

  /** Those of an area, in up to two lists, each by the beginning of the stay, then by IMEI. */
  lists(areaId: number, state: OccupantState): OccupantList[] {
    const inside = state === 'pending' ? undefined : this.#inside.get(areaId);
    const pending = state === 'inside' ? undefined : this.#pending.get(areaId);
    return [inside, pending].filter((list) => list !== undefined);
  }

  /** A device came into this world with its stays. */
  enter(row: number): void {
    before.open(this.#columns.stays(row));
    for (let n = 0; n < before.count; n++) this.#add(row, before, n);
  }

  /** Many devices came, each with its stays. */
  *fill(rows: ArrayLike<number>): Steps<void> {
    let added = 0;
    for (let at = 0; at < rows.length; at++) {
      const row = rows[at] as number;
      if (this.#columns.stays(row) === NO_PACKED_STAYS) continue;
      before.open(this.#columns.stays(row));
      for (let n = 0; n < before.count; n++) {
        this.#add(row, before, n);
        if (++added % CHANGED_PER_STEP !== 0) continue;
        yield;
        before.open(this.#columns.stays(row));
      }
    }
  }

  /** A device left this world. */
  leave(row: number): void {
    before.open(this.#columns.stays(row));
    for (let n = 0; n < before.count; n++) this.#remove(row, before, n);
  }

  /**
   * Gives a device of this world some of its new stays, those of areas from `fromAreaId` on. Returns the area from which
   * to go on, or null when it has all of them.
   */
  replace(row: number, stays: PackedStays, fromAreaId: number): number | null {
    before.open(this.#columns.stays(row));
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
      if (was !== -1) this.#remove(row, before, was);
      if (is !== -1) this.#add(row, after, is);
      changed++;
    }
    const rest = lowerArea(b, a);
    const isComplete = rest === Number.POSITIVE_INFINITY;
    // The lists find the beginning of a stay here: it must be as they have it before anything else looks.
    if (isComplete) this.#columns.putStays(row, stays);
    else if (changed > 0) this.#columns.putStays(row, joinStays(after, before, rest));
    return isComplete ? null : rest;
  }

  #add(row: number, stays: StayReader, n: number): void {
    const areaId = stays.areaId(n);
    const lists = this.#listsOf(stays, n);
    let list = lists.get(areaId);
    if (list === undefined) {
      list = new OccupantList(areaId, this.#columns);
      lists.set(areaId, list);
    }
    list.put(row, stays.insideSinceMs(n));
    this.#counts.begin(areaId);
  }

  #remove(row: number, stays: StayReader, n: number): void {
    const areaId = stays.areaId(n);
    const lists = this.#listsOf(stays, n);
    const list = lists.get(areaId);
    if (list?.remove(row, stays.insideSinceMs(n)) !== true) return;
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
const ROW_BYTES = 4;

/**
 * The devices of one world that are in one area, by the beginning of their stays, then by IMEI. It holds their rows in
 * short blocks, each a text of four bytes a row (see PackedStays for why), and finds their stays with the devices.
 */
class OccupantList implements Ranked<Occupant, Occupant> {
  readonly keyOf = itself;
  readonly order = bySince;
  readonly #areaId: number;
  readonly #columns: DeviceColumns;
  #blocks: string[] = [''];
  #size = 0;

  constructor(areaId: number, columns: DeviceColumns) {
    this.#areaId = areaId;
    this.#columns = columns;
  }

  get size(): number {
    return this.#size;
  }

  /** Adds a device whose stay here began then. The device itself need not have this stay yet. */
  put(row: number, insideSinceMs: number): void {
    const b = this.#blockFor(insideSinceMs, row);
    const block = this.#blocks[b] as string;
    const at = ROW_BYTES * this.#lowerBound(block, insideSinceMs, row);
    this.#size++;
    const length = block.length + ROW_BYTES;
    bytes.write(block, 'latin1');
    bytes.copyWithin(at + ROW_BYTES, at, block.length);
    bytes.writeUInt32BE(row, at);
    if (length <= BLOCK_MAX * ROW_BYTES) {
      this.#blocks[b] = bytes.toString('latin1', 0, length);
      return;
    }
    const half = (BLOCK_MAX >> 1) * ROW_BYTES;
    this.#blocks.splice(b, 1, bytes.toString('latin1', 0, half), bytes.toString('latin1', half, length));
  }

  /** Removes a device whose stay here began then. */
  remove(row: number, insideSinceMs: number): boolean {
    const b = this.#blockFor(insideSinceMs, row);
    const block = this.#blocks[b] as string;
    const n = this.#lowerBound(block, insideSinceMs, row);
    if (n * ROW_BYTES >= block.length || rowAt(block, n) !== row) return false;
    this.#size--;
    if (block.length === ROW_BYTES && this.#blocks.length > 1) {
      this.#blocks.splice(b, 1);
      return true;
    }
    bytes.write(block, 'latin1');
    bytes.copyWithin(n * ROW_BYTES, (n + 1) * ROW_BYTES, block.length);
    this.#blocks[b] = bytes.toString('latin1', 0, block.length - ROW_BYTES);
    return true;
  }

  rank({ insideSinceMs, device }: Occupant): number {
    const b = this.#blockFor(insideSinceMs, device.row);
    let rank = 0;
    for (let i = 0; i < b; i++) rank += (this.#blocks[i] as string).length / ROW_BYTES;
    return rank + this.#lowerBound(this.#blocks[b] as string, insideSinceMs, device.row);
  }

  at(index: number): Occupant | undefined {
    return this.slice(index, 1)[0];
  }

  slice(index: number, limit: number): Occupant[] {
    const out: Occupant[] = [];
    let rest = index;
    for (const block of this.#blocks) {
      if (out.length >= limit) break;
      const slots = block.length / ROW_BYTES;
      for (let n = rest; n < slots && out.length < limit; n++) out.push(this.#occupant(rowAt(block, n)));
      rest = Math.max(0, rest - slots);
    }
    return out;
  }

  #occupant(row: number): Occupant {
    const device = new Device(this.#columns, row);
    const stays = reader.open(this.#columns.stays(row));
    return { ...stays.stay(stays.indexOf(this.#areaId)), device };
  }

  /** The last block whose first device is not after this one. */
  #blockFor(insideSinceMs: number, row: number): number {
    let low = 0;
    let high = this.#blocks.length - 1;
    while (low < high) {
      const mid = (low + high + 1) >> 1;
      if (this.#isBefore(rowAt(this.#blocks[mid] as string, 0), insideSinceMs, row, true)) low = mid;
      else high = mid - 1;
    }
    return low;
  }

  #lowerBound(block: string, insideSinceMs: number, row: number): number {
    let low = 0;
    let high = block.length / ROW_BYTES;
    while (low < high) {
      const mid = (low + high) >> 1;
      if (this.#isBefore(rowAt(block, mid), insideSinceMs, row, false)) low = mid + 1;
      else high = mid;
    }
    return low;
  }

  #isBefore(row: number, insideSinceMs: number, other: number, orEqual: boolean): boolean {
    const stays = reader.open(this.#columns.stays(row));
    const sinceMs = stays.insideSinceMs(stays.indexOf(this.#areaId));
    if (sinceMs !== insideSinceMs) return sinceMs < insideSinceMs;
    const order = this.#columns.compare(row, other);
    return order < 0 || (orEqual && order === 0);
  }
}

/** One for all, since each use ends before the next begins; so with the bytes of a block that is made. */
const reader = new StayReader();
const bytes = Buffer.alloc((BLOCK_MAX + 1) * ROW_BYTES);

function rowAt(block: string, n: number): number {
  let slot = 0;
  for (let at = n * ROW_BYTES; at < (n + 1) * ROW_BYTES; at++) slot = slot * 256 + block.charCodeAt(at);
  return slot;
}

function itself(occupant: Occupant): Occupant {
  return occupant;
}

function bySince(a: Occupant, b: Occupant): number {
  const apartMs = a.insideSinceMs - b.insideSinceMs;
  if (apartMs !== 0) return apartMs;
  const { imei } = a.device;
  const other = b.device.imei;
  return imei < other ? -1 : imei === other ? 0 : 1;
}
