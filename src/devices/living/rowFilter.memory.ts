import { readNames } from '../device.ts';
import type { DeviceColumns } from '../deviceColumns.memory.ts';
import type { SlotFilter } from '../index/search.ts';
import { type DeviceFilter, foldedText, passesGroups, passesTime } from './deviceFilter.ts';

/** Lists of groups whose answers are kept: most devices have one of a few. */
const KNOWN_GROUPS_MAX = 4_096;

/** A filter as of one moment, asked of devices in memory by their rows. */
export class RowFilter implements SlotFilter {
  /** A row that is in no cache of the processor: a tenth of a microsecond. */
  readonly work = 0.25;
  readonly filter: DeviceFilter;
  readonly nowMs: number;
  readonly #columns: DeviceColumns;
  readonly #asksTime: boolean;
  /** Whether devices with these groups pass. Memory has each list of groups once. */
  readonly #knownGroups = new Map<readonly string[], boolean>();

  constructor(columns: DeviceColumns, filter: DeviceFilter, nowMs: number) {
    this.#columns = columns;
    this.filter = filter;
    this.nowMs = nowMs;
    this.#asksTime = filter.statuses !== null || filter.maxAgeMs !== Number.POSITIVE_INFINITY;
  }

  passes(row: number): boolean {
    const { search } = this.filter;
    return (
      (!this.#asksTime || this.#passesTime(row)) &&
      this.passesGroups(row) &&
      (search === null || this.#passesSearch(search, row))
    );
  }

  /** The part of it that time does not change. */
  passesGroups(row: number): boolean {
    const { groups, seen } = this.filter;
    return (groups === null && seen === null) || this.#haveGroups(this.#columns.groups(row));
  }

  #passesTime(row: number): boolean {
    const columns = this.#columns;
    return passesTime(this.filter, columns.recordedAtMs(row), columns.speedKmh(row), this.nowMs);
  }

  #haveGroups(groups: readonly string[]): boolean {
    const known = this.#knownGroups.get(groups);
    if (known !== undefined) return known;
    const passes = passesGroups(this.filter, groups);
    if (this.#knownGroups.size === KNOWN_GROUPS_MAX) this.#knownGroups.clear();
    this.#knownGroups.set(groups, passes);
    return passes;
  }

  #passesSearch(search: string, row: number): boolean {
    const { imei, name, plate } = readNames(this.#columns.names(row));
    return (
      imei.startsWith(search) ||
      (name !== null && foldedText(name).includes(search)) ||
      (plate !== null && foldedText(plate).includes(search))
    );
  }
}
