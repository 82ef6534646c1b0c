import { DeadlineExceeded } from '../../../base/deadline.ts';
import { FairSemaphore } from '../../../base/fairSemaphore.ts';
import type { Steps, WorkTurns } from '../../../base/workTurns.ts';

/** Batches that run at a time, and that wait. Two of an account run at a time. */
const RUNNING = { running: 64, runningPerKey: 2, waiting: 2_000, waitingPerKey: 50 };
/** A batch that takes longer ends as a 503. Less than what an answer may take (answerRoute). */
const DEADLINE_MS = 12_000;

/** Runs the batches of all accounts in work turns, a few of each account at a time, and none without end. */
export class BulkCalls {
  readonly #turns: WorkTurns<string | number>;
  readonly #running = new FairSemaphore<number>(RUNNING);

  constructor(turns: WorkTurns<string | number>) {
    this.#turns = turns;
  }

  /** What `steps` returns. Rejects with Overloaded, or with DeadlineExceeded. */
  run<T>(accountId: number, steps: () => Steps<T>): Promise<T> {
    return this.#running.run(accountId, () => this.#turns.run(accountId, withinDeadline(steps())));
  }
}

function* withinDeadline<T>(steps: Steps<T>): Steps<T> {
  const untilMs = performance.now() + DEADLINE_MS;
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
    if (performance.now() > untilMs) throw new DeadlineExceeded('the batch takes too long');
    yield;
  }
}
