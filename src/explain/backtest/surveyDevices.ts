import type { Shape } from '../../areas/area.ts';
import type { DeviceFields } from '../../devices/device.ts';
import type { Fleet } from '../../devices/fleet.memory.ts';
import type { PointRange } from '../../history/packedPoints.sql.ts';
import { Pace, type ProcessorBudget, type Steps, type WorkTurns } from '../../lib/workTurns.ts';
import type { Sql } from '../../postgres/sql.ts';
import {
  countPacked,
  countRows,
  type LastPoint,
  selectLastPoints,
  selectStarts,
} from '../surveyPoints.sql.ts';

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

/** A device and the time of its points that are replayed. */
export interface DeviceRange extends PointRange {
  readonly imei: string;
}

export interface SurveyPorts {
  readonly sql: Sql;
  readonly fleet: Fleet;
  readonly turns: WorkTurns<number | string>;
  readonly budget: ProcessorBudget;
  readonly sizes: BacktestSizes;
  /** Throws or returns true when the work is to end. */
  readonly isOver: () => boolean;
}

export interface SurveyRequest {
  readonly accountId: number;
  readonly worldIds: readonly number[];
  /** Null: every device of these worlds. */
  readonly imeis: readonly string[] | null;
  readonly shape: Pick<Shape, 'contains'>;
  readonly fromMs: number;
  readonly toMs: number;
  /** No point before this one matters. */
  readonly oldestMs: number;
  /** The longest minimum stay. */
  readonly lookBackMs: number;
}

/** What there is to be replayed. */
export interface Survey {
  /** In the order of their IMEIs, or in the order asked for; without devices that have no points. */
  readonly ranges: readonly DeviceRange[];
  readonly points: number;
  /** How many devices were counted: all of them, unless there are too many points. */
  readonly devices: number;
}

/**
 * Which devices have points in the window, and from when each is to be replayed. One that was outside at its last point
 * before the window is replayed from the window on. One that was inside may have been there for long: it is replayed
 * from a point that is the longest minimum stay older than that last one. If it was inside ever since, each of the
 * minimum stays had passed before the window; if not, the replay sees when it came in. Stops when there are more than
 * `sizes.points`. Null: the work was ended.
 */
export async function surveyDevices(ports: SurveyPorts, request: SurveyRequest): Promise<Survey | null> {
  const ranges: DeviceRange[] = [];
  let points = 0;
  let devices = 0;
  for (const batch of deviceBatches(ports.fleet, request)) {
    if (ports.isOver()) return null;
    const started = await startsOf(ports, request, batch);
    const counts = await countAll(ports, started, request.toMs, ports.sizes.points - points);
    devices += batch.length;
    for (const [n, range] of started.entries()) {
      const count = counts[n] ?? 0;
      points += count;
      if (count > 0) ranges.push(range);
    }
    if (points > ports.sizes.points) break;
  }
  return { ranges, points, devices };
}

async function startsOf(
  { sql, turns, budget }: SurveyPorts,
  { accountId, shape, fromMs, toMs, oldestMs, lookBackMs }: SurveyRequest,
  batch: readonly DeviceFields[],
): Promise<DeviceRange[]> {
  const before = batch.map(({ id }) => ({ deviceId: id, fromMs: oldestMs, toMs: fromMs - 1 }));
  const last = await selectLastPoints(sql, before);
  const inside = await turns.run(accountId, budget.spend(insideOf(last, shape)));
  const starts = await selectStarts(sql, inside, lookBackMs, oldestMs);
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

/** How many points each range has. Stops counting when they are more than `max` together. */
async function countAll(
  { sql, sizes, isOver }: SurveyPorts,
  ranges: readonly DeviceRange[],
  toMs: number,
  max: number,
): Promise<number[]> {
  const counts = ranges.map(() => 0);
  let first = 0;
  let left: readonly PointRange[] = ranges;
  for (let total = 0; left.length > 0 && total <= max && !isOver(); ) {
    const counted = await countRows(sql, left, toMs, sizes.counted);
    for (const { n, count } of counted) counts[first + n] = (counts[first + n] ?? 0) + count;
    const found = counted.reduce((sum, { count }) => sum + count, 0);
    total += found;
    const last = counted.at(-1);
    if (last === undefined || found < sizes.counted) break;
    first += last.n;
    left = left.slice(last.n).map((range, n) => (n === 0 ? { ...range, fromMs: last.lastMs + 1 } : range));
  }
  // Rows first: one that is packed in between is counted twice, never not at all.
  const packed = await countPacked(sql, ranges, toMs);
  return counts.map((count, n) => count + (packed[n] ?? 0));
}

/** Each batch is looked up when it is asked for: devices may come and go between two. */
function* deviceBatches(
  fleet: Fleet,
  { worldIds, imeis }: SurveyRequest,
): Generator<DeviceFields[], void, undefined> {
  if (imeis !== null) {
    for (let at = 0; at < imeis.length; at += BATCH_DEVICES) {
      const found = imeis.slice(at, at + BATCH_DEVICES).map((imei) => fleet.device(worldIds, imei));
      yield found.flatMap((device) => (device === undefined ? [] : [device.fields]));
    }
    return;
  }
  for (let after = ''; ; ) {
    const listed = fleet.listed(worldIds, after, BATCH_DEVICES);
    const lastListed = listed.at(-1);
    if (lastListed === undefined) return;
    after = lastListed.device.fields.imei;
    yield listed.map(({ device }) => device.fields);
  }
}
