import { DeadlineExceeded, withDeadline } from '../../../base/deadline.ts';
import { FairSemaphore } from '../../../base/fairSemaphore.ts';
import type { Steps, WorkTurns } from '../../../base/workTurns.ts';
import type { Answer } from '../../answers/answer.ts';
import { CutAnswer, type StreamedBody } from '../../bodies/streamedBody.ts';
import { TextPieces } from './textPieces.ts';

/** Batches that run at a time, and that wait. Two of an account run at a time. */
const RUNNING = { running: 64, runningPerKey: 2, waiting: 2_000, waitingPerKey: 50 };
/** A batch that takes longer ends as a 503. Less than what an answer may take (answerRoute). */
const DEADLINE_MS = 12_000;
/** A batch that waits for others of its account for longer is a 503. */
const WAIT_LIMIT_MS = 15_000;
/** What a reader may take for one piece of an answer, and for all of it. */
const READ_LIMITS_MS = { piece: 15_000, whole: 60_000 };

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

  /**
   * A 200 with the JSON that `write` adds. The batch counts as running until its reader has taken the answer, so unread
   * answers of an account take the memory of two.
   */
  answer(accountId: number, write: (json: TextPieces) => Steps<void>): Answer {
    return { status: 200, body: this.#body(accountId, write) };
  }

  #body(accountId: number, write: (json: TextPieces) => Steps<void>): StreamedBody {
    const json = new TextPieces();
    let readUntilMs = 0;
    return {
      get bytes() {
        return json.bytes;
      },
      stallLimitMs: READ_LIMITS_MS.piece,
      open: async () => {
        await this.#acquire(accountId);
        try {
          await this.#turns.run(accountId, withinDeadline(write(json)));
        } catch (error) {
          this.#running.release(accountId);
          throw error;
        }
        readUntilMs = performance.now() + READ_LIMITS_MS.whole;
      },
      next: (take) => {
        if (performance.now() > readUntilMs)
          return Promise.reject(new CutAnswer('the reader takes too long'));
        // Sending is work of a turn too: the system takes ten megabytes at once, which holds up everybody else.
        return this.#turns.once(accountId, () => {
          take(json.shift());
          return !json.isEmpty;
        });
      },
      close: () => this.#running.release(accountId),
    };
  }

  /** Takes a permit. Rejects with Overloaded, or with DeadlineExceeded. */
  async #acquire(accountId: number): Promise<void> {
    const acquired = this.#running.acquire(accountId);
    try {
      await withDeadline(acquired, WAIT_LIMIT_MS, 'the batches before');
    } catch (error) {
      // A permit that comes after the deadline goes back. Without one there is nothing to give back.
      acquired.then(
        () => this.#running.release(accountId),
        () => undefined,
      );
      throw error;
    }
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
