import type { Device, Motion } from '../device.ts';
import {
  type ChangedSlot,
  ChangeOrder,
  type ChangePlace,
  type ChangeQuery,
  type ChangeXids,
} from './changeOrder.ts';
import { MotionTable } from './slotColumns.ts';

/** How many devices that left a world are remembered for its readers, at most. */
const REMOVALS_MAX = 100_000;

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

/** The changes of one world: what its devices said last, who left it, and the order in which that happened. */
export class WorldChanges {
  readonly #order = new ChangeOrder(
    (slot) => this.#removals.get(slot)?.deviceId ?? this.#deviceAt(slot).fields.id,
  );
  readonly #motions = new MotionTable();
  /** By slot: a device that left keeps its slot until it is forgotten. */
  readonly #removals = new Map<number, Removal>();
  readonly #removedSlots = new Map<string, number>();
  readonly #deviceAt: (slot: number) => Device;
  #horizonXid = 0;

  constructor(deviceAt: (slot: number) => Device) {
    this.#deviceAt = deviceAt;
  }

  /** The newest transaction of a removal that is forgotten: who has not seen it cannot learn of it. */
  get horizonXid(): number {
    return this.#horizonXid;
  }

  /** A device came with this motion, or has moved. */
  moved(slot: number, motion: Motion, editedXid = this.#order.editedXid(slot)): void {
    this.#motions.put(slot, motion);
    this.#order.put(slot, motion.xid, editedXid);
  }

  edited(slot: number, editedXid: number): void {
    this.#order.put(slot, this.#order.movedXid(slot), editedXid);
  }

  motionOf(slot: number): Motion {
    return {
      headingDeg: this.#motions.headingDeg(slot),
      ignition: this.#motions.ignition(slot),
      revision: this.#motions.revision(slot),
      xid: this.#order.movedXid(slot),
    };
  }

  revisionOf(slot: number): number {
    return this.#motions.revision(slot);
  }

  movedXid(slot: number): number {
    return this.#order.movedXid(slot);
  }

  editedXid(slot: number): number {
    return this.#order.editedXid(slot);
  }

  /** Remembers that a device left; `slot` is its own from now on. Returns slots that are free again. */
  putRemoval(slot: number, removal: Removal): number[] {
    this.#removals.set(slot, removal);
    this.#removedSlots.set(removal.imei, slot);
    this.#order.put(slot, 0, removal.xid);
    const freed: number[] = [];
    if (this.#removals.size > REMOVALS_MAX) {
      const [oldest] = this.#removals.keys();
      if (oldest !== undefined) freed.push(this.#forget(oldest));
    }
    return freed;
  }

  /** The removal of this IMEI, if it is remembered. */
  removalOf(imei: string): Removal | undefined {
    const slot = this.#removedSlots.get(imei);
    return slot === undefined ? undefined : this.#removals.get(slot);
  }

  /** The device is back. Returns the slot that is free again, if there is one. */
  dropRemoval(imei: string): number | null {
    const slot = this.#removedSlots.get(imei);
    if (slot === undefined) return null;
    this.#removals.delete(slot);
    this.#removedSlots.delete(imei);
    this.#order.remove(slot);
    return slot;
  }

  /** Forgets removals of before this time; returns slots that are free again. */
  forgetRemovals(beforeMs: number): number[] {
    const old = [...this.#removals].filter(([, { atMs }]) => atMs < beforeMs);
    return old.map(([slot]) => this.#forget(slot));
  }

  page(query: ChangeQuery): Changed[] {
    return this.#order.page(query).map((change) => {
      const removal = this.#removals.get(change.slot);
      const { xid, id, movedXid, editedXid } = change;
      return removal === undefined
        ? this.shown(this.#deviceAt(change.slot), change)
        : { xid, id, movedXid, editedXid, device: null, imei: removal.imei };
    });
  }

  /** A device with what the feed shows beside it. */
  shown(device: Device, { slot, xid, id, movedXid, editedXid }: ChangedSlot): ShownDevice {
    const headingDeg = this.#motions.headingDeg(slot);
    const ignition = this.#motions.ignition(slot);
    return { xid, id, movedXid, editedXid, device, headingDeg, ignition };
  }

  sort(): void {
    this.#order.sort();
  }

  #forget(slot: number): number {
    const removal = this.#removals.get(slot) as Removal;
    this.#horizonXid = Math.max(this.#horizonXid, removal.xid);
    this.#removals.delete(slot);
    this.#removedSlots.delete(removal.imei);
    this.#order.remove(slot);
    return slot;
  }
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
