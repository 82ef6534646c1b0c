import { DueQueue } from '../lib/dueQueue.ts';
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
