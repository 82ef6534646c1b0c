import { randomUUID } from 'node:crypto';
import { DAY_MS, HOUR_MS } from '../../base/durations.ts';
import type { WorkTurns } from '../../base/workTurns.ts';
import { selectNowMs } from '../../store/feed/snapshot.ts';
import { PACKED_POINTS_MAX, packColumns } from '../../store/history/codec/packedBlob.ts';
import { type PointColumns, sliceColumns, writeColumns } from '../../store/history/codec/pointColumns.ts';
import { type Damage, DamagedPoints } from '../../store/history/damagedPoints.ts';
import { mergeColumns } from '../../store/history/mergeColumns.ts';
import { type PackedRow, unpackRow } from '../../store/history/packedRows.ts';
import {
  type PackedPoints,
  replaceRows,
  selectNextRowMs,
  selectPackedRow,
  selectPackedSpans,
  selectRows,
  selectUnpackedDevices,
  type UnpackedDevice,
} from '../../store/history/packing.ts';
import { endPackingPass, keepPackingPlace, takePackingLease } from '../../store/history/packingLease.ts';
import {
  ensureWeeks,
  PACKED_POINTS,
  POSITIONS,
  selectEmptiedWeeks,
  truncateWeek,
  weekStartMs,
} from '../../store/sql/partitions.ts';
import { isOlderConnected } from '../../store/sql/sessionName.ts';
import type { Sql } from '../../store/sql/sql.ts';
import { planPacking } from './planPacking.ts';

/** Points stay rows for so long, and until their day (UTC) is over: most late ones have come by then. */
const HOT_MS = 48 * HOUR_MS;
/** How long one round may take. The rest waits for the next round. */
const ROUND_MS = 45_000;
/**
 * After each part of the work, of a millisecond or two, nothing is done for so many times as long. A seventh of a
 * processor packs more than twice what 200 000 vehicles send.
 */
const REST = 6;
/** The same while points of the device wait for a lock: the remainder is made up for when it is released. */
const LOCKED_REST = 2;
const REST_MAX_MS = 1_000;
/** Between two passes over all devices: a day is closed once a day, and late points may wait. */
const PASS_PAUSE_SECONDS = 3_600;
const DEVICES_AT_A_TIME = 200;

export interface PackPorts {
  readonly sql: Sql;
  readonly turns: Pick<WorkTurns<string>, 'run'>;
  readonly log: { info(fields: object, message: string): void };
  readonly rest: (ms: number) => Promise<unknown>;
  readonly onPacked: (points: number) => void;
  readonly onDamaged: (damage: Damage) => void;
}

/**
 * Packs the points of closed days, device by device. Every step is a transaction of its own, so a pass that was cut off
 * goes on from there. One pod packs at a time, and none while a pod is connected that could not read what is packed.
 */
export class HistoryPacker {
  readonly #ports: PackPorts;
  readonly #holder = randomUUID();
  /** When the part of the work began that is not rested from yet. */
  #partStartMs = 0;
  #owedRestMs = 0;
  /** Weeks that had no row at the end of the pass before. */
  #emptied: ReadonlySet<number> = new Set();

  constructor(ports: PackPorts) {
    this.#ports = ports;
  }

