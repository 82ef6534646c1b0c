import { invariant } from '../lib/errors.ts';
import { radixOrder, release } from '../lib/radixOrder.ts';
import type { RowPages } from '../lib/rows.ts';
import type { Steps } from '../lib/workTurns.ts';

/** Entries of one segment. */
const SEGMENT_SLOTS = 512;
/** A segment with so few entries is merged with its neighbour if there is room. */
const SPARSE = SEGMENT_SLOTS / 4;
/** Slots that are filled in before other work has its turn: a fraction of a millisecond. */
const FILLED_PER_STEP = 2_048;

/** A place in the order: by transaction, then by id. */
export interface ChangePlace {
  readonly xid: number;
  readonly id: number;
}

/** The transactions of the last movement and of the last edit. */
export interface ChangeXids {
  readonly movedXid: number;
  readonly editedXid: number;
}

export interface ChangedSlot extends ChangePlace, ChangeXids {
  readonly slot: number;
}

/** What the order keeps of each slot, and asks of it. */
export interface ChangeColumns {
  id(slot: number): number;
  movedXid(slot: number): number;
  editedXid(slot: number): number;
  putXids(slot: number, movedXid: number, editedXid: number): void;
  /** The lowest transaction that can be read. When it rises, transactions below rise too. */
  readonly baseXid: number;
  /** The number of its segment, plus 1; 0: it is in none. */
  segment(slot: number): number;
  /** Where it is in its segment. */
  place(slot: number): number;
  setPlace(slot: number, segment: number, place: number): void;
}

/**
 * The transactions of rows in four bytes each: their distance from a base. Those of the last two billion are exact, and all are
 * while there have been fewer than four billion. Older ones read as the base, which is later: a reader of the changes since
 * then may see one twice but misses none.
 */
export class RowXids {
  readonly #rows: RowPages;
  readonly #movedField: number;
  readonly #editedField: number;
  #base = 0;

  /** The fields of four bytes that they take. */
  constructor(rows: RowPages, movedField: number, editedField: number) {
    this.#rows = rows;
    this.#movedField = movedField;
    this.#editedField = editedField;
  }

  /** The lowest transaction that can be read. When it rises, those below rise too. */
  get base(): number {
    return this.#base;
  }

  moved(row: number): number {
    return this.#base + this.#rows.int(row, this.#movedField);
  }

  edited(row: number): number {
    return this.#base + this.#rows.int(row, this.#editedField);
  }

