import type { DueEndpoint } from './dueEndpoint.ts';

/**
 * When to look at which endpoint. Only a wake-up: Postgres has the truth. It may forget an endpoint or wake it twice. A
 * sweep fills it again from Postgres every few seconds.
 */
export interface DeliverySchedule {
  /** Makes an endpoint due in this many milliseconds. An earlier time that was asked for before is kept. */
  add(webhookId: number, dueInMs: number): Promise<void>;
  /** The same for many. */
  addAll(endpoints: readonly DueEndpoint[]): Promise<void>;
  /** Removes and returns up to `limit` due endpoints, the longest due first. */
  take(limit: number): Promise<number[]>;
}

/** The entry of the outbox: a pod that only takes points wakes one that delivers by it. No endpoint has this id. */
export const OUTBOX_ENTRY = 0;

/** The schedule of a single process. */
export class LocalDeliverySchedule implements DeliverySchedule {
  /** In milliseconds of performance.now(), which does not follow changes of the system clock. */
  readonly #due = new DueQueue<number>();

  async add(webhookId: number, dueInMs: number): Promise<void> {
    this.#due.add(webhookId, performance.now() + dueInMs);
  }

  async addAll(endpoints: readonly DueEndpoint[]): Promise<void> {
    for (const { webhookId, dueInMs } of endpoints) await this.add(webhookId, dueInMs);
  }

  async take(limit: number): Promise<number[]> {
    return this.#due.take(performance.now(), limit);
  }
}

interface Entry<Item> {
  readonly item: Item;
  readonly dueAt: number;
}

/** Outdated entries are removed when there are this many more of them than of the others. */
const STALE_MAX = 1_000;

/** Items by the time at which they are due, each once, at the earliest time asked for. Adding and taking are O(log n). */
export class DueQueue<Item> {
  readonly #dueAt = new Map<Item, number>();
  /** A binary heap by time. An entry is outdated when its time is no longer that of its item. */
  #heap: Entry<Item>[] = [];

  /** An earlier time that was asked for before is kept. */
  add(item: Item, dueAt: number): void {
    const known = this.#dueAt.get(item);
    if (known !== undefined && known <= dueAt) return;
    this.#dueAt.set(item, dueAt);
    this.#heap.push({ item, dueAt });
    this.#rise();
    if (this.#heap.length > 2 * this.#dueAt.size + STALE_MAX) this.#clearStale();
  }

  /** Removes and returns up to `limit` items that are due by `now`, the longest due first. */
  take(now: number, limit: number): Item[] {
    const taken: Item[] = [];
    while (taken.length < limit && (this.#heap[0]?.dueAt ?? Number.POSITIVE_INFINITY) <= now) {
      const { item, dueAt } = this.#pop();
      if (this.#dueAt.get(item) !== dueAt) continue;
      this.#dueAt.delete(item);
      taken.push(item);
    }
    return taken;
  }

  /** A sorted array is a heap. */
  #clearStale(): void {
    const entries = this.#heap.filter(({ item, dueAt }) => this.#dueAt.get(item) === dueAt);
    this.#heap = entries.sort((a, b) => a.dueAt - b.dueAt);
  }

  #at(index: number): Entry<Item> {
    return this.#heap[index] as Entry<Item>;
  }

  #swap(a: number, b: number): void {
    const first = this.#at(a);
    this.#heap[a] = this.#at(b);
    this.#heap[b] = first;
  }

  #rise(): void {
    for (let at = this.#heap.length - 1; at > 0; ) {
      const parent = (at - 1) >> 1;
      if (this.#at(parent).dueAt <= this.#at(at).dueAt) return;
      this.#swap(at, parent);
      at = parent;
    }
  }

  #pop(): Entry<Item> {
    const first = this.#at(0);
    const last = this.#heap.pop() as Entry<Item>;
    if (this.#heap.length === 0) return first;
    this.#heap[0] = last;
    for (let at = 0; ; ) {
      let least = at;
      for (const child of [2 * at + 1, 2 * at + 2]) {
        if (child < this.#heap.length && this.#at(child).dueAt < this.#at(least).dueAt) least = child;
      }
      if (least === at) return first;
      this.#swap(at, least);
      at = least;
    }
  }
}
