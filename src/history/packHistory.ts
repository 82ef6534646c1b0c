import { randomUUID } from 'node:crypto';
import { selectNowMs } from '../changelog/database.sql.ts';
import { type Damage, DamagedPoints } from '../lib/errors.ts';
import { DAY_MS, HOUR_MS, weekStartMs } from '../lib/time.ts';
import type { WorkTurns } from '../lib/workTurns.ts';
import {
  ensureWeeks,
  PACKED_POINTS,
  POSITIONS,
  selectEmptiedWeeks,
  truncateWeek,
} from '../postgres/partitions.ts';
import type { Sql } from '../postgres/sql.ts';
import { PACKED_POINTS_MAX, type PackedBlob, packColumns } from './codec/packedBlob.ts';
import {
  emptyColumns,
  mergeColumns,
  type PointColumns,
  sliceColumns,
  writeColumns,
} from './codec/pointColumns.ts';
import { type PackedRow, type PackedSpan, type TimeWindow, unpackRow } from './packedPoints.sql.ts';
import {
  endPackingPass,
  FOLLOWED_MS,
  keepPackingLease,
  replaceRows,
  selectFollowedWorlds,
  selectNextRowMs,
  selectPackedRow,
  selectPackedSpans,
  selectRows,
  selectUnpackedDays,
  selectUnpackedDevices,
  selectWorldsOfDevices,
  takePackingLease,
  type WorldPlace,
} from './packing.sql.ts';
import { PackingRests } from './packingRests.ts';
import { MOTION } from './points.sql.ts';
import { countDriven } from './tracks/countDriven.ts';
import { newlyDriven } from './tracks/drawnTrack.ts';
import { COUNTED_AT_A_TIME, type DrivenCells, insertDriven, weekOf } from './tracks/tracks.sql.ts';

/** Points stay rows for so long, and until their day (UTC) is over: most late ones have come by then. */
const HOT_MS = 48 * HOUR_MS;
/** How long one round may take. The rest waits for the next round. */
const ROUND_MS = 45_000;
/** How long the devices of one world are packed before those of another have their turn. */
const WORLD_TURN_MS = 1_000;
/** Between two passes over all devices: a day is closed once a day, and late points may wait. */
const PASS_PAUSE_SECONDS = 3_600;
const DEVICES_AT_A_TIME = 200;
/** Packed rows of a day that are read to find where the device has driven already: 80 000 points. */
const DAY_SPANS_MAX = 8;

export interface PackPorts {
  readonly sql: Sql;
  readonly turns: Pick<WorkTurns<string>, 'run'>;
  readonly rest: (ms: number) => Promise<unknown>;
  /** How long few late points to a packed day wait for more. */
  readonly lateWaitMs: number;
  readonly onPacked: (points: number) => void;
  readonly onDamaged: (damage: Damage) => void;
  /** Takes how many closed days of an average device are not packed. */
  readonly onUnpackedDays: (days: number) => void;
}

/**
 * Packs the points of closed days, device by device; worlds take turns. Every step is a transaction of its own, so a pass
 * that was cut off continues from there. One pod packs at a time, and none while a pod is connected that could not read what
 * is packed.
 */
export class HistoryPacker {
  readonly #ports: PackPorts;
  readonly #rests: PackingRests;
  readonly #holder = randomUUID();
  /** The worlds of the pass that is under way, the next one first. */
  #worlds: WorldPlace[] | null = null;
  /** Weeks that had no row at the end of the pass before. */
  #emptied: ReadonlySet<number> = new Set();

  constructor(ports: PackPorts) {
    this.#ports = ports;
    this.#rests = new PackingRests(ports.rest);
  }

