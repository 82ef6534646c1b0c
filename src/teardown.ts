import type { Logger } from 'pino';
import { withDeadline } from './base/deadline.ts';

/** What a stop waits for one step, unless it says otherwise: a Postgres that says nothing must not hold it up. */
export const STEP_LIMIT_MS = 3_000;

/** Undoes what was started, last first. Every step runs, whatever the others do, and none is waited for for ever. */
export class Teardown {
  readonly #steps: { readonly step: () => unknown; readonly limitMs: number }[] = [];

  add(step: () => unknown, limitMs: number = STEP_LIMIT_MS): void {
    this.#steps.push({ step, limitMs });
  }

  async run(log: Logger): Promise<void> {
    for (const { step, limitMs } of this.#steps.splice(0).reverse()) {
      try {
        await withDeadline(Promise.resolve(step()), limitMs, 'a step of the stop');
      } catch (error) {
        log.warn({ err: error }, 'a step of the stop failed');
      }
    }
  }
}
