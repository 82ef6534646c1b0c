import { setTimeout as sleep } from 'node:timers/promises';
import { DeadlineExceeded } from '../../lib/deadline.ts';
import type { Claim, Claimed } from './claims.sql.ts';

/** Claims of one statement: few enough that none waits for long, enough to be worth the round trip. */
const BATCH_SIZE = 64;
/** Statements that run side by side. Claims that arrive while they run form the next one. */
const STATEMENTS = 2;
/** When a claim is made again that found its rows locked, and until when: a lease has run out by then. */
const BUSY_RETRY_MS = 20;
const BUSY_MAX_MS = 30_000;

interface WaitingClaim {
  readonly claim: Claim;
  readonly resolve: (answer: Claimed | 'busy' | undefined) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * The claims of a whole pod. A statement carries what was asked for in one turn of the event loop, or while earlier
 * ones were running. So a claim is made alone and at once when there is little to do, and batches grow with the load.
 */
export class ClaimBatches {
  readonly #run: (claims: readonly Claim[]) => Promise<readonly (Claimed | 'busy' | undefined)[]>;
  #waiting: WaitingClaim[] = [];
  #running = 0;
  #isScheduled = false;

  /** @param run answers all claims, in their order; if it rejects, every claim rejects */
  constructor(run: (claims: readonly Claim[]) => Promise<readonly (Claimed | 'busy' | undefined)[]>) {
    this.#run = run;
  }

  /**
   * Like claimDeliveries, for one claim. A locked row keeps only this claim waiting, not the rest of its batch. Rejects
   * with DeadlineExceeded when it stays locked.
   */
  async claim(claim: Claim): Promise<Claimed | undefined> {
    const startedAtMs = performance.now();
    for (;;) {
      const answer = await this.#ask(claim);
      if (answer !== 'busy') return answer;
      if (performance.now() - startedAtMs > BUSY_MAX_MS)
        throw new DeadlineExceeded('an endpoint stays locked');
      await sleep(BUSY_RETRY_MS);
    }
  }

  #ask(claim: Claim): Promise<Claimed | 'busy' | undefined> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ claim, resolve, reject });
      this.#schedule();
    });
  }

  #schedule(): void {
    if (this.#isScheduled || this.#running >= STATEMENTS || this.#waiting.length === 0) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      void this.#runOne();
    });
  }

  async #runOne(): Promise<void> {
    const batch = this.#waiting.splice(0, BATCH_SIZE);
    this.#running++;
    this.#schedule();
    try {
      const answers = await this.#run(batch.map(({ claim }) => claim));
      batch.forEach(({ resolve }, n) => {
        resolve(answers[n]);
      });
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
    this.#running--;
    this.#schedule();
  }
}
