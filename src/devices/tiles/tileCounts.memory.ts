import { mapX, mapY, type Tile, tileAt } from '../../geo/vectorTile.ts';
import { SparseRows } from '../../lib/numberPages.ts';
import { MINUTE_MS } from '../../lib/time.ts';
import { Pace, type Steps } from '../../lib/workTurns.ts';
import { onlineUntilMs, statusAt } from '../device.ts';
import type { DeviceColumns } from '../deviceColumns.memory.ts';
import { walkRows } from '../living/walkRows.memory.ts';
import type { SortedList } from '../sortedList.ts';
import { type Cluster, LOCATED_STATUSES, type LocatedStatus } from './deviceTile.ts';
import { type Counted, TileCells } from './tileCells.memory.ts';

/** How far ahead the time is noted at which a device becomes offline. A device that keeps sending is checked as seldom. */
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
export class TileCounts {
  readonly #columns: DeviceColumns;
  readonly #cells: TileCells;
  /**
   * Of each row: the status as which it is counted, 0: it is not; and above that the second for which it is noted, from
   * #baseS on. A note stays when its device moves.
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
    this.#cells = new TileCells({
      counted: (row) => this.counted(row),
      order: (row, other) => columns.compare(row, other),
    });
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

  /** Whether a question can be answered without steps: most seconds nobody becomes offline. */
  isPrepared(nowMs: number): boolean {
    const nowS = Math.floor(nowMs / 1_000);
    if (nowS > this.#nowS) {
      this.#nowS = nowS;
      for (const [second, rows] of this.#noted) {
        if (second >= nowS) continue;
        this.#noted.delete(second);
        this.#due.push({ second, rows });
      }
    }
    return this.#making === null && this.#due.length === 0;
  }

  /**
   * Must be run to its end before each question that is not prepared: counts are as of `nowMs`, in whole seconds, or a
   * later second that was asked for before. Several callers may run it at a time.
   */
  *prepare(nowMs: number): Steps<void> {
    for (;;) {
      const making = this.#making;
      if (making === null) break;
      if (making.next().done === true) this.#making = null;
      else yield;
    }
    if (this.isPrepared(nowMs)) return;
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
    if (!this.#columns.hasPosition(row) || this.#isIn(row)) return;
    this.#entries.set(row, this.#entries.get(row) + codeOf(this.#statusOf(row)));
    this.#note(row);
    this.#cells.add(row, this.counted(row), ++lastStamp);
  }

  /** Takes a device out, if it is there. */
  take(row: number): void {
    if (!this.#isIn(row)) return;
    const counted = this.counted(row);
    this.#cells.take(row, counted, ++lastStamp);
    this.#entries.set(row, this.#entries.get(row) - codeOf(counted.status));
  }

  /** Where a device is, before it moves; null: it is not there. */
  present(row: number): Counted | null {
    return this.#isIn(row) ? this.counted(row) : null;
  }

  /** A device has another position, and was there before; see `present`. */
  move(row: number, before: Counted | null): void {
    if (before === null) {
      this.put(row);
      return;
    }
    const entry = this.#entries.get(row);
    this.#entries.set(row, entry - codeOf(before.status) + codeOf(this.#statusOf(row)));
    this.#note(row);
    this.#cells.move(row, before, this.counted(row), ++lastStamp);
  }

  /** A device has other fields. */
  touch(row: number): void {
    if (this.#isIn(row)) this.#cells.touch(this.counted(row), ++lastStamp);
  }

  counted(row: number): Counted {
    const status = LOCATED_STATUSES[(this.#entries.get(row) & STATUS) - 1] as LocatedStatus;
    return { x: mapX(this.#columns.lng(row)), y: mapY(this.#columns.lat(row)), status };
  }

  #isIn(row: number): boolean {
    return (this.#entries.get(row) & STATUS) !== 0;
  }

  #statusOf(row: number): LocatedStatus {
    const columns = this.#columns;
    return statusAt(columns.recordedAtMs(row), columns.speedKmh(row), this.nowMs) as LocatedStatus;
  }

  /** Changes whenever a device in a tile does; it may change at other times. */
  stamp(tile: Tile): number {
    const [cell] = this.#cellAt(tile);
    return cell === 0 ? 0 : this.#cells.stamp(cell);
  }

  /**
   * Shows the devices of a tile: the clusters of cells `zooms` deeper, and the rows of those that are in larger cells, which
   * are few. Takes a millisecond at most.
   */
  visit(tile: Tile, zooms: number, show: (cluster: Cluster) => void, showRow: (row: number) => void): void {
    const cells = this.#cells;
    const open = [this.#cellAt(tile)];
    for (let next = open.pop(); next !== undefined; next = open.pop()) {
      const [cell, zoom] = next;
      if (cell === 0) continue;
      if (zoom >= tile.z + zooms) show(cells.cluster(cell));
      else if (cells.isDivided(cell))
        for (let quadrant = 0; quadrant < 4; quadrant++) open.push([cells.part(cell, quadrant), zoom + 1]);
      else for (const row of cells.rows(cell)) if (zoom >= tile.z || this.#isAt(tile, row)) showRow(row);
    }
  }

  /** The cell of a tile, or the larger one that is not divided and has it, with its zoom; 0: no device is in it. */
  #cellAt({ z, x, y }: Tile): [cell: number, zoom: number] {
    let cell = this.#cells.root;
    let zoom = 0;
    while (zoom < z && this.#cells.isDivided(cell)) {
      zoom++;
      const shift = z - zoom;
      cell = this.#cells.part(cell, 2 * ((y >>> shift) & 1) + ((x >>> shift) & 1));
    }
    return [cell, zoom];
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
    const before = this.counted(row);
    this.#entries.set(row, codeOf('offline'));
    this.#cells.move(row, before, this.counted(row), ++lastStamp);
  }

  /** Notes when to check whether a device is offline, unless an earlier check is noted. */
  #note(row: number): void {
    if ((this.#entries.get(row) & STATUS) === codeOf('offline')) return;
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

/** Shared by the counts of all worlds, so that counts that are made again have other stamps. */
let lastStamp = 0;

function codeOf(status: LocatedStatus): number {
  return LOCATED_STATUSES.indexOf(status) + 1;
}