  /**
   * Works for less than a minute. The pass over all devices continues, has ended, or must not be done now. `isUrgent`: also
   * when the next pass is not due, or another pod is packing, which then leaves it to this one.
   */
  async round(isStopping: () => boolean, isUrgent = false): Promise<'more' | 'done' | 'elsewhere'> {
    const { sql, onUnpackedDays } = this.#ports;
    const untilMs = performance.now() + ROUND_MS;
    const isOver = (): boolean => isStopping() || performance.now() > untilMs;
    const nowMs = await selectNowMs(sql);
    const beforeMs = closedBeforeMs(nowMs);
    const heldMs = nowMs - FOLLOWED_MS;
    const followed = await selectFollowedWorlds(sql);
    const unpackedDays = await selectUnpackedDays(sql, beforeMs, followed.size === 0 ? null : heldMs);
    onUnpackedDays(unpackedDays);
    if (!(await takePackingLease(sql, this.#holder, isUrgent))) {
      this.#worlds = null;
      return 'elsewhere';
    }
    this.#rests.begin(unpackedDays);
    const weeks = new Set<number>();
    this.#worlds ??= (await selectWorldsOfDevices(sql)).map((worldId) => ({
      worldId,
      afterImei: '',
      fromMs: 0,
    }));
    const worlds = this.#worlds;
    while (!isOver()) {
      const world = worlds.shift();
      if (world === undefined) {
        this.#worlds = null;
        await endPackingPass(sql, this.#holder, PASS_PAUSE_SECONDS);
        await this.#giveBackSpace(beforeMs);
        return 'done';
      }
      const receivedBeforeMs = followed.has(world.worldId) ? heldMs : null;
      const times = { nowMs, beforeMs, receivedBeforeMs, weeks };
      const place = await this.#packWorld(world, times, isOver);
      if (place !== null) worlds.push(place);
      if (!(await keepPackingLease(sql, this.#holder))) {
        this.#worlds = null;
        return 'elsewhere';
      }
    }
    return 'more';
  }

  /**
   * Packs devices of a world until its turn is over, and counts where they have driven. Returns how far it has come; null: to
   * the end.
   */
  async #packWorld(world: WorldPlace, times: Times, isOver: () => boolean): Promise<WorldPlace | null> {
    const untilMs = performance.now() + WORLD_TURN_MS;
    const isTurnOver = (): boolean => isOver() || performance.now() > untilMs;
    const count = (least: number): Promise<boolean> =>
      countDriven({ ...this.#ports, rest: this.#rests.take }, world.worldId, isTurnOver, least);
    // What waits is counted first, so it does not grow without end where counting takes longer than packing.
    if (!(await count(COUNTED_AT_A_TIME.rows))) return world;
    const reached = await this.#packDevices(world, times, isTurnOver);
    if (reached !== null || (await count(1))) return reached;
    return { ...world, afterImei: AFTER_ALL };
  }

  async #packDevices(world: WorldPlace, times: Times, isTurnOver: () => boolean): Promise<WorldPlace | null> {
    for (let place = world; ; ) {
      const devices = await selectUnpackedDevices(this.#ports.sql, place, times.beforeMs, DEVICES_AT_A_TIME);
      await this.#rests.take();
      for (const { deviceId, firstMs, imei } of devices) {
        const reachedMs = await this.#packDevice(deviceId, firstMs, times, isTurnOver);
        if (reachedMs !== null) return { ...place, fromMs: reachedMs };
        place = { ...place, afterImei: imei, fromMs: 0 };
      }
      if (devices.length < DEVICES_AT_A_TIME) return null;
      if (isTurnOver()) return place;
    }
  }

  /**
   * Packs the rows of a device. Those that cannot be packed now are left for the next pass. Returns the time up to which
   * it has come when the turn was over; null: to the end.
   */
  async #packDevice(
    deviceId: number,
    firstMs: number | null,
    { nowMs, beforeMs, receivedBeforeMs, weeks }: Times,
    isTurnOver: () => boolean,
  ): Promise<number | null> {
    const { sql } = this.#ports;
    let fromMs = firstMs;
    while (fromMs !== null && fromMs < beforeMs) {
      const dayEndMs = (Math.floor(fromMs / DAY_MS) + 1) * DAY_MS;
      const rows = await selectRows(
        sql,
        deviceId,
        fromMs,
        dayEndMs,
        receivedBeforeMs,
        PACKED_POINTS_MAX,
        this.#rests.take,
      );
      if (rows.count === 0) {
        fromMs = await selectNextRowMs(sql, deviceId, dayEndMs, beforeMs);
        continue;
      }
      const weekMs = weekStartMs(fromMs);
      if (!weeks.has(weekMs)) await ensureWeeks(sql, PACKED_POINTS, [weekMs]);
      weeks.add(weekMs);
      const taken = await this.#packRows(deviceId, rows, nowMs, receivedBeforeMs);
      const isDayOver = taken.count === rows.count && rows.count < PACKED_POINTS_MAX;
      fromMs = isDayOver ? dayEndMs : (taken.recordedAtMs[taken.count - 1] as number) + 1;
      await this.#rests.take();
      if (isTurnOver()) return fromMs;
    }
    return null;
  }

  /** Packs the first of these rows, and returns those that are done in this pass. */
  async #packRows(
    deviceId: number,
    rows: PointColumns,
    nowMs: number,
    receivedBeforeMs: number | null,
  ): Promise<PointColumns> {
    const { sql, lateWaitMs, onPacked, onDamaged } = this.#ports;
    const weekMs = weekStartMs(rows.recordedAtMs[0] as number);
    const spans = await selectPackedSpans(sql, deviceId, weekMs, weekMs + 7 * DAY_MS);
    const plan = planPacking(rows.recordedAtMs, spans);
    const { count, into } = plan;
    const taken = sliceColumns(rows, 0, count);
    const waitMs = receivedBeforeMs === null ? lateWaitMs : lateWaitMs + FOLLOWED_MS;
    if (!isWorthPacking(rows.receivedAtMs, plan, nowMs, waitMs)) return taken;
    try {
      const replaced = into === null ? null : await selectPackedRow(sql, deviceId, into.firstMs);
      const driven = await this.#newlyDriven(deviceId, taken, spans);
      if (await this.#pack(deviceId, taken, receivedBeforeMs, replaced, driven)) onPacked(count);
    } catch (error) {
      if (!(error instanceof DamagedPoints)) throw error;
      onDamaged(error.damage);
    }
    return taken;
  }

  /** Where the device has driven by these rows of a day, and not by what is packed of that day. */
  async #newlyDriven(
    deviceId: number,
    rows: PointColumns,
    spans: readonly PackedSpan[],
  ): Promise<DrivenCells | null> {
    const { sql, turns } = this.#ports;
    const startMs = dayOf(rows.recordedAtMs[0] as number) * DAY_MS;
    const day = { fromMs: startMs, toMs: startMs + DAY_MS - 1 };
    const ofDay = spans.filter(({ firstMs, lastMs }) => lastMs >= day.fromMs && firstMs <= day.toMs);
    let before = emptyColumns(0);
    for (const { firstMs } of ofDay.slice(-DAY_SPANS_MAX)) {
      const packed = await selectPackedRow(sql, deviceId, firstMs);
      if (packed !== null) before = mergeColumns(before, readablePoints(packed, day), MOTION);
    }
    const all = mergeColumns(before, rows, MOTION);
    return turns.run('packing', newlyDriven(all, before, weekOf(startMs)));
  }

  async #pack(
    deviceId: number,
    rows: PointColumns,
    receivedBeforeMs: number | null,
    replaced: PackedRow | null,
    driven: DrivenCells | null,
  ): Promise<boolean> {
    const { sql, turns } = this.#ports;
    const points = replaced === null ? rows : mergeColumns(unpackRow(replaced).columns(), rows);
    const packed: [PointColumns, PackedBlob][] = [];
    // As few parts of about the same size as may be, none too large for one blob.
    const size = Math.ceil(points.count / Math.ceil(points.count / PACKED_POINTS_MAX));
    for (let at = 0; at < points.count; at += size) {
      const part = sliceColumns(points, at, Math.min(at + size, points.count));
      packed.push([part, packColumns(await turns.run('packing', writeColumns(part)))]);
    }
    await this.#rests.take();
    try {
      await sql.begin(async (tx) => {
        const isReplaced = await replaceRows(
          tx,
          deviceId,
          rows,
          receivedBeforeMs,
          replaced,
          packed,
          this.#rests.takeLocked,
        );
        if (!isReplaced) throw new Changed();
        if (driven !== null) await insertDriven(tx, deviceId, driven);
      });
      return true;
    } catch (error) {
      if (error instanceof Changed) return false;
      throw error;
    }
  }

