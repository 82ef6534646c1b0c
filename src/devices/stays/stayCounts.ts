import { StayBudget } from './stayRoom.ts';

/** The limit of an account whose plan is not known here yet: the default of the plans. */
const DEFAULT_MAX = 2_000_000;

/** The stays in one area. */
interface OfArea {
  /** Who made it; null: not known here. */
  accountId: number | null;
  stays: number;
  isDeleted: boolean;
}

/**
 * How many stays the areas of each account have: what the quota of stays is judged by. The stays of a deleted area count
 * until their devices send their next points, since they are held until then.
 */
export class StayCounts {
  readonly #areas = new Map<number, OfArea>();
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
    const area = this.#areas.get(areaId);
    if (area === undefined) {
      this.#areas.set(areaId, { accountId, stays: 0, isDeleted: false });
      return;
    }
    if (area.accountId === null) this.#count(accountId, area.stays);
    area.accountId = accountId;
    area.isDeleted = false;
  }

  removeArea(areaId: number): void {
    const area = this.#areas.get(areaId);
    if (area === undefined) return;
    area.isDeleted = true;
    if (area.stays === 0) this.#areas.delete(areaId);
  }

  begin(areaId: number): void {
    let area = this.#areas.get(areaId);
    if (area === undefined) {
      area = { accountId: null, stays: 0, isDeleted: true };
      this.#areas.set(areaId, area);
    }
    area.stays++;
    this.#total++;
    if (area.accountId !== null) this.#count(area.accountId, 1);
  }

  end(areaId: number): void {
    const area = this.#areas.get(areaId);
    if (area === undefined) return;
    area.stays--;
    this.#total--;
    if (area.accountId !== null) this.#count(area.accountId, -1);
    if (area.stays === 0 && area.isDeleted) this.#areas.delete(areaId);
  }

  #count(accountId: number, stays: number): void {
    const count = (this.#accounts.get(accountId) ?? 0) + stays;
    if (count === 0) this.#accounts.delete(accountId);
    else this.#accounts.set(accountId, count);
  }
}
