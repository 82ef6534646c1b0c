import type { Steps } from '../lib/workTurns.ts';
import {
  type ChangedSlot,
  ChangeOrder,
  type ChangePlace,
  type ChangeQuery,
  type ChangeXids,
} from './changeOrder.ts';
import { Device } from './device.ts';
import type { DeviceColumns } from './deviceColumns.memory.ts';

/** How many devices that left a world are remembered for its readers, at most. */
const REMOVALS_MAX = 100_000;
/** Removals that are compared before other work has its turn. */
const REMOVALS_PER_STEP = 1_024;

/** A device that has left this world. */
export interface Removal {
  readonly deviceId: number;
  readonly imei: string;
  /** The transaction by which it left. */
  readonly xid: number;
  readonly atMs: number;
}

/** A device as a feed shows it, with its place in the order of changes. */
export interface ShownDevice extends ChangePlace, ChangeXids {
  readonly device: Device;
  readonly headingDeg: number;
  readonly ignition: boolean | null;
}

/** A device in the world, or one that left it, with its place in the order of changes. */
export type Changed =
  | ShownDevice
  | (ChangePlace & ChangeXids & { readonly device: null; readonly imei: string });

/** The changes of one world: who left it, and the order in which that and the changes of its devices happened. */
export class WorldChanges {
  readonly #columns: DeviceColumns;
  /** Of the rows of devices, and of those that left. */
  readonly order: ChangeOrder;
  /** By their rows: a device that left has one until it is forgotten. */
  readonly #removals = new Map<number, Removal>();
  readonly #removedRows = new Map<string, number>();
  #horizonXid = 0;

  constructor(columns: DeviceColumns) {
    this.#columns = columns;
    this.order = new ChangeOrder(columns);
  }

  /** The newest transaction of a removal that is forgotten: who has not seen it cannot learn of it. */
  get horizonXid(): number {
    return this.#horizonXid;
  }

  /** Remembers that a device left, unless a later removal of its IMEI is known. */
  putRemoval(removal: Removal): void {
    const known = this.#removedRows.get(removal.imei);
    if (known !== undefined && (this.#removals.get(known) as Removal).xid >= removal.xid) return;
    this.dropRemoval(removal.imei);
    const row = this.#columns.takeForRemoval(removal.deviceId);
    this.#removals.set(row, removal);
    this.#removedRows.set(removal.imei, row);
    this.order.put(row, 0, removal.xid);
    if (this.#removals.size <= REMOVALS_MAX) return;
    const [oldest] = this.#removals.keys();
    this.#forget(oldest as number);
  }

  /** Whether this very device is known to have left. */
  hasLeft(deviceId: number, imei: string): boolean {
    const row = this.#removedRows.get(imei);
    return row !== undefined && this.#removals.get(row)?.deviceId === deviceId;
  }

  /** The device with this IMEI is back. */
  dropRemoval(imei: string): void {
    const row = this.#removedRows.get(imei);
    if (row !== undefined) this.#drop(row, imei);
  }

  /** Forgets removals of before this time. */
  forgetRemovals(beforeMs: number): void {
    const old = [...this.#removals].filter(([, { atMs }]) => atMs < beforeMs);
    for (const [row] of old) this.#forget(row);
  }

  /** Drops the removals that are not among these transactions by IMEI, as if they had never been. */
  *keepRemovals(kept: ReadonlyMap<string, number>): Steps<void> {
    let seen = 0;
    for (const [row, { imei, xid }] of this.#removals) {
      if (kept.get(imei) !== xid) this.#drop(row, imei);
      if (++seen % REMOVALS_PER_STEP === 0) yield;
    }
  }

  page(query: ChangeQuery): Changed[] {
    return this.order.page(query).map((change) => {
      const removal = this.#removals.get(change.slot);
      if (removal === undefined) return shownDevice(this.#columns, change);
      const { xid, id, movedXid, editedXid } = change;
      return { xid, id, movedXid, editedXid, device: null, imei: removal.imei };
    });
  }

  #forget(row: number): void {
    const { xid, imei } = this.#removals.get(row) as Removal;
    this.#horizonXid = Math.max(this.#horizonXid, xid);
    this.#drop(row, imei);
  }

  #drop(row: number, imei: string): void {
    this.#removals.delete(row);
    this.#removedRows.delete(imei);
    this.order.remove(row);
    this.#columns.free(row);
  }
}

/** A device with what the feed shows beside it. */
function shownDevice(
  columns: DeviceColumns,
  { slot, xid, id, movedXid, editedXid }: ChangedSlot,
): ShownDevice {
  const headingDeg = columns.headingDeg(slot);
  const ignition = columns.ignition(slot);
  return { xid, id, movedXid, editedXid, device: new Device(columns, slot), headingDeg, ignition };
}

/** A device as it is now. */
export function shownNow(columns: DeviceColumns, slot: number): ShownDevice {
  const [movedXid, editedXid] = [columns.movedXid(slot), columns.editedXid(slot)];
  const xid = Math.max(movedXid, editedXid);
  return shownDevice(columns, { slot, xid, id: columns.id(slot), movedXid, editedXid });
}

/**
 * Merges pages of the changes of two worlds. No two changes of the result have the same place, so that a page may end
 * behind any of them.
 */
export function mergeChanges(first: readonly Changed[], second: readonly Changed[]): Changed[] {
  const merged = [...first, ...second].sort(byPlace);
  return merged.filter((change, n) => !isSamePlace(change, merged[n - 1]));
}

/** A device that went from one world to the other has the same place in both: it comes before its removal. */
function byPlace(a: Changed, b: Changed): number {
  return a.xid - b.xid || a.id - b.id || Number(a.device === null) - Number(b.device === null);
}

function isSamePlace(a: ChangePlace, b: ChangePlace | undefined): boolean {
  return a.xid === b?.xid && a.id === b.id;
}
