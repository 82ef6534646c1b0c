import { mapX, mapY, type Tile, tileAt } from '../../geo/vectorTile.ts';
import { SparseRows } from '../../lib/sparseRows.ts';
import { MINUTE_MS } from '../../lib/time.ts';
import { Pace, type Steps } from '../../lib/workTurns.ts';
import { onlineUntilMs, statusAt } from '../device.ts';
import type { DeviceColumns } from '../deviceColumns.memory.ts';
import { walkRows } from '../living/walkRows.memory.ts';
import type { SortedList } from '../sortedList.ts';
import { LOCATED_STATUSES, type LocatedStatus } from './deviceTile.ts';
import { type Counted, type CountedRows, TileCell } from './tileCell.memory.ts';

/** How far ahead devices are noted that become offline. A moving one that keeps sending is looked at as seldom. */
const HORIZON_S = 600;
/** Without a question for so long, the counts of a world are given up at its next change. */
const UNUSED_MS = 5 * MINUTE_MS;
/** The bits of an entry for the status: its place in LOCATED_STATUSES plus 1. */
const STATUS_BITS = 2;
const STATUS = 2 ** STATUS_BITS - 1;

/**
 * The devices of a world by tiles of the map, with counts by status as of a second. It is told of every change of the world,
 * and notes when devices become offline, so no question has to look at them all.
 */
export class TileCounts implements CountedRows {
  readonly order: DeviceColumns['compare'];
  readonly #columns: DeviceColumns;
  readonly #root: TileCell;
  /**
   * Of each row: the status as which it is counted, 0: it is not; and above that the second for which it is noted, from #baseS
   * on. A note stays when its device moves.
   */
  readonly #entries = new SparseRows();
  /** Rows noted for a second: they may be offline after it. */
  readonly #noted = new Map<number, number[]>();
  /** What was noted for seconds that are over. */
  readonly #due: { readonly second: number; readonly rows: number[] }[] = [];
  readonly #baseS: number;
  #nowS: number;
  /** What puts the devices into it that were there before. */
  #making: Steps<void> | null;

