import type { PointRange } from '../history/packedPoints.sql.ts';
import { ARRIVAL, DeviceGone, ONE_RANGE, pagesOf, readInOrder, selectPoints } from '../history/points.sql.ts';
import { selectRefused } from '../ingest/points.sql.ts';
import { FairSemaphore } from '../lib/fairSemaphore.ts';
import { DAY_MS, OutOfTime } from '../lib/time.ts';
import { ProcessorBudget, TooMuchWork, type WorkTurns } from '../lib/workTurns.ts';
import type { Sql, Tx } from '../postgres/sql.ts';
import type { CrossingSource, RecordedCrossing } from './areaRecord.sql.ts';
import { selectCrossings, selectLastCrossing, selectPast } from './areaRecord.sql.ts';
import { type Explanation, explanationOf, type Names } from './explanation.ts';
import { PointReplay } from './pointReplay.ts';
import { selectLastPoints } from './surveyPoints.sql.ts';
import { type WatchPeriod, watchPeriodsOf } from './watchPeriods.ts';

/** A month at a point every 13 seconds. */
export const EXPLAIN_POINTS_MAX = 200_000;
/** What one may take, without the wait for earlier ones. */
const EXPLAIN_LIMIT_MS = 20_000;
/** Processor time of one call. */
export const EXPLAIN_WORK_MS = 6_000;
/** One that waits for others of its account for longer is given up. */
const WAIT_LIMIT_MS = 15_000;
/** Those of one account wait for each other. Each holds some megabytes, most of them the steps of its points. */
const RUNNING = { running: 16, runningPerKey: 1, waiting: 1_000, waitingPerKey: 20 };

/** What is to be explained, and to whom. */
export interface ExplainRequest {
  readonly accountId: number;
  /** Of the caller. */
  readonly worldIds: readonly number[];
  readonly areaId: number;
  readonly deviceId: number;
  readonly imei: string;
  readonly names: Omit<Names, 'areaCreatedAtMs' | 'toMs'>;
  /** Both included, cut to what the plan shows. */
  readonly fromMs: number;
  readonly toMs: number;
  /** The days that the plan shows, where it shows less than was asked for. */
  readonly trimmedToDays: number | null;
  readonly withSteps: boolean;
}

interface ExplainPorts {
  readonly reads: (accountId: number) => Sql;
  /** By account. */
  readonly turns: WorkTurns<string | number>;
}

interface Explained {
  readonly explanation: Explanation;
  readonly points: number;
}

/** Why nothing is explained. `area_gone`, `device_gone`: it was deleted after the request was checked. */
export type Unexplained = 'area_gone' | 'device_gone' | 'too_many_points' | 'too_much_work';

/** Explains what areas reported of devices, one at a time for each account, in work turns. Nothing is written. */
export class Explanations {
  readonly #ports: ExplainPorts;
  readonly #running = new FairSemaphore<number>(RUNNING);
  /** The most points of one window. */
  readonly pointsMax: number;
  readonly #workMs: number;

  constructor(ports: ExplainPorts, pointsMax = EXPLAIN_POINTS_MAX, workMs = EXPLAIN_WORK_MS) {
    this.#ports = ports;
    this.pointsMax = pointsMax;
    this.#workMs = workMs;
  }

  /**
   * Explains one window. Counts as running until `close` is called, once, because the caller holds what may be many
   * points. Rejects with Overloaded, with OutOfTime, or when Postgres cannot be asked.
   */
  async open(request: ExplainRequest): Promise<(Explained & { close(): void }) | Unexplained> {
    const { accountId } = request;
    await this.#running.acquireWithin(accountId, WAIT_LIMIT_MS);
    const close = () => this.#running.release(accountId);
    let isOpen = false;
    try {
      const outcome = await this.#explain(request);
      if (typeof outcome === 'string') return outcome;
      isOpen = true;
      return { ...outcome, close };
    } catch (error) {
      if (error instanceof DeviceGone) return 'device_gone';
      if (error instanceof TooMuchWork) return 'too_much_work';
      throw error;
    } finally {
      if (!isOpen) close();
    }
  }