  put(row: number, movedXid: number, editedXid: number): void {
    const newest = Math.max(movedXid, editedXid);
    if (newest - this.#base > OFFSET_MAX) this.#raise(newest - KEPT_XIDS);
    this.#rows.setInt(row, this.#movedField, Math.max(0, movedXid - this.#base));
    this.#rows.setInt(row, this.#editedField, Math.max(0, editedXid - this.#base));
  }

  #raise(base: number): void {
    const by = base - this.#base;
    this.#base = base;
    for (let row = 0; row < this.#rows.end; row++) {
      for (const field of [this.#movedField, this.#editedField])
        this.#rows.setInt(row, field, Math.max(0, this.#rows.int(row, field) - by));
    }
  }
}

const OFFSET_MAX = 2 ** 32 - 1;
/** How far back transactions are exact after the base was raised. */
const KEPT_XIDS = 2 ** 31;

/** Which changes a page is made of. */
export interface ChangeQuery {
  /** Changes of earlier transactions are not wanted. */
  readonly fromXid: number;
  /** Only changes behind this place. */
  readonly after: ChangePlace | null;
  readonly limit: number;
  readonly isWanted: (movedXid: number, editedXid: number, id: number) => boolean;
}

/**
 * The slots of a world in the order in which transactions changed them last, so that what has changed since a snapshot
 * is found without looking at the rest. A change costs O(1), whatever the number of slots.
 *
 * Segments hold some hundred slots each, and know the bounds of their changes. New changes go into the newest segment.
 * Transactions commit out of order, so a segment may hold some that are older than those of segments before it. Bounds
 * say which segments a page needs: with few transactions in flight that is one or two.
 *
 * A slot has two transactions, of its last movement and of its last edit: neither waits for the other, so a snapshot
 * may see the later of them and not the earlier.
 */
export class ChangeOrder {
  readonly #columns: ChangeColumns;
  /** Up to here the bounds of segments allow for a base that has risen. */
  #baseXid: number;
  readonly #segments: (Segment | undefined)[] = [];
  readonly #freeNumbers: number[] = [];
  #newest: Segment | null = null;
  /** The highest transaction so far. */
  #reach = 0;

  /** How many slots are in it. */
  size = 0;

  constructor(columns: ChangeColumns) {
    this.#columns = columns;
    this.#baseXid = columns.baseXid;
  }

  get segmentCount(): number {
    return this.#segments.length - this.#freeNumbers.length;
  }

  /** Says by which transactions a slot was changed last, and makes that its newest change. */
  put(slot: number, movedXid: number, editedXid: number): void {
    const columns = this.#columns;
    columns.putXids(slot, movedXid, editedXid);
    this.#raiseToBase();
    const xid = this.#xidOf(slot);
    const id = columns.id(slot);
    if (xid > this.#reach) this.#reach = xid;
    const newest = this.#newest;
    const present = columns.segment(slot);
    if (newest !== null && present === newest.number + 1) {
      newest.cover(xid, id, this.#reach);
      return;
    }
    if (present === 0) this.size++;
    else this.#takeOut(slot);
    const segment = newest === null || newest.count === SEGMENT_SLOTS ? this.#open() : newest;
    this.#add(segment, slot);
    segment.cover(xid, id, this.#reach);
  }

  remove(slot: number): void {
    if (this.#columns.segment(slot) === 0) return;
    this.#takeOut(slot);
    this.size--;
  }

  /**
   * The first `limit` wanted changes in order, or one more than the limit if there are more. Segments are searched from
   * the newest back, until no earlier one can hold a transaction from `fromXid` on.
   */
  page({ fromXid, after, limit, isWanted }: ChangeQuery): ChangedSlot[] {
    this.#raiseToBase();
    const columns = this.#columns;
    const segments: Segment[] = [];
    for (let segment = this.#newest; segment !== null && segment.reach >= fromXid; segment = segment.before) {
      const isPassed = segment.maxXid < fromXid || (after !== null && segment.endsBefore(after));
      if (segment.count > 0 && !isPassed) segments.push(segment);
    }
    segments.sort((a, b) => a.minXid - b.minXid || a.minId - b.minId);
    const first = new FirstChanges(limit + 1);
    for (const segment of segments) {
      if (first.isFull && first.isBefore(segment.minXid, segment.minId)) break;
      for (let n = 0; n < segment.count; n++) {
        const slot = segment.slots[n] as number;
        const moved = columns.movedXid(slot);
        const edited = columns.editedXid(slot);
        const xid = Math.max(moved, edited);
        if (xid < fromXid) continue;
        const id = columns.id(slot);
        if (after !== null && !isBehind(xid, id, after)) continue;
        if (isWanted(moved, edited, id)) first.offer({ slot, xid, id, movedXid: moved, editedXid: edited });
      }
    }
    return first.inOrder();
  }

  /** Adds slots that are not in the order, whose transactions the columns have, and sorts all by transaction. */
  *fill(added: ArrayLike<number>): Steps<void> {
    const columns = this.#columns;
    const present = this.#allSlots();
    const slotOf = (n: number) => present[n] ?? (added[n - present.length] as number);
    const order = yield* radixOrder(present.length + added.length, (n) => this.#xidOf(slotOf(n)));
    for (const slot of present) columns.setPlace(slot, 0, 0);
    this.#segments.length = 0;
    this.#freeNumbers.length = 0;
    this.#newest = null;
    this.#reach = 0;
    this.size = 0;
    for (let n = 0; n < order.length; n++) {
      const slot = slotOf(order[n] as number);
      this.put(slot, columns.movedXid(slot), columns.editedXid(slot));
      if (n % FILLED_PER_STEP === 0) yield;
    }
    release(order);
  }

  #xidOf(slot: number): number {
    return Math.max(this.#columns.movedXid(slot), this.#columns.editedXid(slot));
  }

  /** Entries may have risen to the base. */
  #raiseToBase(): void {
    const { baseXid } = this.#columns;
    if (baseXid === this.#baseXid) return;
    this.#baseXid = baseXid;
    for (const segment of this.#segments) segment?.raise(baseXid);
  }

  #allSlots(): number[] {
    const slots: number[] = [];
    for (const segment of this.#segments) {
      for (let n = 0; n < (segment?.count ?? 0); n++) slots.push(segment?.slots[n] as number);
    }
    return slots;
  }

  #open(): Segment {
    const number = this.#freeNumbers.pop() ?? this.#segments.length;
    const segment = new Segment(number, this.#newest);
    if (this.#newest !== null) this.#newest.behind = segment;
    this.#segments[number] = segment;
    this.#newest = segment;
    return segment;
  }

  #add(segment: Segment, slot: number): void {
    segment.slots[segment.count] = slot;
    this.#columns.setPlace(slot, segment.number + 1, segment.count);
    segment.count++;
  }

  #takeOut(slot: number): void {
    const columns = this.#columns;
    const segment = this.#segments[columns.segment(slot) - 1];
    invariant(segment, 'a slot lies in a segment');
    segment.count--;
    const last = segment.slots[segment.count] as number;
    const place = columns.place(slot);
    segment.slots[place] = last;
    columns.setPlace(last, segment.number + 1, place);
    columns.setPlace(slot, 0, 0);
    if (segment !== this.#newest && segment.count <= SPARSE) this.#thin(segment);
  }

  /** Closes a segment with few entries: they go to the one beside it that has few as well. */
  #thin(segment: Segment): void {
    const room = SEGMENT_SLOTS / 2 - segment.count;
    const { before, behind } = segment;
    const beside =
      before !== null && before.count <= room
        ? before
        : behind !== null && behind !== this.#newest && behind.count <= room
          ? behind
          : null;
    if (beside === null && segment.count > 0) return;
    if (beside !== null && segment.count > 0) {
      for (let n = 0; n < segment.count; n++) this.#add(beside, segment.slots[n] as number);
      beside.coverAll(segment);
    }
    if (before !== null) before.behind = behind;
    if (behind !== null) behind.before = before;
    this.#segments[segment.number] = undefined;
    this.#freeNumbers.push(segment.number);
  }
}

/** Slots that changed at about the same time, in any order, with the bounds of what is in it. */
class Segment {
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

function isBehind(xid: number, id: number, place: ChangePlace): boolean {
  return xid > place.xid || (xid === place.xid && id > place.id);
}

/** The first `count` of the changes that are offered, by transaction (or another number that comes first), then by id. */
export class FirstChanges<Change extends ChangePlace = ChangedSlot> {
  readonly #count: number;
  #found: Change[] = [];
  /** Changes after this one are not taken. */
  #last: ChangePlace | null = null;

  constructor(count: number) {
    this.#count = count;
  }

  get isFull(): boolean {
    this.#cut();
    return this.#found.length === this.#count;
  }

  isBefore(xid: number, id: number): boolean {
    return this.#last !== null && isBehind(xid, id, this.#last);
  }

  offer(change: Change): void {
    if (this.isBefore(change.xid, change.id)) return;
    this.#found.push(change);
    if (this.#found.length >= 4 * this.#count) this.#cut();
  }

  inOrder(): Change[] {
    this.#cut();
    return this.#found;
  }

  #cut(): void {
    this.#found.sort((a, b) => a.xid - b.xid || a.id - b.id);
    if (this.#found.length < this.#count) return;
    this.#found.length = this.#count;
    this.#last = this.#found[this.#count - 1] as Change;
  }
}
