import { DueQueue } from '../base/dueQueue.ts';
import type { DueLane } from '../delivery/dueLane.ts';

/**
 * When to look at which endpoint: a wake-up, never the truth. It may forget and it may wake twice; a sweeper tells it
 * again what Postgres knows.
 */
export interface DeliverySchedule {
  /** Wakes for an endpoint in so many milliseconds, or earlier if that was asked before. */
  add(webhookId: number, dueInMs: number): Promise<void>;
  /** The same for many. */
  addAll(lanes: readonly DueLane[]): Promise<void>;
  /** Up to `limit` endpoints that are due, which are then forgotten; the longest due first. */
  take(limit: number): Promise<number[]>;
}

/** Stands in the schedule for the outbox, so that a pod that only takes points wakes one that delivers. No endpoint has it. */
export const OUTBOX_LANE = 0;

/** The schedule of a single process. */
export class LocalDeliverySchedule implements DeliverySchedule {
  /** By performance.now(), which no setting of the clock touches. */
  readonly #due = new DueQueue<number>();

  async add(webhookId: number, dueInMs: number): Promise<void> {
    this.#due.add(webhookId, performance.now() + dueInMs);
  }

  async addAll(lanes: readonly DueLane[]): Promise<void> {
    for (const { webhookId, dueInMs } of lanes) await this.add(webhookId, dueInMs);
  }

  async take(limit: number): Promise<number[]> {
    return this.#due.take(performance.now(), limit);
  }
}
