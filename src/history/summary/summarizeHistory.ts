import { OutOfTime } from '../../lib/deadline.ts';
import { FairSemaphore } from '../../lib/fairSemaphore.ts';
import type { WorkTurns } from '../../lib/workTurns.ts';
import type { Sql } from '../../postgres/sql.ts';
import type { TimeWindow } from '../packedPoints.sql.ts';
import { DeviceGone, MOTION, pointPages } from '../points.sql.ts';
import type { Period } from './calendarLedger.ts';
import { Summary, type SummaryRequest } from './summary.ts';

/** Two months of a point every second, or a year and a half of one every ten seconds. */
export const SUMMARY_POINTS_MAX = 5_000_000;
/** Twenty trips a day for a year: an answer of some megabytes. */
export const SUMMARY_TRIPS_MAX = 8_000;
/** Includes the wait for earlier ones of the same account. */
export const SUMMARY_LIMIT_MS = 25_000;
/** Those of one account wait for each other. */
const RUNNING = { running: 64, runningPerKey: 2, waiting: 2_000, waitingPerKey: 50 };

export interface SummaryPorts {
  readonly reads: (accountId: number) => Sql;
  /** By account. */
  readonly turns: WorkTurns<string | number>;
}

export interface HistoryReader {
  readonly accountId: number;
  readonly worldIds: readonly number[];
}

export type SummaryError = 'gone' | 'too_many_points' | 'too_many_trips';

/** Summarizes the histories of all accounts: a few of each account at a time, in work turns, page by page. */
export class HistorySummaries {
  readonly #ports: SummaryPorts;
  readonly #running = new FairSemaphore<number>(RUNNING);

  constructor(ports: SummaryPorts) {
    this.#ports = ports;
  }

  /** The periods of a device in a window of its history. Rejects with Overloaded or OutOfTime. */
  summarize(
    reader: HistoryReader,
    deviceId: number,
    request: SummaryRequest,
    window: TimeWindow,
  ): Promise<readonly Period[] | SummaryError> {
    const untilMs = performance.now() + SUMMARY_LIMIT_MS;
    return this.#running.run(reader.accountId, () =>
      this.#summarize(reader, deviceId, request, window, untilMs),
    );
  }

  async #summarize(
    { accountId, worldIds }: HistoryReader,
    deviceId: number,
    request: SummaryRequest,
    window: TimeWindow,
    untilMs: number,
  ): Promise<readonly Period[] | SummaryError> {
    const { reads, turns } = this.#ports;
    const summary = new Summary(request);
    try {
      for await (const page of pointPages(reads(accountId), worldIds, deviceId, window, MOTION)) {
        await turns.run(accountId, summary.take(page));
        if (summary.points > SUMMARY_POINTS_MAX) return 'too_many_points';
        if (request.by === 'trip' && summary.periods > SUMMARY_TRIPS_MAX) return 'too_many_trips';
        if (performance.now() > untilMs) throw new OutOfTime('the summary takes too long');
      }
    } catch (error) {
      if (error instanceof DeviceGone) return 'gone';
      throw error;
    }
    return summary.finish();
  }
}
