import { tileAt } from '../../geo/vectorTile.ts';
import { RowPages } from '../../lib/rows.ts';
import { type Order, SortedList } from '../sortedList.ts';
import { CLUSTER_ZOOMS, type Cluster, LOCATED_STATUSES, type LocatedStatus } from './deviceTile.ts';

/** A tile of zoom 22 has clusters too. */
const DEPTH_MAX = 22 + CLUSTER_ZOOMS;
/** A cell with more devices is divided, and one with fewer is whole again. */
const ROWS_MAX = 32;
const ROWS_LEAST = 16;

// A cell has eight doubles, a line of the processor's cache, of which the last five are ten whole numbers of four bytes.
const CELL_DOUBLES = 8;
const [SUM_X, SUM_Y, STAMP] = [0, 1, 2] as const;
/** The counts by status, in the order of LOCATED_STATUSES. */
const COUNTS = 6;
const [BLOCK, IS_DIVIDED, PARTS] = [9, 10, 11] as const;

/** Where a device is on the map, in steps, and its status as it is counted. */
export interface Counted {
  readonly x: number;
  readonly y: number;
  readonly status: LocatedStatus;
}

/** What cells ask about the devices in them. */
interface CountedRows {
  counted(row: number): Counted;
  readonly order: Order<number>;
}

/**
 * A quadtree of the map. Each cell is a tile of some zoom with the number of its devices, by status, and the sums of their
 * places: whole numbers, so that adding and taking leaves no error. It has a block with the rows of its devices, or is divided
 * into the four tiles of the next zoom. Cells are known by numbers; 0: there is none.
 */
export class TileCells {
  readonly root: number;
  readonly #devices: CountedRows;
  readonly #cells = new RowPages(CELL_DOUBLES);
  readonly #blocks = new RowPages(ROWS_MAX / 2);
  /** The rows of cells of the largest zoom that have no room in a block. */
  readonly #crowds = new Map<number, SortedList<number, number>>();

  constructor(devices: CountedRows) {
    this.#devices = devices;
    this.root = this.#newCell();
  }

  count(cell: number): number {
    const cells = this.#cells;
    return cells.int(cell, COUNTS) + cells.int(cell, COUNTS + 1) + cells.int(cell, COUNTS + 2);
  }

  /** Another number after each change of a device in the cell. */
  stamp(cell: number): number {
    return this.#cells.double(cell, STAMP);
  }

  cluster(cell: number): Cluster {
    const cells = this.#cells;
    return {
      moving: cells.int(cell, COUNTS),
      parked: cells.int(cell, COUNTS + 1),
      offline: cells.int(cell, COUNTS + 2),
      sumX: cells.double(cell, SUM_X),
      sumY: cells.double(cell, SUM_Y),
    };
  }

  isDivided(cell: number): boolean {
    return this.#cells.int(cell, IS_DIVIDED) !== 0;
  }

  /** `quadrant`: 0 to 3, the northern ones first, of them the western one. */
  part(cell: number, quadrant: number): number {
    return this.#cells.int(cell, PARTS + quadrant);
  }

  /** The rows of the devices of a cell that is not divided. */
  rows(cell: number): number[] {
    const crowd = this.#crowds.get(cell);
    if (crowd !== undefined) return crowd.slice(0, crowd.size);
    const block = this.#cells.int(cell, BLOCK);
    return Array.from({ length: this.count(cell) }, (_, n) => this.#blocks.int(block, n));
  }

  add(row: number, at: Counted, stamp: number): void {
    this.#add(this.root, 0, row, at, stamp);
  }

  take(row: number, at: Counted, stamp: number): void {
    this.#take(this.root, 0, row, at, stamp);
  }

  /** A device has moved, or has another status. */
  move(row: number, before: Counted, after: Counted, stamp: number): void {
    let cell = this.root;
    for (let zoom = 0; ; zoom++) {
      this.#count(cell, before, -1, stamp);
      this.#count(cell, after, 1, stamp);
      if (!this.isDivided(cell)) return;
      const [from, to] = [quadrantOf(zoom, before), quadrantOf(zoom, after)];
      if (from !== to) {
        this.#takeOutOf(cell, from, zoom, row, before, stamp);
        this.#add(this.#partFor(cell, to), zoom + 1, row, after, stamp);
        return;
      }
      cell = this.part(cell, to);
    }
  }

  /** A device has changed, but neither its place nor its status. */
  touch(at: Counted, stamp: number): void {
    for (let [cell, zoom] = [this.root, 0]; cell !== 0; cell = this.part(cell, quadrantOf(zoom++, at)))
      this.#cells.setDouble(cell, STAMP, stamp);
  }

  #add(from: number, fromZoom: number, row: number, at: Counted, stamp: number): void {
    let cell = from;
    for (let zoom = fromZoom; ; zoom++) {
      if (!this.isDivided(cell)) {
        if (this.count(cell) < ROWS_MAX || zoom === DEPTH_MAX) {
          this.#addRow(cell, row);
          this.#count(cell, at, 1, stamp);
          return;
        }
        this.#divide(cell, zoom, stamp);
      }
      this.#count(cell, at, 1, stamp);
      cell = this.#partFor(cell, quadrantOf(zoom, at));
    }
  }

