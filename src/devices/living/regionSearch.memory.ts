import { Device, type DeviceStatus, imeiHead, imeiTail, statusAt } from '../device.ts';
import { type DeviceColumns, IMEI } from '../deviceColumns.memory.ts';
import type { Region } from '../index/regionWalk.ts';
import type { RowSearch } from '../world.memory.ts';
import type { RowFilter } from './rowFilter.memory.ts';

/** Rows that are kept as a list. A bit for each row of a large fleet takes longer to make than a short search. */
const LISTED_MAX = 4_096;
/** Rows that are read together: most are in no cache of the processor, which waits for several at a time in a short loop. */
const BATCH = 256;

/**
 * The devices in a region that pass a filter, as of the moment at which the search begins, each once. It knows which it has
 * met, since a device that is about to change is offered whether it was met or not.
 */
export abstract class RegionSearch implements RowSearch {
  total = 0;
  protected readonly columns: DeviceColumns;
  readonly #region: Region;
  readonly #rows: RowFilter | null;
  readonly #batch = new Uint32Array(BATCH);
  #batched = 0;
  /** The rows met so far, while they are few and nothing has changed. */
  #first: number[] = [];
  /** A bit for each row, from then on. */
  #met: Uint8Array | null = null;

  constructor(columns: DeviceColumns, region: Region, rows: RowFilter | null) {
    this.columns = columns;
    this.#region = region;
    this.#rows = rows;
  }

