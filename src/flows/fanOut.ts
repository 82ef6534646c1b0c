import { setTimeout as sleep } from 'node:timers/promises';
import { newDeliveryIds } from '../delivery/message.ts';
import { countOutbox, deleteSpentBatches, fanOut } from '../store/outbox.ts';
import { isUnavailable, type Sql } from '../store/sql.ts';

/** How often the outbox is looked at when nobody wakes us: for what a pod left that was killed before it said so. */
const SWEEP_MS = 5_000;
/** Chunks after which events whose deliveries are all made are forgotten, however much still waits. */
const CHUNKS_BETWEEN_DELETIONS = 100;

export interface FanOutPorts {
  readonly sql: Sql;
  /** Told of the endpoints that have something new, after the commit of each chunk. */
  readonly onQueued: (webhookIds: readonly number[]) => void;
  /** Told how many deliveries wait to be made, at each sweep. */
  readonly onWaiting: (deliveries: number) => void;
  readonly log: { warn(fields: object, message: string): void };
}

/**
 * Makes deliveries of what large transactions have left in the outbox: a chunk in a statement, accounts in turns. Any
 * number of pods may do so at once; Postgres does the work and keeps order and count.
 */
export class FanOut {
  readonly #ports: FanOutPorts;
  #running: Promise<void> | null = null;
  /** Woken while at work: what woke it may have come too late for the last look. */
  #isWoken = false;
  #timer: NodeJS.Timeout | undefined;
  #isStopping = false;
  #isFailing = false;

  constructor(ports: FanOutPorts) {
    this.#ports = ports;
  }

  start(): void {
    this.#timer = setInterval(() => this.wake(), SWEEP_MS);
    this.wake();
  }

  async stop(): Promise<void> {
    this.#isStopping = true;
    clearInterval(this.#timer);
    await this.#running;
  }

  /** Looks into the outbox. */
  wake(): void {
    this.#isWoken = true;
    if (this.#isStopping) return;
    this.#running ??= this.#run().finally(() => {
      this.#running = null;
    });
  }

  /** Never rejects: what fails is tried again with the next sweep. */
  async #run(): Promise<void> {
    const { sql, onWaiting, log } = this.#ports;
    try {
      while (this.#isWoken && !this.#isStopping) {
        this.#isWoken = false;
        const waiting = await countOutbox(sql);
        onWaiting(waiting);
        if (waiting === 0) continue;
        await this.#empty();
        await deleteSpentBatches(sql);
        onWaiting(await countOutbox(sql));
      }
      this.#isFailing = false;
    } catch (error) {
      if (!this.#isFailing)
        log.warn(isUnavailable(error) ? {} : { err: error }, 'the outbox cannot be emptied');
      this.#isFailing = true;
    }
  }

  /** Goes round the accounts until none has anything. */
  async #empty(): Promise<void> {
    const { sql, onQueued } = this.#ports;
    let afterAccountId = 0;
    for (let chunk = 1; !this.#isStopping; chunk++) {
      const startedAtMs = performance.now();
      const { webhookIds, upToAccountId, done } = await fanOut(
        sql,
        newDeliveryIds(1)[0] ?? '',
        afterAccountId,
      );
      if (webhookIds.length > 0) onQueued(webhookIds);
      if (done === 0 && afterAccountId === 0) return;
      afterAccountId = upToAccountId ?? 0;
      if (chunk % CHUNKS_BETWEEN_DELETIONS === 0) await deleteSpentBatches(sql);
      // Points and callers have Postgres for as long; what is made takes longer to be sent than to be made anyway.
      await sleep(performance.now() - startedAtMs);
    }
  }
}
