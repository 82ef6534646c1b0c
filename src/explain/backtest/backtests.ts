import type { Shape } from '../../areas/area.ts';
import type { Fleet } from '../../devices/fleet.memory.ts';
import {
  LATENESS,
  MANY_RANGES,
  mergedPoints,
  type PointsRead,
  readInOrder,
  selectPoints,
} from '../../history/points.sql.ts';
import { FairSemaphore } from '../../lib/fairSemaphore.ts';
import { OutOfTime } from '../../lib/time.ts';
import { Abandoned, ProcessorBudget, type Steps, TooMuchWork, type WorkTurns } from '../../lib/workTurns.ts';
import type { Sql, Tx } from '../../postgres/sql.ts';
import { selectRecorded } from '../areaRecord.sql.ts';
import { AreaReplay, type DwellTally, type RecordedEvents } from './areaReplay.ts';
import { BACKTEST_SIZES, type BacktestSizes, type DeviceRange, surveyDevices } from './surveyDevices.ts';

/** Backtests of one account at a time on one pod; a further one is rejected. */
export const BACKTESTS_PER_ACCOUNT = 2;
/** What one backtest may take, waiting included. */
export const BACKTEST_LIMIT_MS = 55_000;
/** Of all accounts: each holds a megabyte. */
const RUNNING = {
  running: 32,
  runningPerKey: BACKTESTS_PER_ACCOUNT,
  waiting: 1_000,
  waitingPerKey: BACKTESTS_PER_ACCOUNT,
};

export interface BacktestPorts {
  readonly reads: (accountId: number) => Sql;
  readonly fleet: Fleet;
  readonly turns: WorkTurns<number | string>;
}

export interface BacktestRequest {
  readonly accountId: number;
  readonly worldIds: readonly number[];
  readonly shape: Pick<Shape, 'contains' | 'boxes'>;
  /** Of an area that exists: its recorded events are compared with those of the replay. */
  readonly areaId: number | null;
  /** The engine evaluated no point before this. */
  readonly oldestMs: number;
  /** Null: every device of these worlds. Each once. */
  readonly imeis: readonly string[] | null;
  /** Both included. */
  readonly fromMs: number;
  readonly toMs: number;
  /** Each value once. */
  readonly dwellSeconds: readonly number[];
  /** True once nobody waits for the outcome any more. */
  readonly hasLeft: () => boolean;
}

export interface BacktestResult {
  readonly kind: 'done';
  /** In the order of `dwellSeconds`. */
  readonly tallies: readonly DwellTally[];
  /** Recorded events of the devices in the window; null for a draft. */
  readonly recorded: number | null;
  /** Of some points it is not recorded whether they came late; they count. */
  readonly hasUnmarked: boolean;
  /** Points in the window, without those that came late. */
  readonly points: number;
  /** Devices that have points. */
  readonly devices: number;
}

export type BacktestOutcome =
  | BacktestResult
  /** The account has as many running as it may. */
  | { readonly kind: 'busy' }
  /** The caller has hung up. */
  | { readonly kind: 'left' }
  /** More points than are read: `points` in the first `devices` alone. */
  | { readonly kind: 'too_many'; readonly points: number; readonly devices: number }
  /** Its points and its area take more processor time than one may have. */
  | { readonly kind: 'too_much_work' };

/**
 * Replays stored points against an area, by the step that decides on new points. Points are read a page at a time on the
 * account's share of the connections, and evaluated in work turns. Nothing is written.
 */
export class Backtests {
  readonly #ports: BacktestPorts;
  readonly sizes: BacktestSizes;
  readonly #slots = new FairSemaphore<number>(RUNNING);
  /** Running or waiting, by account. */
  readonly #open = new Map<number, number>();

  constructor(ports: BacktestPorts, sizes = BACKTEST_SIZES) {
    this.#ports = ports;
    this.sizes = sizes;
  }

