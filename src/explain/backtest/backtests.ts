import { isUnseen, type Worlds } from '../../access/credentials.ts';
import type { Shape } from '../../areas/shape.ts';
import type { DeviceFields } from '../../devices/device.ts';
import type { Fleet } from '../../devices/fleet.memory.ts';
import type { PointRange } from '../../history/packedPoints.sql.ts';
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
import {
  Abandoned,
  Pace,
  ProcessorBudget,
  type Steps,
  TooMuchWork,
  type WorkTurns,
} from '../../lib/workTurns.ts';
import type { Sql, Tx } from '../../postgres/sql.ts';
import { selectHasPastForms, selectRecorded } from '../areaRecord.sql.ts';
import {
  countPacked,
  countRows,
  type LastPoint,
  selectLastPoints,
  selectStarts,
} from '../surveyPoints.sql.ts';
import { AreaReplay, type DwellTally, type RecordedEvents } from './areaReplay.ts';

/** Backtests of one account at a time on one pod; a further one is rejected. */
export const BACKTESTS_PER_ACCOUNT = 2;
/** What one backtest may take, waiting included. */
export const BACKTEST_LIMIT_MS = 55_000;
/** Of all accounts: each holds a megabyte. */
const RUNNING = { running: 32, runningPerKey: 2, waiting: 1_000, waitingPerKey: BACKTESTS_PER_ACCOUNT };

/** How much is read. */
export interface BacktestSizes {
  /** Points of one backtest. */
  readonly points: number;
  /** Points that one statement counts. */
  readonly counted: number;
  /** Processor time of one backtest in milliseconds. */
  readonly workMs: number;
}

/** Half a million are counted in some tenths of a second. */
export const BACKTEST_SIZES: BacktestSizes = { points: 5_000_000, counted: 500_000, workMs: 20_000 };
/** Devices of one statement. */
const BATCH_DEVICES = 200;

interface BacktestPorts {
  readonly reads: (accountId: number) => Sql;
  readonly fleet: Fleet;
  readonly turns: WorkTurns<number | string>;
}

export interface BacktestRequest {
  readonly accountId: number;
  readonly worldIds: Worlds;
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
  /** The area was once watched in another form than that of the replay; never true of a draft. */
  readonly hasPastForms: boolean;
  /** Points in the window, without those that came late. */
  readonly points: number;
  /** Devices that have points. */
  readonly devices: number;
}

/**
 * `busy`: the account has as many running as it may. `left`: the caller has hung up. `too_many`: there are `points` in the
 * first `devices` alone. `too_much_work`: they take more processor time than one backtest may have.
 */
export type BacktestOutcome =
  | BacktestResult
  | { readonly kind: 'busy' | 'left' | 'too_much_work' }
  | { readonly kind: 'too_many'; readonly points: number; readonly devices: number };

/** A device and the time of its points that are replayed. */
interface DeviceRange extends PointRange {
  readonly imei: string;
}

/** No device was begun. */
const NONE = -1;

/**
 * Replays stored points against an area, by the step that decides on new points. Points are read a page at a time on the
 * account's share of the connections, and evaluated in work turns. Nothing is written.
 */
export class Backtests {
  readonly #ports: BacktestPorts;
  readonly sizes: BacktestSizes;
  readonly #slots = new FairSemaphore<number>(RUNNING);

  constructor(ports: BacktestPorts, sizes = BACKTEST_SIZES) {
    this.#ports = ports;
    this.sizes = sizes;
  }

  /** Rejects with Overloaded, with OutOfTime, or when Postgres cannot be asked. */
  async run(request: BacktestRequest): Promise<BacktestOutcome> {
    const { accountId } = request;
    if (this.#slots.countOf(accountId) >= BACKTESTS_PER_ACCOUNT) return { kind: 'busy' };
    const untilMs = performance.now() + BACKTEST_LIMIT_MS;
    const isOver = () => {
      if (performance.now() > untilMs) throw new OutOfTime('the backtest takes too long');
      return request.hasLeft();
    };
    try {
      return await this.#slots.run(accountId, () => this.#run(request, isOver));
    } catch (error) {
      if (error instanceof Abandoned) return { kind: 'left' };
      if (error instanceof TooMuchWork) return { kind: 'too_much_work' };
      throw error;
    }
  }

  async #run(request: BacktestRequest, isOver: () => boolean): Promise<BacktestOutcome> {
    const { fleet, turns, reads } = this.#ports;
    const { accountId, shape, dwellSeconds, fromMs, toMs, areaId } = request;
    const sql = reads(accountId);
    const budget = new ProcessorBudget(this.sizes.workMs, isOver);

    const ranges: DeviceRange[] = [];
    let points = 0;
    let devices = 0;
    for (const batch of deviceBatches(fleet, request)) {
      if (isOver()) return { kind: 'left' };
      const inside = (last: readonly LastPoint[]) =>
        turns.run(accountId, budget.spend(insideOf(last, shape)));
      const started = await startsOf(sql, request, batch, inside);
      const most = this.sizes.points - points;
      const counts = await countAll(sql, started, toMs, most, this.sizes.counted, isOver);
      devices += batch.length;
      points += counts.reduce((sum, count) => sum + count, 0);
      ranges.push(...started.filter((_, n) => (counts[n] as number) > 0));
      if (points > this.sizes.points) return { kind: 'too_many', points, devices };
    }

    const replay = new AreaReplay(shape, dwellSeconds, fromMs);
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
      hasPastForms: areaId !== null && (await selectHasPastForms(sql, areaId)),
      points: replay.points,
      devices: ranges.length,
    };
  }
}

