import { DeviceGone, pagesOf, stretchesIn } from '../history/pointPages.sql.ts';
import { OutOfTime } from '../lib/deadline.ts';
import { FairSemaphore } from '../lib/fairSemaphore.ts';
import { ProcessorBudget, TooMuchWork } from '../lib/processorBudget.ts';
import type { WorkTurns } from '../lib/workTurns.ts';
import type { Sql } from '../postgres/sql.ts';
import { explanationOf } from './explain.ts';
import type { ExplainRequest } from './explainRequest.ts';
import type { Explanation } from './explanation.ts';
import { PointReplay } from './pointReplay.ts';
import { readRecord, readRecorded } from './readRecord.ts';

/** A month at a point every 13 seconds. */
export const EXPLAIN_POINTS_MAX = 200_000;
/** What one may take, without the wait for earlier ones. */
export const EXPLAIN_LIMIT_MS = 20_000;
/** Processor time of one call. */
export const EXPLAIN_WORK_MS = 6_000;
/** One that waits for others of its account for longer is given up. */
const WAIT_LIMIT_MS = 15_000;
/** Those of one account wait for each other. Each holds some megabytes, most of them the steps of its points. */
const RUNNING = { running: 16, runningPerKey: 1, waiting: 1_000, waitingPerKey: 20 };

export interface ExplainPorts {
  readonly reads: (accountId: number) => Sql;
  /** By account. */
  readonly turns: WorkTurns<string | number>;
}

export type ExplainOutcome =
  | { readonly kind: 'explained'; readonly explanation: Explanation; readonly points: number }
  /** The area or the device has gone meanwhile. */
  | { readonly kind: 'area_gone' | 'device_gone' }
  | { readonly kind: 'too_many_points' | 'too_much_work' };

/** Explains what areas reported of devices, one at a time for each account, in work turns. Nothing is written. */
export class Explanations {
  readonly #ports: ExplainPorts;
  readonly #running = new FairSemaphore<number>(RUNNING);
  readonly #pointsMax: number;
  readonly #workMs: number;

  constructor(ports: ExplainPorts, pointsMax = EXPLAIN_POINTS_MAX, workMs = EXPLAIN_WORK_MS) {
    this.#ports = ports;
    this.#pointsMax = pointsMax;
    this.#workMs = workMs;
  }

  /** The most points of one window. */
  get pointsMax(): number {
    return this.#pointsMax;
  }

  /**
   * Explains one window. Counts as running until `close` is called, once, because the caller holds what may be many
   * points. Rejects with Overloaded, with OutOfTime, or when Postgres cannot be asked; then there is nothing to
   * close.
   */
  async open(request: ExplainRequest): Promise<ExplainOutcome & { close(): void }> {
    const { accountId } = request;
    await this.#running.acquireWithin(accountId, WAIT_LIMIT_MS);
    const close = () => this.#running.release(accountId);
    try {
      const untilMs = performance.now() + EXPLAIN_LIMIT_MS;
      return { ...(await this.#explain(request, untilMs)), close };
    } catch (error) {
      close();
      if (error instanceof DeviceGone) return { kind: 'device_gone', close: () => undefined };
      if (error instanceof TooMuchWork) return { kind: 'too_much_work', close: () => undefined };
      throw error;
    }
  }

  /** A connection is held only while something is read, never while points are evaluated. */
  async #explain(request: ExplainRequest, untilMs: number): Promise<ExplainOutcome> {
    const { turns } = this.#ports;
    const { accountId, areaId, fromMs, toMs, withSteps } = request;
    const sql = this.#ports.reads(accountId);
    const record = await sql.begin('isolation level repeatable read read only', (tx) =>
      readRecord(tx, request),
    );
    if (record === null) return { kind: 'area_gone' };
    const { situations, source, stay, startMs, createdAtMs, refused } = record;
    const replay = new PointReplay({ areaId, situations, fromMs, stay, refused, withSteps });
    const budget = new ProcessorBudget(this.#workMs, () => {
      if (performance.now() > untilMs) throw new OutOfTime('the explanation takes too long');
      return false;
    });
    const window = { fromMs: startMs, toMs };
    for await (const stretch of stretchesIn(window, (span) => readRecorded(sql, request, source, span))) {
      replay.expect(stretch.recorded);
      for (const page of pagesOf(stretch)) {
        const { marks } = page;
        if (marks !== null) await turns.run(accountId, budget.spend(replay.take({ ...page, marks })));
        if (replay.findings.points > this.#pointsMax) return { kind: 'too_many_points' };
      }
    }
    replay.end();
    const names = { ...request.names, areaCreatedAtMs: createdAtMs, toMs };
    const trimmed = request.trimmedToDays === null ? null : { fromMs, historyDays: request.trimmedToDays };
    const explanation = explanationOf(replay, situations, names, trimmed);
    return { kind: 'explained', explanation, points: replay.findings.points };
  }
}
