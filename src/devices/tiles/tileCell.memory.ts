import { tileAt } from '../../geo/vectorTile.ts';
import { type Order, SortedList } from '../sortedList.ts';
import { CLUSTER_ZOOMS, type Cluster, countOf, type LocatedStatus } from './deviceTile.ts';

/** A tile of zoom 22 has clusters too. */
const DEPTH_MAX = 22 + CLUSTER_ZOOMS;
/** A cell with more devices is divided, and one with fewer is whole again. */
const ROWS_MAX = 32;
const ROWS_LEAST = 16;

/** Where a device is on the map, in steps, and its status as it is counted. */
export interface Counted {
  readonly x: number;
  readonly y: number;
  readonly status: LocatedStatus;
}

/** What cells ask about the devices in them. */
export interface CountedRows {
  counted(row: number): Counted;
  readonly order: Order<number>;
}

/**
 * A tile of some zoom with the number of its devices, by status, and the sums of their places: whole numbers, so that adding
 * and taking leaves no error. It has the rows of its devices, or is divided into the four tiles of the next zoom.
 */
export class TileCell implements Cluster {
  readonly zoom: number;
  /** Another number after each change of a device in it. */
  stamp = 0;
  moving = 0;
  parked = 0;
  offline = 0;
  sumX = 0;
  sumY = 0;
  /** By quadrant; null: it is not divided. */
  parts: (TileCell | null)[] | null = null;
  /** At the largest zoom any number of devices may be in one cell. */
  #rows: number[] | SortedList<number, number>;

  constructor(zoom: number, { order }: CountedRows) {
    this.zoom = zoom;
    this.#rows = zoom === DEPTH_MAX ? new SortedList((row) => row, order) : [];
  }

  /** The rows of its devices, unless it is divided. */
  get rows(): readonly number[] {
    const rows = this.#rows;
    return Array.isArray(rows) ? rows : rows.slice(0, rows.size);
  }

  /** The part that has a place in this cell; null: there is no device in it. */
  partAt({ x, y }: Pick<Counted, 'x' | 'y'>): TileCell | null {
    return this.parts?.[quadrant(this.zoom, x, y)] ?? null;
  }

  add(rows: CountedRows, row: number, counted: Counted, stamp: number): void {
    let cell: TileCell = this;
    for (;;) {
      cell.#count(counted, 1);
      cell.stamp = stamp;
      if (cell.parts === null) break;
      const at = quadrant(cell.zoom, counted.x, counted.y);
      let part: TileCell | null = cell.parts[at] ?? null;
      if (part === null) {
        part = new TileCell(cell.zoom + 1, rows);
        cell.parts[at] = part;
      }
      cell = part;
    }
    if (Array.isArray(cell.#rows)) {
      cell.#rows.push(row);
      if (cell.#rows.length > ROWS_MAX) cell.#divide(rows, stamp);
    } else cell.#rows.put(row);
  }

  take(row: number, counted: Counted, stamp: number): void {
    let cell: TileCell = this;
    for (;;) {
      cell.#count(counted, -1);
      cell.stamp = stamp;
      if (cell.parts === null) break;
      if (countOf(cell) < ROWS_LEAST) {
        cell.#rows = cell.#allRows();
        cell.parts = null;
        break;
      }
      const at = quadrant(cell.zoom, counted.x, counted.y);
      const part = cell.parts[at] as TileCell;
      if (countOf(part) === 1) {
        cell.parts[at] = null;
        return;
      }
      cell = part;
    }
    if (Array.isArray(cell.#rows)) {
      const last = cell.#rows.pop() as number;
      if (last !== row) cell.#rows[cell.#rows.indexOf(row)] = last;
    } else cell.#rows.remove(row);
  }

  /** A device in it has changed, but neither its place nor its status. */
  touch(counted: Counted, stamp: number): void {
    for (let cell: TileCell | null = this; cell !== null; cell = cell.partAt(counted)) cell.stamp = stamp;
  }

  /** A device in it is offline now. */
  setOffline(counted: Counted, stamp: number): void {
    for (let cell: TileCell | null = this; cell !== null; cell = cell.partAt(counted)) {
      cell[counted.status]--;
      cell.offline++;
      cell.stamp = stamp;
    }
  }

  #count({ x, y, status }: Counted, by: 1 | -1): void {
    this[status] += by;
    this.sumX += by * x;
    this.sumY += by * y;
  }

  #divide(rows: CountedRows, stamp: number): void {
    const own = this.rows;
    this.parts = [null, null, null, null];
    this.#rows = [];
    for (const row of own) {
      const counted = rows.counted(row);
      const at = quadrant(this.zoom, counted.x, counted.y);
      const part = this.parts[at] ?? new TileCell(this.zoom + 1, rows);
      this.parts[at] = part;
      part.add(rows, row, counted, stamp);
    }
  }

  #allRows(): number[] {
    if (this.parts === null) return [...this.rows];
    return this.parts.flatMap((part) => (part === null ? [] : part.#allRows()));
  }
}

/** Which of the four tiles of the next zoom has a place. */
function quadrant(zoom: number, x: number, y: number): number {
  return 2 * (tileAt(y, zoom + 1) & 1) + (tileAt(x, zoom + 1) & 1);
}