  /** Takes a device that is in the region; at the latest when `settle` is called, before anything changes. */
  meet(row: number): void {
    this.#batch[this.#batched++] = row;
    if (this.#batched === BATCH) this.settle();
  }

  settle(): void {
    const batch = this.#batch;
    const met = this.#batched;
    this.#batched = 0;
    let passing = 0;
    for (let n = 0; n < met; n++) {
      const row = batch[n]!;
      if (this.#rows === null || this.#rows.passes(row)) batch[passing++] = row;
    }
    for (let n = 0; n < passing; n++) this.#mark(batch[n]!);
    this.total += passing;
    this.take(batch, passing);
  }

  offerPresent(device: Device): void {
    const { row } = device;
    const met = this.#met ?? this.#markMet();
    const bits = met[row >>> 3] ?? 0;
    if ((bits & (1 << (row & 7))) !== 0) {
      this.keep(row);
    } else if (this.columns.hasPosition(row)) {
      const isIn = this.#region.contains(this.columns.lat(row), this.columns.lng(row));
      if (isIn) {
        this.meet(row);
        this.settle();
      }
      this.keep(row);
    }
  }

  /** Devices that count: the first `count` of the rows, which are overwritten later. */
  protected abstract take(rows: Uint32Array, count: number): void;

  /** Such a device is about to change. */
  protected abstract keep(row: number): void;

  #mark(row: number): void {
    if (this.#met !== null) this.#setMet(this.#met, row);
    else if (this.#first.push(row) === LISTED_MAX) this.#markMet();
  }

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

/** The first of them behind an IMEI, in the order of IMEIs as text: at most `limit`. */
export class RegionPage extends RegionSearch {
  readonly #limit: number;
  #behind = 0;
  readonly #heads = new Float64Array(BATCH);
  readonly #afterHead: number;
  readonly #afterTail: number;
  readonly #first: FirstImeis;
  /** Devices that have changed, as they were. */
  readonly #kept = new Map<number, Device>();

  /** `afterImei`: null for the first page. */
  constructor(
    columns: DeviceColumns,
    region: Region,
    rows: RowFilter | null,
    { afterImei, limit }: { afterImei: string | null; limit: number },
  ) {
    super(columns, region, rows);
    this.#limit = limit;
    this.#first = new FirstImeis(columns, limit);
    this.#afterHead = afterImei === null ? -1 : imeiHead(afterImei);
    this.#afterTail = afterImei === null ? 0 : imeiTail(afterImei);
  }

  get hasMore(): boolean {
    return this.#behind > this.#limit;
  }

  /** To be called once when the search is over, before devices change. */
  page(): Device[] {
    return this.#first
      .takeInOrder()
      .map((row) => this.#kept.get(row) ?? new Device(this.columns, row).taken());
  }

  protected override take(rows: Uint32Array, count: number): void {
    const heads = this.#heads;
    for (let n = 0; n < count; n++) heads[n] = this.columns.keyHead(rows[n]!, IMEI);
    for (let n = 0; n < count; n++) {
      const [row, head] = [rows[n]!, heads[n]!];
      if (head < this.#afterHead || (head === this.#afterHead && !this.#isBehind(row))) continue;
      this.#behind++;
      this.#first.offer(row, head);
    }
  }

  #isBehind(row: number): boolean {
    return this.columns.keyTail(row, IMEI) > this.#afterTail;
  }

  protected override keep(row: number): void {
    if (this.#first.has(row)) this.#kept.set(row, new Device(this.columns, row).taken());
  }
}

/** The rows with the lowest IMEIs of those that are offered: a heap in arrays, whose first is the last of them. */
class FirstImeis {
  readonly #columns: DeviceColumns;
  readonly #rows: Uint32Array;
  /** See imeiHead. Few IMEIs have the same, and their rows are compared. */
  readonly #heads: Float64Array;
  #size = 0;

  constructor(columns: DeviceColumns, most: number) {
    this.#columns = columns;
    this.#rows = new Uint32Array(most);
    this.#heads = new Float64Array(most);
  }

  has(row: number): boolean {
    const at = this.#rows.indexOf(row);
    return at !== -1 && at < this.#size;
  }

  offer(row: number, head: number): void {
    if (this.#size < this.#rows.length) this.#rise(this.#size++, row, head);
    else if (this.#isBefore(row, head, 0)) this.#sink(row, head);
  }

  /** Empties it. */
  takeInOrder(): number[] {
    const rows: number[] = new Array(this.#size).fill(0);
    while (this.#size > 0) {
      const last = --this.#size;
      rows[last] = this.#rows[0]!;
      this.#sink(this.#rows[last]!, this.#heads[last]!);
    }
    return rows;
  }

  /** Whether an IMEI comes before the one at a place. */
  #isBefore(row: number, head: number, at: number): boolean {
    const other = this.#heads[at]!;
    return head < other || (head === other && this.#columns.compare(row, this.#rows[at]!) < 0);
  }

  /** Puts a row in the last place, or above. */
  #rise(last: number, row: number, head: number): void {
    let at = last;
    while (at > 0) {
      const above = (at - 1) >> 1;
      if (this.#isBefore(row, head, above)) break;
      this.#set(at, this.#rows[above]!, this.#heads[above]!);
      at = above;
    }
    this.#set(at, row, head);
  }

  /** Puts a row in the first place, or below. */
  #sink(row: number, head: number): void {
    let at = 0;
    for (let below = 1; below < this.#size; below = 2 * at + 1) {
      const other = below + 1;
      if (other < this.#size && this.#isBefore(this.#rows[below]!, this.#heads[below]!, other)) below = other;
      if (!this.#isBefore(row, head, below)) break;
      this.#set(at, this.#rows[below]!, this.#heads[below]!);
      at = below;
    }
    this.#set(at, row, head);
  }

  #set(at: number, row: number, head: number): void {
    this.#rows[at] = row;
    this.#heads[at] = head;
  }
}

/** How many devices there are, and of which statuses. */
export type StatusCounts = Record<DeviceStatus, number>;

/** Of each status how many there are. */
export class RegionCount extends RegionSearch {
  readonly counts: StatusCounts = { moving: 0, parked: 0, offline: 0, unknown: 0 };
  readonly #nowMs: number;
  readonly #recordedAtMs = new Float64Array(BATCH);
  readonly #speedKmh = new Float64Array(BATCH);

  constructor(columns: DeviceColumns, region: Region, rows: RowFilter | null, nowMs: number) {
    super(columns, region, rows);
    this.#nowMs = nowMs;
  }

  protected override take(rows: Uint32Array, count: number): void {
    const { columns } = this;
    for (let n = 0; n < count; n++) {
      this.#recordedAtMs[n] = columns.recordedAtMs(rows[n]!);
      this.#speedKmh[n] = columns.speedKmh(rows[n]!);
    }
    for (let n = 0; n < count; n++)
      this.counts[statusAt(this.#recordedAtMs[n]!, this.#speedKmh[n]!, this.#nowMs)]++;
  }

  protected override keep(): void {
    // It was counted, or is not in the region.
  }
}