  /** A week that had no row for a whole pass has none that a transaction could still want. */
  async #giveBackSpace(beforeMs: number): Promise<void> {
    const { sql } = this.#ports;
    const emptied = await selectEmptiedWeeks(sql, POSITIONS, beforeMs);
    for (const mondayMs of emptied) {
      if (this.#emptied.has(mondayMs)) await truncateWeek(sql, POSITIONS, mondayMs);
    }
    this.#emptied = new Set(emptied);
  }
}

/**
 * Of a world in a round: the time of Postgres, up to when days are closed and points must have come (null: whenever they
 * came), and the weeks that are known to have a partition.
 */
interface Times {
  readonly nowMs: number;
  readonly beforeMs: number;
  readonly receivedBeforeMs: number | null;
  readonly weeks: Set<number>;
}

/** Another transaction has changed what was to be replaced. */
class Changed extends Error {
  override name = 'Changed';
}

/** A day with fewer points is packed together with the days before it. */
const SPARSE_DAY_POINTS = 50;
/** A week of such days. */
const SPARSE_WEEK_POINTS = 7 * SPARSE_DAY_POINTS;

/** How many of the rows, from the first on, are packed together, and with which points that are packed already. */
export interface PackingPlan {
  readonly count: number;
  readonly into: PackedSpan | null;
}

