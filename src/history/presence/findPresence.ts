import { OutOfTime } from '../../lib/deadline.ts';
import { FairSemaphore } from '../../lib/fairSemaphore.ts';
import { Abandoned, ProcessorBudget, TooMuchWork } from '../../lib/workTurns.ts';
import type { TimeWindow } from '../pointPages.sql.ts';
import type { HistoryReader } from '../summary/summarizeHistory.ts';
import type { Place } from './presence.ts';
import { type PresenceOutcome, type PresencePorts, PresenceSearch } from './presenceSearch.ts';

/** Includes the wait for earlier ones of the same account. */
export const PRESENCE_LIMIT_MS = 25_000;
/** Processor time of one call: a hundred times what the figures of the largest fleets need. */
export const PRESENCE_WORK_MS = 8_000;
/** Those of one account wait for each other. */
const RUNNING = { running: 64, runningPerKey: 2, waiting: 2_000, waitingPerKey: 50 };

/** Finds which devices were at a place in a time. Everything runs in pieces, a few calls of each account at a time. */
export class Presences {
  readonly #ports: PresencePorts;
  readonly #running = new FairSemaphore<number>(RUNNING);
  readonly #workMs: number;

  constructor(ports: PresencePorts, workMs = PRESENCE_WORK_MS) {
    this.#ports = ports;
    this.#workMs = workMs;
  }

  /** The earliest `limit` devices. Rejects with Overloaded, OutOfTime or DamagedPoints. */
  async find(
    reader: HistoryReader,
    place: Place,
    window: TimeWindow,
    limit: number,
    hasLeft: () => boolean,
  ): Promise<PresenceOutcome> {
    const untilMs = performance.now() + PRESENCE_LIMIT_MS;
    const isOver = () => {
      if (performance.now() > untilMs) throw new OutOfTime('the presence takes too long');
      return hasLeft();
    };
    const budget = new ProcessorBudget(this.#workMs, isOver);
    const search = new PresenceSearch(this.#ports, reader, place, window, limit, budget, isOver);
    try {
      return await this.#running.run(reader.accountId, () => search.run());
    } catch (error) {
      if (error instanceof Abandoned) return 'left';
      if (error instanceof TooMuchWork) return 'too_much_work';
      throw error;
    }
  }
}
