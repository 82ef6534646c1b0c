/** Stays that a device may have at a time. */
export const DEVICE_STAYS_MAX = 5_000;

/** Which limit kept a stay from beginning. */
export type StayLimit = 'account' | 'device';

/**
 * How many stays the points of one transaction may begin: what the accounts of the areas have left. What a device takes
 * counts for the devices after it once it is kept.
 */
export class StayBudget {
  readonly #leftOf: (accountId: number) => number;
  /** Begun less ended, by account. */
  readonly #begun = new Map<number, number>();

  /** `leftOf`: how many stays the areas of an account may have more, before this transaction. */
  constructor(leftOf: (accountId: number) => number = () => Number.POSITIVE_INFINITY) {
    this.#leftOf = leftOf;
  }

  left(accountId: number): number {
    return this.#leftOf(accountId) - this.begun(accountId);
  }

  /** Begun less ended by the devices that are kept. */
  begun(accountId: number): number {
    return this.#begun.get(accountId) ?? 0;
  }

  keep(begun: ReadonlyMap<number, number>): void {
    for (const [accountId, count] of begun) this.#begun.set(accountId, this.begun(accountId) + count);
  }
}

/** The same for one device, which also has a limit of its own. */
export class StayRoom {
  readonly #budget: StayBudget;
  readonly #begun = new Map<number, number>();
  /** What the present point has changed: accounts, null where it is not known, and by how much. */
  #changes: (readonly [accountId: number | null, count: 1 | -1])[] = [];
  #stays: number;

  /** `stays`: how many the device has. */
  constructor(budget: StayBudget, stays: number) {
    this.#budget = budget;
    this.#stays = stays;
  }

  /** What keeps a stay in an area of this account from beginning; null: nothing. */
  limitOf(accountId: number): StayLimit | null {
    if (this.#stays >= DEVICE_STAYS_MAX) return 'device';
    return this.#budget.left(accountId) - (this.#begun.get(accountId) ?? 0) <= 0 ? 'account' : null;
  }

  begin(accountId: number): void {
    this.#change(accountId, 1);
  }

  /** `accountId` is null where the area is gone from sight. */
  end(accountId: number | null): void {
    this.#change(accountId, -1);
  }

  /** The present point counts, and the next one begins. */
  next(): void {
    this.#changes = [];
  }

  /** The present point is left for later. */
  undo(): void {
    for (const [accountId, count] of this.#changes) this.#count(accountId, -count);
    this.#changes = [];
  }

  /** The points of the device are committed with those of the budget. */
  keep(): void {
    this.#budget.keep(this.#begun);
  }

  #change(accountId: number | null, count: 1 | -1): void {
    this.#changes.push([accountId, count]);
    this.#count(accountId, count);
  }

  #count(accountId: number | null, count: number): void {
    this.#stays += count;
    if (accountId !== null) this.#begun.set(accountId, (this.#begun.get(accountId) ?? 0) + count);
  }
}
