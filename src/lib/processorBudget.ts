import { workedSince } from './pace.ts';
import type { Steps } from './workTurns.ts';

/** A call takes more processor time than any call may. Less of the same kind would be answered. */
export class TooMuchWork extends Error {
  override name = 'TooMuchWork';
}

/** Nobody waits for the result any more. */
export class Abandoned extends Error {
  override name = 'Abandoned';
}

/** The processor time of one call, however many computations it is made of and however long they wait for their turns. */
export class ProcessorBudget {
  readonly #limitMs: number;
  readonly #isOver: () => boolean;
  #spentMs = 0;

  /** `isOver` is asked after each step: true when nobody waits any more. It may throw. */
  constructor(limitMs: number, isOver: () => boolean) {
    this.#limitMs = limitMs;
    this.#isOver = isOver;
  }

  /** The same steps. Instead of going on it throws TooMuchWork, Abandoned, or what `isOver` throws. */
  *spend<T>(steps: Steps<T>): Steps<T> {
    for (;;) {
      const fromMs = performance.now();
      const step = steps.next();
      this.#spentMs += workedSince(fromMs);
      if (step.done === true) return step.value;
      if (this.#spentMs > this.#limitMs) throw new TooMuchWork('the call takes too much processor time');
      if (this.#isOver()) throw new Abandoned('nobody waits for the result');
      yield;
    }
  }
}
