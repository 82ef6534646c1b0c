import { SparseRows } from '../../lib/numberPages.ts';
import { MINUTE_MS } from '../../lib/time.ts';
import { type LatestPosition, onlineUntilMs, statusAt } from '../device.ts';
import type { DeviceColumns } from '../deviceColumns.memory.ts';
import { PositionIndex } from '../index/positionIndex.ts';
import type { IndexedSlots } from '../index/trie.ts';
import type { DeviceFilter } from './deviceFilter.ts';
import { RowFilter } from './rowFilter.memory.ts';

/**
 * How long a subset by time is good for. A device becomes offline without sending anything, at the earliest ten minutes after
 * its last point. So a subset of offline devices also holds those that become offline before its end. As that is less than
 * ten minutes ahead, devices that keep sending are not in it.
 */
const GOOD_FOR_MS = 5 * MINUTE_MS;
/** One that was not used for so long is hardly used. */
export const IN_USE_MS = MINUTE_MS;

/**
 * An index of the positions of those devices of a world that may pass a filter at some moment until `untilMs`: all that
 * will, and a few that no longer do. It is told of every change of the world.
 */
export class Subset {
  readonly index: PositionIndex;
  /** The first and the last moment for which it has all devices that pass. */
  readonly fromMs: number;
  readonly untilMs: number;
  /** Whose it is. When that account has not used it for IN_USE_MS, it becomes that of another one that does. */
  accountId: number;
  /** When it was last used: by whomever, and by its account. */
  usedAtMs: number;
  #ownUseAtMs: number;
  readonly #columns: DeviceColumns;
  readonly #slots: SubsetSlots;
  readonly #filter: DeviceFilter;
  readonly #rows: RowFilter;

  /** It is empty: the devices of the world have to be refreshed. */
  constructor(columns: DeviceColumns, filter: DeviceFilter, nowMs: number, accountId: number) {
    const isTimeless = filter.statuses === null && filter.maxAgeMs === Number.POSITIVE_INFINITY;
    this.#columns = columns;
    this.#filter = filter;
    this.#rows = new RowFilter(columns, filter, nowMs);
    this.#slots = new SubsetSlots(columns);
    this.index = new PositionIndex(this.#slots);
    this.fromMs = isTimeless ? Number.NEGATIVE_INFINITY : nowMs;
    this.untilMs = isTimeless ? Number.POSITIVE_INFINITY : nowMs + GOOD_FOR_MS;
    this.accountId = accountId;
    this.usedAtMs = nowMs;
    this.#ownUseAtMs = nowMs;
  }

  /** That of its filter. */
  get key(): string {
    return this.#filter.key;
  }

  /** It is about to be searched for an account. */
  use(accountId: number, nowMs: number): void {
    this.usedAtMs = nowMs;
    if (accountId !== this.accountId && nowMs - this.#ownUseAtMs <= IN_USE_MS) return;
    this.accountId = accountId;
    this.#ownUseAtMs = nowMs;
  }

  isGoodAt(nowMs: number): boolean {
    return nowMs >= this.fromMs && nowMs <= this.untilMs;
  }

  /** A device of the world is about to have this position. */
  move(row: number, { lat, lng, recordedAtMs, speedKmh }: LatestPosition): void {
    if (!this.#mayPass(row, recordedAtMs, speedKmh)) {
      this.index.remove(row);
      return;
    }
    this.index.put(row, lat, lng);
    this.#slots.settle();
  }

  /** A device of the world is new or has other fields. */
  refresh(row: number): void {
    const columns = this.#columns;
    if (columns.hasPosition(row) && this.#mayPass(row, columns.recordedAtMs(row), columns.speedKmh(row)))
      this.index.put(row, columns.lat(row), columns.lng(row));
    else this.index.remove(row);
    this.#slots.settle();
  }

  /** A device leaves the world. */
  remove(row: number): void {
    this.index.remove(row);
  }

  /** Whether a device with this newest point passes at some moment of those that the subset is for. */
  #mayPass(row: number, recordedAtMs: number, speedKmh: number): boolean {
    const { statuses, maxAgeMs } = this.#filter;
    if (!this.#rows.passesGroups(row)) return false;
    if (this.fromMs - recordedAtMs > maxAgeMs) return false;
    return (
      statuses === null ||
      statuses.has(statusAt(recordedAtMs, speedKmh, this.fromMs)) ||
      (statuses.has('offline') && onlineUntilMs(recordedAtMs, speedKmh) < this.untilMs)
    );
  }
}

/** What a second index keeps of rows: their places in it. Their positions are in the columns. */
class SubsetSlots implements IndexedSlots {
  readonly #columns: DeviceColumns;
  readonly #entries = new SparseRows();
  /** The row that gets a position which the columns do not have yet. */
  #placed = -1;
  #lat = 0;
  #lng = 0;

  constructor(columns: DeviceColumns) {
    this.#columns = columns;
  }

  lat(row: number): number {
    return row === this.#placed ? this.#lat : this.#columns.lat(row);
  }

  lng(row: number): number {
    return row === this.#placed ? this.#lng : this.#columns.lng(row);
  }

  setLatLng(row: number, lat: number, lng: number): void {
    this.#placed = row;
    this.#lat = lat;
    this.#lng = lng;
  }

  /** From here on positions are those of the columns. */
  settle(): void {
    this.#placed = -1;
  }

  entry(row: number): number {
    return this.#entries.get(row);
  }

  setEntry(row: number, entry: number): void {
    this.#entries.set(row, entry);
  }

  compare(row: number, other: number): number {
    return this.#columns.compare(row, other);
  }
}
