/** The limit of an account whose plan is not known here yet: the default of the plans. */
const DEFAULT_MAX = 2_000_000;

/** The stays in one area, of which there is at least one. */
interface OfArea {
  /** Who made it; null: not known here. */
  accountId: number | null;
  stays: number;
}

/**
 * How many stays the areas of each account have: what the quota of stays is judged by. The stays of a deleted area count
 * until their devices send their next points, since the devices keep them until then.
 */
export class StayCounts {
  /** Who made each area. Most have no stay, so this is a number for each and no object. */
  readonly #makers = new Map<number, number>();
  /** By area, deleted ones too. */
  readonly #stays = new Map<number, OfArea>();
  readonly #accounts = new Map<number, number>();
  /** By account. */
  readonly #limits = new Map<number, number>();
  readonly #budgets = new Set<StayBudget>();
  #total = 0;

  /** Stays of all accounts. */
  get total(): number {
    return this.#total;
  }

  /** The stays in the areas that an account made. */
  ofAccount(accountId: number): number {
    return this.#accounts.get(accountId) ?? 0;
  }

  /** How many stays the areas of an account may have. */
  limitOf(accountId: number): number {
    return this.#limits.get(accountId) ?? DEFAULT_MAX;
  }

  setLimit(accountId: number, max: number): void {
    this.#limits.set(accountId, max);
  }

  /** What a transaction may begin beside the others that are open here. It is open until its stays are counted here. */
  openBudget(): StayBudget {
    const budget: StayBudget = new StayBudget((accountId) => {
      let left = this.limitOf(accountId) - this.ofAccount(accountId);
      for (const other of this.#budgets) {
        // What others end is free when it has ended.
        if (other !== budget) left -= Math.max(0, other.begun(accountId));
      }
      return left;
    });
    this.#budgets.add(budget);
    return budget;
  }

  closeBudget(budget: StayBudget): void {
    this.#budgets.delete(budget);
  }

  /** An area exists. It may be known already, and stays in it may have come before it. */
  putArea(areaId: number, accountId: number): void {
    this.#makers.set(areaId, accountId);
    const area = this.#stays.get(areaId);
    if (area === undefined || area.accountId === accountId) return;
    // Another history of Postgres may have given its id to another area.
    if (area.accountId !== null) this.#count(area.accountId, -area.stays);
    this.#count(accountId, area.stays);
    area.accountId = accountId;
  }

  removeArea(areaId: number): void {
    this.#makers.delete(areaId);
  }

  begin(areaId: number): void {
    let area = this.#stays.get(areaId);
    if (area === undefined) {
      area = { accountId: this.#makers.get(areaId) ?? null, stays: 0 };
      this.#stays.set(areaId, area);
    }
    area.stays++;
    this.#total++;
    if (area.accountId !== null) this.#count(area.accountId, 1);
  }

  end(areaId: number): void {
    const area = this.#stays.get(areaId);
    if (area === undefined) return;
    area.stays--;
    this.#total--;
    if (area.accountId !== null) this.#count(area.accountId, -1);
    if (area.stays === 0) this.#stays.delete(areaId);
  }

  #count(accountId: number, stays: number): void {
    const count = (this.#accounts.get(accountId) ?? 0) + stays;
    if (count === 0) this.#accounts.delete(accountId);
    else this.#accounts.set(accountId, count);
  }
}

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
