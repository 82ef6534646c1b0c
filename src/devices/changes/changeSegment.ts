import { type ChangePlace, isBehind } from './firstChanges.ts';

/** Entries of one segment. */
export const SEGMENT_SLOTS = 512;

/** Slots that changed at about the same time, in any order, with the bounds of what is in it. */
export class Segment {
  readonly number: number;
  readonly slots = new Int32Array(SEGMENT_SLOTS);
  count = 0;
  /** Nothing in it is before (minXid, minId) or behind (maxXid, maxId). */
  minXid = Number.POSITIVE_INFINITY;
  minId = 0;
  maxXid = Number.NEGATIVE_INFINITY;
  maxId = 0;
  /** No segment before this one holds a later transaction. */
  reach = 0;
  before: Segment | null;
  behind: Segment | null = null;

  constructor(number: number, before: Segment | null) {
    this.number = number;
    this.before = before;
  }

  cover(xid: number, id: number, reach: number): void {
    if (xid < this.minXid || (xid === this.minXid && id < this.minId)) {
      this.minXid = xid;
      this.minId = id;
    }
    if (xid > this.maxXid || (xid === this.maxXid && id > this.maxId)) {
      this.maxXid = xid;
      this.maxId = id;
    }
    this.reach = reach;
  }

  coverAll(other: Segment): void {
    const reach = Math.max(this.reach, other.reach);
    this.cover(other.minXid, other.minId, reach);
    this.cover(other.maxXid, other.maxId, reach);
  }

  /** Any of its entries that were older may be of this transaction now. */
  raise(xid: number): void {
    if (this.maxXid < xid) {
      this.maxXid = xid;
      this.maxId = Number.MAX_SAFE_INTEGER;
    }
    this.reach = Math.max(this.reach, xid);
  }

  endsBefore({ xid, id }: ChangePlace): boolean {
    return !isBehind(this.maxXid, this.maxId, { xid, id });
  }
}
