import type { Motion } from '../device.ts';

/**
 * A transaction id for each slot, in four bytes: its distance from a base. Ids of the last two billion transactions are
 * exact, and all ids are while there have been fewer than four billion. Older ones read as the base, which is later: a
 * reader of the changes since then may see one twice but misses none.
 */
export class XidColumn {
  #offsets = new Uint32Array(0);
  #baseXid = 0;

  at(slot: number): number {
    return this.#baseXid + (this.#offsets[slot] as number);
  }

  /** Returns whether the base was raised, and with it the ids of other slots that were lower. */
  put(slot: number, xid: number): boolean {
    const isRaised = xid - this.#baseXid > OFFSET_MAX;
    if (isRaised) this.#raiseBase(xid - KEPT_XIDS);
    this.#offsets[slot] = Math.max(0, xid - this.#baseXid);
    return isRaised;
  }

  /** The lowest id that can be read. */
  get baseXid(): number {
    return this.#baseXid;
  }

  grow(room: number): void {
    this.#offsets = grown(new Uint32Array(room), this.#offsets);
  }

  #raiseBase(baseXid: number): void {
    const by = baseXid - this.#baseXid;
    this.#baseXid = baseXid;
    for (let slot = 0; slot < this.#offsets.length; slot++) {
      this.#offsets[slot] = Math.max(0, (this.#offsets[slot] as number) - by);
    }
  }
}

const OFFSET_MAX = 2 ** 32 - 1;
/** How far back transactions are exact after the base was raised. */
const KEPT_XIDS = 2 ** 31;

/** Heading, ignition and revision of devices by slot, in 13 bytes each. The transaction is kept by ChangeOrder. */
export class MotionTable {
  #headings = new Float64Array(0);
  #revisions = new Uint32Array(0);
  #ignitions = new Uint8Array(0);

  put(slot: number, { headingDeg, ignition, revision }: Motion): void {
    this.#makeRoom(slot);
    this.#headings[slot] = headingDeg;
    this.#revisions[slot] = revision;
    this.#ignitions[slot] = IGNITIONS.indexOf(ignition);
  }

  headingDeg(slot: number): number {
    return this.#headings[slot] as number;
  }

  ignition(slot: number): boolean | null {
    return IGNITIONS[this.#ignitions[slot] as number] ?? null;
  }

  revision(slot: number): number {
    return this.#revisions[slot] as number;
  }

  #makeRoom(slot: number): void {
    const { length } = this.#headings;
    if (slot < length) return;
    const room = roomFor(slot, length);
    this.#headings = grown(new Float64Array(room), this.#headings);
    this.#revisions = grown(new Uint32Array(room), this.#revisions);
    this.#ignitions = grown(new Uint8Array(room), this.#ignitions);
  }
}

const IGNITIONS = [null, false, true] as const;

/** How many slots to have room for. It grows by a quarter: copying stays cheap, and little room is unused. */
export function roomFor(slot: number, present: number): number {
  return Math.max(slot + 1, 16, Math.ceil(present * 1.25));
}

/** A larger column with what the present one holds. */
export function grown<Column extends { set(from: Column): void }>(larger: Column, present: Column): Column {
  larger.set(present);
  return larger;
}