/** Each batch is looked up when it is asked for: devices may come and go between two. */
function* deviceBatches(
  fleet: Fleet,
  { worldIds, imeis }: BacktestRequest,
): Generator<DeviceFields[], void, undefined> {
  if (imeis !== null) {
    for (let at = 0; at < imeis.length; at += BATCH_DEVICES) {
      const found = imeis.slice(at, at + BATCH_DEVICES).map((imei) => fleet.device(worldIds, imei));
      yield found.flatMap((device) => (device === undefined ? [] : [device.fields]));
    }
    return;
  }
  for (let after = ''; ; ) {
    const listed = fleet.listed(worldIds, after, BATCH_DEVICES).map(({ device }) => device.fields);
    const last = listed.at(-1);
    if (last === undefined) return;
    after = last.imei;
    yield listed.filter(({ groups }) => !isUnseen(worldIds, groups));
  }
}

/**
 * From when each device is to be replayed. One that was outside at its last point before the window is replayed from the
 * window on. One that was inside may have been there for long: it is replayed from a point that is the longest minimum
 * stay older than that last one. If it was inside ever since, each of the minimum stays had passed before the window; if
 * not, the replay sees when it came in.
 */
async function startsOf(
  sql: Sql,
  { fromMs, toMs, oldestMs, dwellSeconds }: BacktestRequest,
  batch: readonly DeviceFields[],
  insideOnly: (points: readonly LastPoint[]) => Promise<LastPoint[]>,
): Promise<DeviceRange[]> {
  const before = batch.map(({ id }) => ({ deviceId: id, fromMs: oldestMs, toMs: fromMs - 1 }));
  const inside = await insideOnly(await selectLastPoints(sql, before));
  const starts = await selectStarts(sql, inside, Math.max(...dwellSeconds) * 1_000, oldestMs);
  return batch.map(({ id, imei }) => ({ deviceId: id, imei, fromMs: starts.get(id) ?? fromMs, toMs }));
}

function* insideOf(points: readonly LastPoint[], shape: Pick<Shape, 'contains'>): Steps<LastPoint[]> {
  const pace = new Pace();
  const inside: LastPoint[] = [];
  for (const point of points) {
    if (shape.contains(point.lat, point.lng)) inside.push(point);
    if (pace.isDue()) yield* pace.pause();
  }
  return inside;
}

/** How many points each range has. Stops counting when they are more than `max` together; counts `atOnce` in a statement. */
async function countAll(
  sql: Sql,
  ranges: readonly DeviceRange[],
  toMs: number,
  max: number,
  atOnce: number,
  isOver: () => boolean,
): Promise<number[]> {
  const counts = ranges.map(() => 0);
  let first = 0;
  let left: readonly PointRange[] = ranges;
  for (let total = 0; left.length > 0 && total <= max && !isOver(); ) {
    const counted = await countRows(sql, left, toMs, atOnce);
    let found = 0;
    for (const { n, count } of counted) {
      counts[first + n]! += count;
      found += count;
    }
    total += found;
    const last = counted.at(-1);
    if (last === undefined || found < atOnce) break;
    first += last.n;
    left = left.slice(last.n).map((range, n) => (n === 0 ? { ...range, fromMs: last.lastMs + 1 } : range));
  }
  // Rows first: one that is packed in between is counted twice, never not at all.
  const packed = await countPacked(sql, ranges, toMs);
  return counts.map((count, n) => count + (packed[n] ?? 0));
}

/** Points, and the events that they produced, by range; none without an area to compare with. */
interface RecordedPoints extends PointsRead {
  readonly recorded: readonly RecordedEvents[];
}

/** Points and recorded events are of one snapshot: a point is never there without its event. */
async function readRecorded(
  sql: Sql,
  { worldIds, areaId, fromMs }: BacktestRequest,
  ranges: readonly DeviceRange[],
): Promise<RecordedPoints> {
  const select = (tx: Tx) => selectPoints(tx, worldIds, ranges, LATENESS, MANY_RANGES);
  if (areaId === null) return { ...(await select(sql)), recorded: [] };
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