  /** Works for less than a minute. Returns true when a pass has ended. */
  async round(isStopping: () => boolean): Promise<boolean> {
    const { sql, log } = this.#ports;
    const untilMs = performance.now() + ROUND_MS;
    const isOver = (): boolean => isStopping() || performance.now() > untilMs;
    let afterDeviceId = await takePackingLease(sql, this.#holder);
    if (afterDeviceId === null) return false;
    this.#partStartMs = performance.now();
    const beforeMs = Math.floor(((await selectNowMs(sql)) - HOT_MS) / DAY_MS) * DAY_MS;
    const weeks = new Set<number>();
    while (!isOver()) {
      const devices = await selectUnpackedDevices(sql, afterDeviceId, beforeMs, DEVICES_AT_A_TIME);
      await this.#rest();
      for (const device of devices) {
        if (device.firstMs !== null && (await isOlderConnected(sql))) {
          log.info({}, 'history is not packed while a pod of the version before is connected');
          return false;
        }
        await this.#packDevice(device, beforeMs, weeks, isOver);
        if (isOver()) break;
        afterDeviceId = device.deviceId;
      }
      if (!(await keepPackingPlace(sql, this.#holder, afterDeviceId))) return false;
      if (devices.length < DEVICES_AT_A_TIME && !isOver()) {
        await endPackingPass(sql, this.#holder, PASS_PAUSE_SECONDS);
        await this.#giveBackSpace(beforeMs);
        return true;
      }
    }
    return false;
  }

  /** Packs all rows of a device before `beforeMs`. Those that cannot be packed now are left for the next pass. */
  async #packDevice(
    { deviceId, firstMs }: UnpackedDevice,
    beforeMs: number,
    weeks: Set<number>,
    isOver: () => boolean,
  ): Promise<void> {
    const { sql, onPacked, onDamaged } = this.#ports;
    let fromMs = firstMs;
    while (fromMs !== null && fromMs < beforeMs && !isOver()) {
      const dayEndMs = (Math.floor(fromMs / DAY_MS) + 1) * DAY_MS;
      const wanted = { fromMs, beforeMs: dayEndMs, limit: PACKED_POINTS_MAX };
      const rows = await selectRows(sql, deviceId, wanted, () => this.#rest());
      if (rows.count === 0) {
        fromMs = await selectNextRowMs(sql, deviceId, dayEndMs, beforeMs);
        continue;
      }
      const weekMs = weekStartMs(fromMs);
      if (!weeks.has(weekMs)) await ensureWeeks(sql, PACKED_POINTS, [weekMs]);
      weeks.add(weekMs);
      const taken = await this.#packRows(deviceId, rows, onPacked, onDamaged);
      const isDayOver = taken.count === rows.count && rows.count < PACKED_POINTS_MAX;
      fromMs = isDayOver ? dayEndMs : (taken.recordedAtMs[taken.count - 1] as number) + 1;
      await this.#rest();
    }
  }

  /** Packs the first of these rows, and returns those that need not be looked at again in this pass. */
  async #packRows(
    deviceId: number,
    rows: PointColumns,
    onPacked: PackPorts['onPacked'],
    onDamaged: PackPorts['onDamaged'],
  ): Promise<PointColumns> {
    const { sql } = this.#ports;
    const weekMs = weekStartMs(rows.recordedAtMs[0] as number);
    const spans = await selectPackedSpans(sql, deviceId, weekMs, weekMs + 7 * DAY_MS);
    const { count, into } = planPacking(rows.recordedAtMs, spans);
    const taken = sliceColumns(rows, 0, count);
    try {
      const replaced = into === null ? null : await selectPackedRow(sql, deviceId, into.firstMs);
      if (await this.#pack(deviceId, taken, replaced)) onPacked(count);
    } catch (error) {
      if (!(error instanceof DamagedPoints)) throw error;
      onDamaged(error.damage);
    }
    return taken;
  }

  async #pack(deviceId: number, rows: PointColumns, replaced: PackedRow | null): Promise<boolean> {
    const { sql, turns } = this.#ports;
    const points = replaced === null ? rows : mergeColumns(unpackRow(replaced).columns(), rows);
    const packed: PackedPoints[] = [];
    for (const part of partsOf(points)) {
      const blob = await packColumns(await turns.run('packing', writeColumns(part)));
      packed.push({ points: part, blob });
    }
    await this.#rest();
    const replacement = { deviceId, rows, replaced, packed };
    try {
      await sql.begin(async (tx) => {
        if (!(await replaceRows(tx, replacement, () => this.#rest(LOCKED_REST)))) throw new Changed();
      });
      return true;
    } catch (error) {
      if (error instanceof Changed) return false;
      throw error;
    }
  }

  /** Rests for all that is owed; with fewer `times` than REST, only for so many times as long as the last part has taken. */
  async #rest(times = REST): Promise<void> {
    const partMs = performance.now() - this.#partStartMs;
    this.#owedRestMs = Math.min(this.#owedRestMs + REST * partMs, REST_MAX_MS);
    const restMs = times < REST ? Math.min(this.#owedRestMs, times * partMs) : this.#owedRestMs;
    await this.#ports.rest(restMs);
    this.#owedRestMs -= restMs;
    this.#partStartMs = performance.now();
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

/** Somebody else has changed what was to be replaced. */
class Changed extends Error {
  override name = 'Changed';
}

/** As few parts of about the same size as may be, none too large for one blob. */
function partsOf(points: PointColumns): PointColumns[] {
  const parts = Math.ceil(points.count / PACKED_POINTS_MAX);
  const size = Math.ceil(points.count / parts);
  return Array.from({ length: parts }, (_, n) =>
    sliceColumns(points, n * size, Math.min((n + 1) * size, points.count)),
  );
}
