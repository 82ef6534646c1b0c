import type { Logger } from 'pino';
import { DeadlineExceeded, withDeadline } from './lib/deadline.ts';

/** What a stop waits for one step, unless it says otherwise: a Postgres that says nothing must not hold it up. */
export const STEP_LIMIT_MS = 3_000;
/** The same after a step that took too long: the next steps would probably wait for the same thing. */
const AFTER_STUCK_LIMIT_MS = 750;

/** Undoes what was started, last first. Every step runs, even if others fail, and each has a time limit. */
export class Teardown {
  readonly #steps: { readonly step: () => unknown; readonly limitMs: number }[] = [];

  add(step: () => unknown, limitMs: number = STEP_LIMIT_MS): void {
    this.#steps.push({ step, limitMs });
  }

  async run(log: Logger): Promise<void> {
    let usualMs = STEP_LIMIT_MS;
    for (const { step, limitMs } of this.#steps.splice(0).reverse()) {
      try {
        const ownMs = limitMs === STEP_LIMIT_MS ? usualMs : limitMs;
        await withDeadline(Promise.resolve(step()), ownMs, 'a step of the stop');
      } catch (error) {
        if (error instanceof DeadlineExceeded) usualMs = AFTER_STUCK_LIMIT_MS;
        log.warn({ err: error }, 'a step of the stop failed');
      }
    }
  }
}