  /** A connection is held only while something is read, never while points are evaluated. */
  async #explain(request: ExplainRequest): Promise<Explained | Unexplained> {
    const untilMs = performance.now() + EXPLAIN_LIMIT_MS;
    const { turns, reads } = this.#ports;
    const { accountId, areaId, deviceId, fromMs, toMs, withSteps, trimmedToDays } = request;
    const sql = reads(accountId);
    const record = await sql.begin(SNAPSHOT, (tx) => readRecord(tx, request));
    if (record === null) return 'area_gone';
    const { periods, source, stay, startMs, areaCreatedAtMs, refused } = record;
    const replay = new PointReplay({ areaId, periods, fromMs, stay, refused, withSteps });
    const budget = new ProcessorBudget(this.#workMs, () => {
      if (performance.now() > untilMs) throw new OutOfTime('the explanation takes too long');
      return false;
    });
    const ranges = startMs > toMs ? [] : [{ deviceId, fromMs: startMs, toMs }];
    for await (const read of readInOrder(ranges, (next) => readRecorded(sql, request, source, next))) {
      replay.expect(read.recorded);
      for (const stored of read.found) {
        for (const page of pagesOf(stored)) {
          await turns.run(accountId, budget.spend(replay.take(page)));
          if (replay.findings.points > this.pointsMax) return 'too_many_points';
        }
      }
    }
    replay.end();
    const names = { ...request.names, areaCreatedAtMs, toMs };
    const trimmed = trimmedToDays === null ? null : { fromMs, historyDays: trimmedToDays };
    return { explanation: explanationOf(replay, periods, names, trimmed), points: replay.findings.points };
  }
}

const SNAPSHOT = 'isolation level repeatable read read only';

/** What is known in advance about the points of a window; null when the area no longer exists. */
async function readRecord(tx: Tx, request: ExplainRequest) {
  const { areaId, deviceId, imei, fromMs } = request;
  const past = await selectPast(tx, areaId, deviceId);
  if (past === null) return null;
  const periods = watchPeriodsOf(past);
  const source: CrossingSource = { areaId, deviceId, imei, worldIds: past.worldIds };
  const last = await selectLastCrossing(tx, source, fromMs);
  return {
    periods,
    source,
    stay:
      last?.direction === 'entry'
        ? { areaId, insideSinceMs: last.enteredAtMs, confirmedAtMs: last.occurredAtMs }
        : null,
    startMs: await startOf(tx, request, periods, last),
    areaCreatedAtMs: past.createdAtMs,
    refused: await selectRefused(tx, deviceId),
  };
}

/** The first points of a range and their events, of one snapshot: a point is never there without its event. */
function readRecorded(
  sql: Sql,
  { worldIds, fromMs }: ExplainRequest,
  source: CrossingSource,
  ranges: readonly PointRange[],
) {
  return sql.begin(SNAPSHOT, async (tx) => {
    const read = await selectPoints(tx, worldIds, ranges, ARRIVAL, ONE_RANGE);
    const inWindow = { fromMs: Math.max((ranges[0] as PointRange).fromMs, fromMs), toMs: read.until.ms };
    const crossings = await selectCrossings(tx, source, inWindow);
    const recorded = crossings.map((each) => ({ ...each, isReadable: worldIds.includes(each.worldId) }));
    return { ...read, recorded };
  });
}

/** Where memberships changed, this much more is read before the window. */
const CHANGED_LOOK_BACK_MS = 31 * DAY_MS;
const NEVER_MS = 0;

/**
 * From when on points are read. Whether an entry was made before the window is known from the events. Whether a stay
 * was pending, the points say: it began less than the longest minimum stay before the last evaluated point. Where the
 * area did not always watch the device, a stay may have ended without an exit, so all points since the last event are
 * read, up to a month.
 */
async function startOf(
  tx: Tx,
  { deviceId, fromMs }: ExplainRequest,
  periods: readonly WatchPeriod[],
  last: RecordedCrossing | undefined,
): Promise<number> {
  const afterLastMs = last === undefined ? Number.NEGATIVE_INFINITY : last.occurredAtMs + 1;
  const isChanged = periods.some(
    ({ state, sinceMs }) => state === 'not_watched' && sinceMs > afterLastMs - DAY_MS,
  );
  if (isChanged && last?.direction === 'entry') return Math.max(afterLastMs, fromMs - CHANGED_LOOK_BACK_MS);
  const dwellMs = 1_000 * Math.max(...periods.map(({ dwellSeconds }) => dwellSeconds));
  // The first visit shows its last point before the window.
  if (dwellMs === 0 && last?.direction !== 'entry') return fromMs;
  const [newest] = await selectLastPoints(tx, [{ deviceId, fromMs: NEVER_MS, toMs: fromMs - 1 }]);
  return newest === undefined
    ? fromMs
    : Math.min(fromMs, Math.max(newest.recordedAtMs - dwellMs, afterLastMs));
}
