const OFFSET_MAX = 2 ** 32 - 1;
/** How far back transactions are exact after the base was raised. */
const KEPT_XIDS = 2 ** 31;

/**
 * A transaction id for each slot, in four bytes: its distance from a base. Ids are exact within the last two billion
 * transactions, and always where there were fewer than four. Older ones read as the base, which is later: whoever
 * follows changes since then may see one twice and misses none.
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
    const offsets = new Uint32Array(room);
    offsets.set(this.#offsets);
    this.#offsets = offsets;
  }

  #raiseBase(baseXid: number): void {
    const by = baseXid - this.#baseXid;
    this.#baseXid = baseXid;
    for (let slot = 0; slot < this.#offsets.length; slot++) {
      this.#offsets[slot] = Math.max(0, (this.#offsets[slot] as number) - by);
    }
  }
}