  /** Rejects with Overloaded, with OutOfTime, or when Postgres cannot be asked. */
  async run(request: BacktestRequest): Promise<BacktestOutcome> {
    const { accountId } = request;
    const open = this.#open.get(accountId) ?? 0;
    if (open >= BACKTESTS_PER_ACCOUNT) return { kind: 'busy' };
    this.#open.set(accountId, open + 1);
    const untilMs = performance.now() + BACKTEST_LIMIT_MS;
    try {
      return await this.#slots.run(accountId, () => this.#run(request, untilMs));
    } catch (error) {
      if (error instanceof Abandoned) return LEFT;
      if (error instanceof TooMuchWork) return { kind: 'too_much_work' };
      throw error;
    } finally {
      const left = (this.#open.get(accountId) ?? 1) - 1;
      if (left === 0) this.#open.delete(accountId);
      else this.#open.set(accountId, left);
    }
  }

  async #run(request: BacktestRequest, untilMs: number): Promise<BacktestOutcome> {
    const { fleet, turns, reads } = this.#ports;
    const { accountId, shape, dwellSeconds, fromMs, areaId, hasLeft } = request;
    const sql = reads(accountId);
    const isOver = () => {
      if (performance.now() > untilMs) throw new OutOfTime('the backtest takes too long');
      return hasLeft();
    };
    const budget = new ProcessorBudget(this.sizes.workMs, isOver);
    const replay = new AreaReplay(shape, dwellSeconds, fromMs);
    const lookBackMs = Math.max(...dwellSeconds) * 1_000;
    const survey = await surveyDevices(
      { sql, fleet, turns, budget, isOver, sizes: this.sizes },
      { ...request, lookBackMs },
    );
    if (survey === null) return LEFT;
    const { ranges, points, devices } = survey;
    if (points > this.sizes.points) return { kind: 'too_many', points, devices };
    let recorded = 0;
    let open = NONE;
    for await (const read of readInOrder(ranges, (next) => readRecorded(sql, request, next))) {
      open = await turns.run(accountId, budget.spend(replayRead(replay, ranges, read, open)));
      for (const events of read.recorded) recorded += events.size;
    }
    if (open !== NONE) replay.end();
    return {
      kind: 'done',
      tallies: replay.tallies,
      recorded: areaId === null ? null : recorded,
      hasUnmarked: replay.hasUnmarked,
      points: replay.points,
      devices: ranges.length,
    };
  }
}

/** No device was begun. */
const NONE = -1;

/** Points, and the events that they produced, by range; none without an area to compare with. */
interface RecordedPoints extends PointsRead {
  readonly recorded: readonly RecordedEvents[];
}

/** Points and recorded events are of one snapshot: a point is never there without its event. */
function readRecorded(
  sql: Sql,
  { worldIds, areaId, fromMs }: BacktestRequest,
  ranges: readonly DeviceRange[],
): Promise<RecordedPoints> {
  const select = (tx: Tx) => selectPoints(tx, worldIds, ranges, LATENESS, MANY_RANGES);
  if (areaId === null) return select(sql).then((read) => ({ ...read, recorded: [] }));
  return sql.begin('isolation level repeatable read read only', async (tx) => {
    const read = await select(tx);
    const { n: last, ms } = read.until;
    const spans = ranges.slice(0, last + 1).map((range, n) => ({
      imei: range.imei,
      fromMs: Math.max(range.fromMs, fromMs),
      toMs: n === last ? Math.min(range.toMs, ms) : range.toMs,
    }));
    return { ...read, recorded: await selectRecorded(tx, worldIds, areaId, spans) };
  });
}

/** Replays what was read. `open`: the range that was begun last. Returns the range of the last point. */
function* replayRead(
  replay: AreaReplay,
  ranges: readonly DeviceRange[],
  { found, recorded }: RecordedPoints,
  open: number,
): Steps<number> {
  let begun = open;
  for (const [at, stored] of found.entries()) {
    if (stored === null) continue;
    for (const points of mergedPoints(stored)) {
      if (stored.n !== begun) {
        if (begun !== NONE) replay.end();
        begun = stored.n;
        replay.begin(ranges[begun]?.imei ?? '');
      }
      yield* replay.take(points, recorded[at] ?? NOTHING);
      yield;
    }
  }
  return begun;
}

const NOTHING: RecordedEvents = new Set();

const LEFT: BacktestOutcome = { kind: 'left' };
