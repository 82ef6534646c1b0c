import { Device, type DeviceStatus, imeiHead, imeiTail, statusAt } from '../device.ts';
import { type DeviceColumns, IMEI } from '../deviceColumns.memory.ts';
import type { Region } from '../index/regionWalk.ts';
import type { RowSearch } from '../world.memory.ts';
import type { RowFilter } from './rowFilter.memory.ts';

/** Rows that are kept as a list. A bit for each row of a large fleet takes longer to make than a short search. */
const LISTED_MAX = 4_096;

/**
 * The devices in a region that pass a filter, as of the moment at which the search begins, each once. It knows which it has
 * met, since a device that is about to change is offered whether it was met or not.
 */
export abstract class RegionSearch implements RowSearch {
  total = 0;
  protected readonly columns: DeviceColumns;
  readonly #region: Region;
  readonly #rows: RowFilter | null;
  /** The rows met so far, while they are few and nothing has changed. */
  #first: number[] = [];
  /** A bit for each row, from then on. */
  #met: Uint8Array | null = null;

  constructor(columns: DeviceColumns, region: Region, rows: RowFilter | null) {
    this.columns = columns;
    this.#region = region;
    this.#rows = rows;
  }

  /** Takes a device that is in the region. */
  meet(row: number): void {
    if (this.#rows?.passes(row) === false) return;
    if (this.#met !== null) this.#setMet(this.#met, row);
    else if (this.#first.push(row) === LISTED_MAX) this.#markMet();
    this.total++;
    this.take(row);
  }

  offerPresent(device: Device): void {
    const { row } = device;
    const met = this.#met ?? this.#markMet();
    const bits = met[row >>> 3] ?? 0;
    if ((bits & (1 << (row & 7))) !== 0) {
      this.keep(row);
    } else if (this.columns.hasPosition(row)) {
      const isIn = this.#region.contains(this.columns.lat(row), this.columns.lng(row));
      if (isIn) this.meet(row);
      this.keep(row);
    }
  }

  /** A device that counts. */
  protected abstract take(row: number): void;

  /** Such a device is about to change. */
  protected abstract keep(row: number): void;

  #markMet(): Uint8Array {
    const met = new Uint8Array((this.columns.end >>> 3) + 1);
    for (const row of this.#first) this.#setMet(met, row);
    this.#first = [];
    this.#met = met;
    return met;
  }

  #setMet(met: Uint8Array, row: number): void {
    met[row >>> 3] = (met[row >>> 3] as number) | (1 << (row & 7));
  }
}

interface Listed {
  readonly head: number;
  readonly tail: number;
  readonly row: number;
  /** As it was, once it has changed. */
  device: Device | null;
}

/** The first of them behind an IMEI, in the order of IMEIs as text: at most `limit`, and one more if there are more. */
export class RegionPage extends RegionSearch {
  readonly #limit: number;
  readonly #afterHead: number;
  readonly #afterTail: number;
  readonly #listed: Listed[] = [];

  /** `afterImei`: null for the first page. */
  constructor(
    columns: DeviceColumns,
    region: Region,
    rows: RowFilter | null,
    { afterImei, limit }: { afterImei: string | null; limit: number },
  ) {
    super(columns, region, rows);
    this.#limit = limit;
    this.#afterHead = afterImei === null ? -1 : imeiHead(afterImei);
    this.#afterTail = afterImei === null ? 0 : imeiTail(afterImei);
  }

  get hasMore(): boolean {
    return this.#listed.length > this.#limit;
  }

  /** To be called when the search is over, before devices change. */
  page(): Device[] {
    return this.#listed
      .slice(0, this.#limit)
      .map(({ row, device }) => device ?? new Device(this.columns, row).taken());
  }

  protected override take(row: number): void {
    const head = this.columns.keyHead(row, IMEI);
    const tail = this.columns.keyTail(row, IMEI);
    if (!isBehind(head, tail, this.#afterHead, this.#afterTail)) return;
    const listed = this.#listed;
    const last = listed[this.#limit];
    if (last !== undefined && isBehind(head, tail, last.head, last.tail)) return;
    let low = 0;
    let high = listed.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      const other = listed[middle] as Listed;
      if (isBehind(head, tail, other.head, other.tail)) low = middle + 1;
      else high = middle;
    }
    listed.splice(low, 0, { head, tail, row, device: null });
    if (listed.length > this.#limit + 1) listed.pop();
  }

  protected override keep(row: number): void {
    const listed = this.#listed.find((each) => each.row === row && each.device === null);
    if (listed !== undefined) listed.device = new Device(this.columns, row).taken();
  }
}

/** How many devices there are, and of which statuses. */
export type StatusCounts = Record<DeviceStatus, number>;

/** Of each status how many there are. */
export class RegionCount extends RegionSearch {
  readonly counts: StatusCounts = { moving: 0, parked: 0, offline: 0, unknown: 0 };
  readonly #nowMs: number;

  constructor(columns: DeviceColumns, region: Region, rows: RowFilter | null, nowMs: number) {
    super(columns, region, rows);
    this.#nowMs = nowMs;
  }

  protected override take(row: number): void {
    const { columns } = this;
    this.counts[statusAt(columns.recordedAtMs(row), columns.speedKmh(row), this.#nowMs)]++;
  }

  protected override keep(): void {
    // It was counted, or is not in the region.
  }
}

function isBehind(head: number, tail: number, otherHead: number, otherTail: number): boolean {
  return head > otherHead || (head === otherHead && tail > otherTail);
}
