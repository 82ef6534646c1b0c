/** A place in the order: by transaction, then by id. */
export interface ChangePlace {
  readonly xid: number;
  readonly id: number;
}

export interface ChangedSlot extends ChangePlace, ChangeXids {
  readonly slot: number;
}

/** The transactions of the last movement and of the last edit. */
export interface ChangeXids {
  readonly movedXid: number;
  readonly editedXid: number;
}

export function isBehind(xid: number, id: number, place: ChangePlace): boolean {
  return xid > place.xid || (xid === place.xid && id > place.id);
}

/** The first `count` of the changes that are offered. */
export class FirstChanges {
  readonly #count: number;
  #found: ChangedSlot[] = [];
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

  offer(change: ChangedSlot): void {
    if (this.isBefore(change.xid, change.id)) return;
    this.#found.push(change);
    if (this.#found.length >= 4 * this.#count) this.#cut();
  }

  inOrder(): ChangedSlot[] {
    this.#cut();
    return this.#found;
  }

  #cut(): void {
    this.#found.sort((a, b) => a.xid - b.xid || a.id - b.id);
    if (this.#found.length < this.#count) return;
    this.#found.length = this.#count;
    this.#last = this.#found[this.#count - 1] as ChangedSlot;
  }
}