/**
 * What to pack next of the rows of one device and day, oldest first. `spans` are the packed points of the device in that
 * week, in order. Packed points never overlap, so late points join those that they lie between, and are packed beside
 * those of their day otherwise.
 */
export function planPacking(timesMs: Float64Array, spans: readonly PackedSpan[]): PackingPlan {
  const firstMs = timesMs[0] as number;
  const later = spans.find((span) => span.firstMs > firstMs) ?? null;
  const earlier = spans.findLast((span) => span.firstMs <= firstMs) ?? null;
  const before = later === null ? -1 : timesMs.findIndex((ms) => ms >= later.firstMs);
  const count = before === -1 ? timesMs.length : before;
  if (earlier !== null) {
    const isInside = earlier.lastMs >= firstMs;
    const isOfDay = dayOf(earlier.lastMs) === dayOf(firstMs) && earlier.count < PACKED_POINTS_MAX;
    if (isInside || isOfDay) return { count, into: earlier };
  }
  if (later !== null && dayOf(later.firstMs) === dayOf(firstMs)) return { count, into: later };
  const isSparse =
    earlier !== null && count < SPARSE_DAY_POINTS && earlier.count + count <= SPARSE_WEEK_POINTS;
  return { count, into: isSparse ? earlier : null };
}

/** Late points are packed in at once when there are this many, or this share of the points in the packed row. */
const LATE_POINTS = 100;
const LATE_SHARE = 0.1;

/**
 * To pack in one late point costs as much as to pack all that it joins. So few of them wait, as rows that every reader
 * finds, until there are more or the first has waited for `waitMs`; NaN: it is not known when it came. What is joined with a
 * day before because both are sparse waits in the same way.
 */
function isWorthPacking(
  receivedAtMs: Float64Array,
  { count, into }: PackingPlan,
  nowMs: number,
  waitMs: number,
): boolean {
  if (into === null || count >= LATE_POINTS || count >= LATE_SHARE * into.count) return true;
  const oldestMs = nowMs - waitMs;
  return receivedAtMs.subarray(0, count).some((ms) => !(ms > oldestMs));
}

/** No points when the packed ones are damaged: the other points of the day are still packed. */
function readablePoints(row: PackedRow, window: TimeWindow): PointColumns {
  try {
    return unpackRow(row).within(window, MOTION);
  } catch (error) {
    if (error instanceof DamagedPoints) return emptyColumns(0);
    throw error;
  }
}

/** After every IMEI. */
const AFTER_ALL = ':';

/** Days (UTC) that end before this time are closed: their points are packed. */
export function closedBeforeMs(nowMs: number): number {
  return dayOf(nowMs - HOT_MS) * DAY_MS;
}

/** The number of the day, in UTC. */
const dayOf = (ms: number): number => Math.floor(ms / DAY_MS);