  #take(from: number, fromZoom: number, row: number, at: Counted, stamp: number): void {
    let cell = from;
    for (let zoom = fromZoom; ; zoom++) {
      const isToJoin = this.isDivided(cell) && this.count(cell) <= ROWS_LEAST;
      if (isToJoin) this.#join(cell);
      if (!this.isDivided(cell)) {
        this.#takeRow(cell, row);
        this.#count(cell, at, -1, stamp);
        return;
      }
      this.#count(cell, at, -1, stamp);
      const quadrant = quadrantOf(zoom, at);
      const part = this.part(cell, quadrant);
      if (this.count(part) === 1) {
        this.#takeOutOf(cell, quadrant, zoom, row, at, stamp);
        return;
      }
      cell = part;
    }
  }

  #takeOutOf(cell: number, quadrant: number, zoom: number, row: number, at: Counted, stamp: number): void {
    const part = this.part(cell, quadrant);
    if (this.count(part) > 1) {
      this.#take(part, zoom + 1, row, at, stamp);
    } else {
      this.#cells.setInt(cell, PARTS + quadrant, 0);
      this.#free(part);
    }
  }

  #count(cell: number, { x, y, status }: Counted, by: 1 | -1, stamp: number): void {
    const cells = this.#cells;
    const field = COUNTS + LOCATED_STATUSES.indexOf(status);
    cells.setInt(cell, field, cells.int(cell, field) + by);
    cells.setDouble(cell, SUM_X, cells.double(cell, SUM_X) + by * x);
    cells.setDouble(cell, SUM_Y, cells.double(cell, SUM_Y) + by * y);
    cells.setDouble(cell, STAMP, stamp);
  }

  #divide(cell: number, zoom: number, stamp: number): void {
    const rows = this.rows(cell);
    this.#freeBlock(cell);
    this.#cells.setInt(cell, IS_DIVIDED, 1);
    for (const row of rows) {
      const at = this.#devices.counted(row);
      this.#add(this.#partFor(cell, quadrantOf(zoom, at)), zoom + 1, row, at, stamp);
    }
  }

  /** Makes a cell whole that has few devices. */
  #join(cell: number): void {
    const block = this.#blocks.take();
    for (const [n, row] of this.#takeParts(cell).entries()) this.#blocks.setInt(block, n, row);
    this.#cells.setInt(cell, IS_DIVIDED, 0);
    this.#cells.setInt(cell, BLOCK, block);
  }

  /** The rows in the parts of a cell, which are freed. */
  #takeParts(cell: number): number[] {
    const rows: number[] = [];
    for (let quadrant = 0; quadrant < 4; quadrant++) {
      const part = this.part(cell, quadrant);
      if (part === 0) continue;
      rows.push(...(this.isDivided(part) ? this.#takeParts(part) : this.rows(part)));
      this.#cells.setInt(cell, PARTS + quadrant, 0);
      this.#free(part);
    }
    return rows;
  }

  #addRow(cell: number, row: number): void {
    const count = this.count(cell);
    if (count < ROWS_MAX) {
      this.#blocks.setInt(this.#blockOf(cell), count, row);
      return;
    }
    let crowd = this.#crowds.get(cell);
    if (crowd === undefined) {
      crowd = new SortedList((each) => each, this.#devices.order);
      for (const each of this.rows(cell)) crowd.put(each);
      this.#crowds.set(cell, crowd);
    }
    crowd.put(row);
  }

  #takeRow(cell: number, row: number): void {
    const block = this.#blockOf(cell);
    const crowd = this.#crowds.get(cell);
    if (crowd !== undefined) {
      crowd.remove(row);
      if (crowd.size > ROWS_MAX) return;
      for (const [n, each] of crowd.slice(0, ROWS_MAX).entries()) this.#blocks.setInt(block, n, each);
      this.#crowds.delete(cell);
      return;
    }
    const last = this.count(cell) - 1;
    let at = 0;
    while (this.#blocks.int(block, at) !== row) at++;
    this.#blocks.setInt(block, at, this.#blocks.int(block, last));
  }

  #blockOf(cell: number): number {
    const present = this.#cells.int(cell, BLOCK);
    if (present !== 0) return present;
    const block = this.#blocks.take();
    this.#cells.setInt(cell, BLOCK, block);
    return block;
  }

  #partFor(cell: number, quadrant: number): number {
    const present = this.part(cell, quadrant);
    if (present !== 0) return present;
    const part = this.#newCell();
    this.#cells.setInt(cell, PARTS + quadrant, part);
    return part;
  }

  #newCell(): number {
    const cell = this.#cells.take();
    this.#cells.clear(cell);
    return cell;
  }

  #free(cell: number): void {
    this.#freeBlock(cell);
    this.#crowds.delete(cell);
    this.#cells.free(cell);
  }

  #freeBlock(cell: number): void {
    const block = this.#cells.int(cell, BLOCK);
    if (block !== 0) this.#blocks.free(block);
    this.#cells.setInt(cell, BLOCK, 0);
  }
}

/** Which of the four tiles of the next zoom has a place. */
function quadrantOf(zoom: number, { x, y }: Pick<Counted, 'x' | 'y'>): number {
  return 2 * (tileAt(y, zoom + 1) & 1) + (tileAt(x, zoom + 1) & 1);
}
