import type { Sql } from '../../postgres/sql.ts';
import {
  type ClaimedEndpoint,
  type Completed,
  type Completion,
  claimEndpoints,
  completeAndClaim,
  completeAndClaimAll,
} from './claims.sql.ts';

/** Endpoints of one statement: few enough that none waits for long, enough to be worth the round trip. */
const BATCH_SIZE = 64;
/** Statements of one kind at a time. Requests that arrive while it runs form the next one. */
const STATEMENTS = 1;

/** Claims of a whole pod: what is asked for at about the same time becomes one statement. */
export class ClaimBatches {
  readonly #sql: Sql;
  readonly #claims: Batches<number, ClaimedEndpoint | undefined>;
  readonly #completions: Batches<Completion, Completed | 'busy'>;

  constructor(sql: Sql) {
    this.#sql = sql;
    const limits = { size: BATCH_SIZE, parallel: STATEMENTS };
    this.#claims = new Batches({ ...limits, run: (ids) => claimEndpoints(sql, ids) });
    this.#completions = new Batches({ ...limits, run: (all) => completeAndClaimAll(sql, all) });
  }

  /** Like claimEndpoints, for one endpoint. */
  claim(webhookId: number): Promise<ClaimedEndpoint | undefined> {
    return this.#claims.ask(webhookId);
  }

  /** Like the function of the same name. A locked row keeps only this completion waiting, not the rest of its batch. */
  async completeAndClaim(completion: Completion): Promise<Completed> {
    const completed = await this.#completions.ask(completion);
    return completed === 'busy' ? completeAndClaim(this.#sql, completion) : completed;
  }
}

interface BatchPorts<Item, Answer> {
  /** Answers all items, in their order. If it rejects, every item rejects. */
  readonly run: (items: readonly Item[]) => Promise<readonly Answer[]>;
  /** Items of one batch. */
  readonly size: number;
  /** Batches that run side by side. */
  readonly parallel: number;
}

/**
 * Groups items into batches. A batch contains what was asked for in one turn of the event loop, or while earlier batches
 * were running. So an item runs alone and at once when there is little to do, and batches grow with the load.
 */
export class Batches<Item, Answer> {
  readonly #ports: BatchPorts<Item, Answer>;
  #waiting: {
    readonly item: Item;
    readonly resolve: (answer: Answer) => void;
    reject(error: unknown): void;
  }[] = [];
  #running = 0;
  #isScheduled = false;

  constructor(ports: BatchPorts<Item, Answer>) {
    this.#ports = ports;
  }

  ask(item: Item): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ item, resolve, reject });
      this.#schedule();
    });
  }

  #schedule(): void {
    if (this.#isScheduled || this.#running >= this.#ports.parallel || this.#waiting.length === 0) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      void this.#runOne();
    });
  }

  async #runOne(): Promise<void> {
    const batch = this.#waiting.splice(0, this.#ports.size);
    this.#running++;
    this.#schedule();
    try {
      const answers = await this.#ports.run(batch.map(({ item }) => item));
      batch.forEach(({ resolve }, n) => {
        resolve(answers[n] as Answer);
      });
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
    this.#running--;
    this.#schedule();
  }
}
