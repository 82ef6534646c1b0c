import { setTimeout as sleep } from 'node:timers/promises';
import type { Sql } from '../../postgres/sql.ts';
import { errorFields } from '../../postgres/sqlErrors.ts';
import { newDeliveryIds } from '../message.ts';
import { countOutbox, deleteFinishedBatches, fanOut } from './outbox.sql.ts';

/** How often the outbox is polled, for events of a pod that was killed before it could wake others. */
const POLL_MS = 5_000;
/** After this many chunks, batches of events whose deliveries are all made are deleted. */
const CHUNKS_BETWEEN_DELETIONS = 100;

export interface FanOutPorts {
  readonly sql: Sql;
  /** Called after each chunk with what was made, by endpoint. */
  readonly onQueued: (made: ReadonlyMap<number, number>) => void;
  /** Called with the number of deliveries that are still to be made. */
  readonly onWaiting: (deliveries: number) => void;
  readonly log: { warn(fields: object, message: string): void };
}

/**
 * Makes the deliveries of events in the outbox, which large transactions leave there: a chunk per statement, for the
 * accounts in turns. Any number of pods may do so at once. Postgres keeps their order and makes each delivery once.
 */
export class FanOut {
  readonly #ports: FanOutPorts;
  #running: Promise<void> | null = null;
  /** True when it was woken since the last look: that look may have been too early. */
  #isWoken = false;
  #timer: NodeJS.Timeout | undefined;
  #isStopping = false;
  #isFailing = false;

  constructor(ports: FanOutPorts) {
    this.#ports = ports;
  }

  start(): void {
    this.#timer = setInterval(() => this.wake(), POLL_MS);
    this.wake();
  }

  async stop(): Promise<void> {
    this.#isStopping = true;
    clearInterval(this.#timer);
    await this.#running;
  }

  /** Looks into the outbox, now or once more after the running look. */
  wake(): void {
    this.#isWoken = true;
    if (this.#isStopping) return;
    this.#running ??= this.#run().finally(() => {
      this.#running = null;
    });
  }

  /** Never rejects. After an error the next poll tries again. */
  async #run(): Promise<void> {
    const { sql, onWaiting, log } = this.#ports;
    try {
      while (this.#isWoken && !this.#isStopping) {
        this.#isWoken = false;
        const waiting = await countOutbox(sql);
        onWaiting(waiting);
        if (waiting === 0) continue;
        await this.#emptyOutbox();
        await deleteFinishedBatches(sql);
        onWaiting(await countOutbox(sql));
      }
      this.#isFailing = false;
    } catch (error) {
      if (!this.#isFailing) log.warn(errorFields(error), 'the outbox cannot be emptied');
      this.#isFailing = true;
    }
  }

  /** Visits the accounts in turns until none has anything left. */
  async #emptyOutbox(): Promise<void> {
    const { sql, onQueued } = this.#ports;
    let afterAccountId = 0;
    for (let chunk = 1; !this.#isStopping; chunk++) {
      const startedAtMs = performance.now();
      const { made, upToAccountId, done } = await fanOut(sql, newDeliveryIds(1)[0] ?? '', afterAccountId);
      if (made.size > 0) onQueued(made);
      if (done === 0 && afterAccountId === 0) return;
      afterAccountId = upToAccountId ?? 0;
      if (chunk % CHUNKS_BETWEEN_DELETIONS === 0) await deleteFinishedBatches(sql);
      // Leaves Postgres to points and callers for as long. Sending deliveries takes longer than making them anyway.
      await sleep(performance.now() - startedAtMs);
    }
  }
}
