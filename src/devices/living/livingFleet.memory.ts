import { Pace, type Steps } from '../../lib/workTurns.ts';
import { Device } from '../device.ts';
import { type DeviceColumns, PROBE } from '../deviceColumns.memory.ts';
import type { World } from '../world.memory.ts';
import type { DeviceFilter } from './deviceFilter.ts';
import { RowFilter } from './rowFilter.memory.ts';

/** Devices that are looked at before other work may have its turn: some ten microseconds. */
const ROWS_AT_ONCE = 128;

/**
 * Questions about all devices of a fleet that pass a filter. They are answered in steps, since there may be millions.
 * Each device is seen once, as it is when its turn comes.
 */
export class LivingFleet {
  readonly #columns: DeviceColumns;
  readonly #worlds: ReadonlyMap<number, World>;

  constructor(columns: DeviceColumns, worlds: ReadonlyMap<number, World>) {
    this.#columns = columns;
    this.#worlds = worlds;
  }

  /**
   * Shows a page of the devices of one or two worlds that pass, in the order of IMEIs as text. Returns how many pass.
   * A device has to be read when it is shown: see Device.
   */
  *list(
    worldIds: readonly number[],
    filter: DeviceFilter,
    nowMs: number,
    { offset, limit }: { offset: number; limit: number },
    show: (device: Device) => void,
  ): Steps<number> {
    const rows = new RowFilter(this.#columns, filter, nowMs);
    let total = 0;
    yield* this.#walk(worldIds, (row) => {
      if (!rows.passes(row)) return;
      if (total >= offset && total - offset < limit) show(new Device(this.#columns, row));
      total++;
    });
    return total;
  }

  /** Visits all devices of these worlds, in the order of IMEIs. */
  *#walk(worldIds: readonly number[], visit: (row: number) => void): Steps<void> {
    const pace = new Pace();
    for (let after = ''; ; ) {
      const rows = this.#rowsBehind(worldIds, after);
      for (const row of rows) visit(row);
      if (rows.length < ROWS_AT_ONCE) return;
      after = new Device(this.#columns, rows.at(-1) as number).imei;
      if (pace.isDue()) yield* pace.pause();
    }
  }

  /** The next rows behind an IMEI, as many as are looked at at once; fewer when there are no more. */
  #rowsBehind(worldIds: readonly number[], imei: string): number[] {
    const columns = this.#columns;
    columns.probeBehind(imei);
    const rows = worldIds.flatMap((id) => this.#worlds.get(id)?.devices.from(PROBE, ROWS_AT_ONCE) ?? []);
    if (worldIds.length === 1) return rows;
    return rows.sort((row, other) => columns.compare(row, other)).slice(0, ROWS_AT_ONCE);
  }
}