  constructor(columns: DeviceColumns, devices: SortedList<number, number>, nowMs: number) {
    this.#columns = columns;
    this.order = (row, other) => columns.compare(row, other);
    this.#root = new TileCell(0, this);
    this.#nowS = Math.floor(nowMs / 1_000);
    this.#baseS = this.#nowS - 1;
    this.#making = walkRows(columns, [devices], (row) => {
      this.put(row);
      return true;
    });
  }

  /** The second as of which statuses are counted; epoch ms. */
  get nowMs(): number {
    return 1_000 * this.#nowS;
  }

  isUnused(nowMs: number): boolean {
    return nowMs - this.nowMs > UNUSED_MS;
  }

  /**
   * Must be run to its end before each question: counts are as of `nowMs`, in whole seconds, or a later second that was
   * asked for before. Several callers may run it at a time.
   */
  *prepare(nowMs: number): Steps<void> {
    for (;;) {
      const making = this.#making;
      if (making === null) break;
      if (making.next().done === true) this.#making = null;
      else yield;
    }
    const nowS = Math.floor(nowMs / 1_000);
    if (nowS > this.#nowS) {
      this.#nowS = nowS;
      for (const [second, rows] of this.#noted) {
        if (second >= nowS) continue;
        this.#noted.delete(second);
        this.#due.push({ second, rows });
      }
    }
    if (this.#due.length === 0) return;
    const pace = new Pace();
    for (let due = this.#due.at(-1); due !== undefined; due = this.#due.at(-1)) {
      const row = due.rows.pop();
      if (row === undefined) this.#due.pop();
      else this.#age(row, due.second);
      if (pace.isDue()) yield* pace.pause();
    }
  }

  /** Adds a device that has a position, unless it is there. */
  put(row: number): void {
    const columns = this.#columns;
    if (!columns.hasPosition(row) || this.#isIn(row)) return;
    const status = statusAt(columns.recordedAtMs(row), columns.speedKmh(row), this.nowMs) as LocatedStatus;
    this.#entries.set(row, this.#entries.get(row) + codeOf(status));
    if (status !== 'offline') this.#note(row);
    this.#root.add(this, row, this.counted(row), ++lastStamp);
  }

  /** Takes a device out, if it is there, before it moves or leaves. */
  take(row: number): void {
    if (!this.#isIn(row)) return;
    const counted = this.counted(row);
    this.#root.take(row, counted, ++lastStamp);
    this.#entries.set(row, this.#entries.get(row) - codeOf(counted.status));
  }

  /** A device has other fields. */
  touch(row: number): void {
    if (this.#isIn(row)) this.#root.touch(this.counted(row), ++lastStamp);
  }

  counted(row: number): Counted {
    const status = LOCATED_STATUSES[(this.#entries.get(row) & STATUS) - 1] as LocatedStatus;
    return { x: mapX(this.#columns.lng(row)), y: mapY(this.#columns.lat(row)), status };
  }

  #isIn(row: number): boolean {
    return (this.#entries.get(row) & STATUS) !== 0;
  }

  /** Changes whenever a device in a tile does; it may change at other times. */
  stamp(tile: Tile): number {
    return this.#cellAt(tile)?.stamp ?? 0;
  }

  /**
   * Shows the devices of a tile: cells `zooms` deeper that have some, and the rows of those that are in larger cells, which
   * are few. Takes a millisecond at most.
   */
  visit(tile: Tile, zooms: number, cell: (cell: TileCell) => void, row: (row: number) => void): void {
    const open: (TileCell | null)[] = [this.#cellAt(tile)];
    for (let next = open.pop(); next !== undefined; next = open.pop()) {
      if (next === null) continue;
      if (next.zoom >= tile.z + zooms) cell(next);
      else if (next.parts !== null) open.push(...next.parts);
      else for (const each of next.rows) if (next.zoom >= tile.z || this.#isAt(tile, each)) row(each);
    }
  }

  /** The cell of a tile, or the larger one without parts that has it; null: no device is in it. */
  #cellAt({ z, x, y }: Tile): TileCell | null {
    let cell: TileCell | null = this.#root;
    while (cell !== null && cell.zoom < z && cell.parts !== null) {
      const shift: number = z - cell.zoom - 1;
      cell = cell.parts[2 * ((y >>> shift) & 1) + ((x >>> shift) & 1)] ?? null;
    }
    return cell;
  }

  #isAt({ z, x, y }: Tile, row: number): boolean {
    const counted = this.counted(row);
    return tileAt(counted.x, z) === x && tileAt(counted.y, z) === y;
  }

  /** Looks at a device when the second is over for which it was noted. */
  #age(row: number, second: number): void {
    const entry = this.#entries.get(row);
    // It may be noted for an earlier second since, and this was forgotten.
    if (entry >>> STATUS_BITS !== second - this.#baseS) return;
    const code = entry & STATUS;
    this.#entries.set(row, code);
    if (code === 0 || code === codeOf('offline')) return;
    if (this.#onlineUntilMs(row) >= this.nowMs) {
      this.#note(row);
      return;
    }
    this.#root.setOffline(this.counted(row), ++lastStamp);
    this.#entries.set(row, codeOf('offline'));
  }

  /** Notes when to look whether a device is offline, unless it is looked at before. */
  #note(row: number): void {
    const second = Math.min(Math.floor(this.#onlineUntilMs(row) / 1_000), this.#nowS + HORIZON_S);
    const entry = this.#entries.get(row);
    const present = entry >>> STATUS_BITS;
    if (present !== 0 && present <= second - this.#baseS) return;
    this.#entries.set(row, (second - this.#baseS) * 2 ** STATUS_BITS + (entry & STATUS));
    const noted = this.#noted.get(second);
    if (noted === undefined) this.#noted.set(second, [row]);
    else noted.push(row);
  }

  #onlineUntilMs(row: number): number {
    return onlineUntilMs(this.#columns.recordedAtMs(row), this.#columns.speedKmh(row));
  }
}

/** Of the counts of all worlds, so that those that are made anew have other stamps. */
let lastStamp = 0;

function codeOf(status: LocatedStatus): number {
  return LOCATED_STATUSES.indexOf(status) + 1;
}
