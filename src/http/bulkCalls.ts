import { FairSemaphore } from '../lib/fairSemaphore.ts';
import type { FieldError } from '../lib/fieldError.ts';
import { formatDuration, OutOfTime } from '../lib/time.ts';
import { ProcessorBudget, type Steps, TooMuchWork, type WorkTurns } from '../lib/workTurns.ts';
import { type Answer, CutAnswer, NotBegun, type StreamedBody, validationAnswer } from './answer.ts';
import { TextPieces } from './textPieces.ts';

/** Devices that the points of a batch may ask for together. */
export const BATCH_DEVICES_MAX = 10_000;
/** Areas that are listed for one point. */
export const CONTAINING_MAX = 200;
/** Processor time of one batch: a thousand points among two thousand areas that all contain them take a quarter of it. */
const BULK_WORK_MS = 8_000;
export const TOO_MUCH_BULK_WORK = {
  field: 'points',
  code: 'LIMIT_REACHED',
  message: `the points together take more than ${formatDuration(BULK_WORK_MS)} of processor time; send them in several calls`,
} as const satisfies FieldError;

/** Batches that run at a time, and that wait. Two of an account run at a time. */
const RUNNING = { running: 64, runningPerKey: 2, waiting: 2_000, waitingPerKey: 50 };
/** A batch that takes longer, its turns included, ends as a 503. Less than what an answer may take (answerRoute). */
const DEADLINE_MS = 12_000;
/** A batch that waits for others of its account for longer is a 503. */
const WAIT_LIMIT_MS = 15_000;
/** What a reader may take for one piece of an answer, and for all of it. */
const READ_LIMITS_MS = { piece: 15_000, whole: 60_000 };

/** Runs the batches of all accounts in work turns, a few of each account at a time, and none without end. */
export class BulkCalls {
  readonly #turns: WorkTurns<string | number>;
  readonly #workMs: number;
  readonly #running = new FairSemaphore<number>(RUNNING);

  /** `workMs`: processor time of one batch. */
  constructor(turns: WorkTurns<string | number>, workMs = BULK_WORK_MS) {
    this.#turns = turns;
    this.#workMs = workMs;
  }

  /** What `steps` returns. Rejects with Overloaded, OutOfTime or TooMuchWork. */
  run<T>(accountId: number, steps: () => Steps<T>): Promise<T> {
    return this.#running.run(accountId, () => this.#measure(accountId, steps()));
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
        await this.#running.acquireWithin(accountId, WAIT_LIMIT_MS);
        try {
          await this.#measure(accountId, write(json));
        } catch (error) {
          this.#running.release(accountId);
          if (error instanceof TooMuchWork) throw new NotBegun(validationAnswer([TOO_MUCH_BULK_WORK]));
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

  #measure<T>(accountId: number, steps: Steps<T>): Promise<T> {
    const untilMs = performance.now() + DEADLINE_MS;
    const budget = new ProcessorBudget(this.#workMs, () => {
      if (performance.now() > untilMs) throw new OutOfTime('the batch takes too long');
      return false;
    });
    return this.#turns.run(accountId, budget.spend(steps));
  }
}
