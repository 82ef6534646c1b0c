import { DeadlineExceeded } from '../base/deadline.ts';
import type { Ask } from './applyChanges.ts';

/** How long Postgres is silent is counted in ticks of this process, so that time in which the process itself stood still
 * (stopped, or busy with something else) is one tick and no silence of Postgres. */
const TICK_MS = 250;
const SILENT_TICKS = 8;
/** A Postgres that accepts and then says nothing for this long is asked anew, through another connection. */
const GIVE_UP_TICKS = 40;

/** Knows whether Postgres answers, from the questions that are asked through it. */
export class Silence {
  #isSilent = false;

  /** True from two seconds without an answer of Postgres until it gives one: waiting longer is in vain. */
  get isSilent(): boolean {
    return this.#isSilent;
  }

  /** Waits for an answer of Postgres, and not for ever: rejects with DeadlineExceeded after ten seconds. */
  readonly ask: Ask = (answer) =>
    new Promise((resolve, reject) => {
      let ticks = 0;
      const ticking = setInterval(() => {
        ticks++;
        // The answer may wait in a socket: they are read once before this tick counts.
        setImmediate(judge);
      }, TICK_MS);
      let isOver = false;
      const end = (): void => {
        clearInterval(ticking);
        isOver = true;
      };
      const judge = (): void => {
        if (isOver || ticks < SILENT_TICKS) return;
        this.#isSilent = true;
        if (ticks < GIVE_UP_TICKS) return;
        end();
        reject(new DeadlineExceeded('Postgres did not answer'));
      };
      const settle = (): void => {
        // What comes after it was given up says nothing of the question that is asked now.
        if (!isOver) this.#isSilent = false;
        end();
      };
      answer.finally(settle).then(resolve, reject);
    });
}
