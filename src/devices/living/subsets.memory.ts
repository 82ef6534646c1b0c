import { MINUTE_MS } from '../../lib/time.ts';
import type { Steps } from '../../lib/workTurns.ts';
import type { LatestPosition } from '../device.ts';
import type { DeviceColumns } from '../deviceColumns.memory.ts';
import type { NearHit } from '../index/nearestHits.ts';
import type { PositionIndex } from '../index/positionIndex.ts';
import type { SortedList } from '../sortedList.ts';
import type { DeviceFilter } from './deviceFilter.ts';
import type { RowFilter } from './rowFilter.memory.ts';
import { IN_USE_MS, Subset } from './subset.memory.ts';
import { walkRows } from './walkRows.memory.ts';

/** A search of fewer devices looks at all of them in some ten microseconds. */
const WORLD_LEAST = 500;
/** Subsets of a world. Together they have at most half as many devices as the world. */
const SUBSETS_MAX = 8;
/** Filters whose waste is counted. */
const ASKED_MAX = 64;
/** So many devices may be turned down by a search: as many as it looks at anyway. */
const FREE_REJECTIONS = 32;
/** What a search that was cut counts as. */
const CUT_REJECTIONS = 8_000;
/** A subset is given up when it was not used for so long; for another one, when it was not used for IN_USE_MS. */
const UNUSED_MS = 5 * MINUTE_MS;

/** What one account asks with one filter. */
interface Asked {
  /** How many devices its searches have rejected since the subset was made; without one, since the filter was first used. */
  wasted: number;
  /** The subset that they used last. */
  subset: Subset | null;
}

/**
 * Finds the nearest of the devices of one world that pass a filter. A search among all devices turns down those that do
 * not pass. When the searches with one filter have together turned down as many as it costs to look at all devices, an
 * index of those that may pass is made, in steps, and kept in step with the world while it is used.
 *
 * The accounts that look into a world share the room for such indexes: each may have an equal part of it, and what the
 * others leave free. An index belongs to the account for which it was made, and all of them use it.
 */
export class Subsets {
  readonly #columns: DeviceColumns;
  readonly #devices: SortedList<number, number>;
  readonly #positions: PositionIndex;
  /** By accounts, then by the keys of filters, in the order in which they were asked for first. */
  readonly #asked = new Map<number, Map<string, Asked>>();
  #askedCount = 0;
  /** By the keys of filters. */
  readonly #made = new Map<string, Subset>();
  /** Those that are told of changes, with the one that is being made. */
  #subsets: readonly Subset[] = [];
  #isMaking = false;

  constructor(columns: DeviceColumns, devices: SortedList<number, number>, positions: PositionIndex) {
    this.#columns = columns;
    this.#devices = devices;
    this.#positions = positions;
  }

  /** How many subsets there are. */
  get size(): number {
    return this.#subsets.length;
  }

  /** See PositionIndex. */
  near(
    accountId: number,
    rows: RowFilter,
    lat: number,
    lng: number,
    limit: number,
    maxM: number,
  ): NearHit[] | null {
    const asked = this.#askedBy(accountId, rows.filter.key);
    const subset = this.#made.get(rows.filter.key) ?? null;
    if (subset !== null && asked.subset !== subset) asked.wasted = 0;
    asked.subset = subset;
    let index = this.#positions;
    if (subset?.isGoodAt(rows.nowMs) === true) {
      subset.use(accountId, rows.nowMs);
      index = subset.index;
    }
    if (index.size === 0) return [];
    const hits = index.near(lat, lng, limit, maxM, rows);
    asked.wasted += hits === null ? CUT_REJECTIONS : Math.max(0, index.rejected - FREE_REJECTIONS);
    return hits;
  }

  /** The steps that make or renew the subset of a filter, where that pays off; they have to be run. */
  due(accountId: number, filter: DeviceFilter, nowMs: number): Steps<void> | null {
    const asked = this.#asked.get(accountId)?.get(filter.key);
    const { size } = this.#positions;
    if (asked === undefined || this.#isMaking || size < WORLD_LEAST) return null;
    const subset = this.#made.get(filter.key);
    const isOld = subset !== undefined && nowMs > (subset.fromMs + subset.untilMs) / 2;
    const isWasteful = asked.wasted > (subset === undefined ? size / 16 : size / 2);
    if (!isOld && !isWasteful) return null;
    this.#isMaking = true;
    return this.#make(accountId, asked, filter, nowMs);
  }

  /** A device of the world is about to have this position. */
  move(row: number, position: LatestPosition): void {
    for (const subset of this.#subsets) {
      if (position.movedAtMs - subset.usedAtMs > UNUSED_MS) this.#drop(subset);
      else subset.move(row, position);
      if (subset.index.size > this.#devicesMax) this.#drop(subset);
    }
  }

  /** A device of the world is new or has other fields. */
  refresh(row: number): void {
    for (const subset of this.#subsets) subset.refresh(row);
  }

  /** A device leaves the world. */
  remove(row: number): void {
    for (const subset of this.#subsets) subset.remove(row);
  }

  get #devicesMax(): number {
    return this.#positions.size / 2;
  }

  *#make(accountId: number, asked: Asked, filter: DeviceFilter, nowMs: number): Steps<void> {
    const before = this.#made.get(filter.key);
    const made = new Subset(this.#columns, filter, nowMs, before?.accountId ?? accountId);
    const room = this.#roomFor(made, nowMs);
    let isKept = false;
    try {
      let fits = room > 0;
      if (fits) {
        this.#subsets = [...this.#subsets, made];
        yield* walkRows(this.#columns, [this.#devices], (row) => {
          made.refresh(row);
          fits = made.index.size <= room;
          return fits;
        });
      }
      if (before !== undefined) this.#drop(before);
      isKept = fits && this.#subsets.includes(made) && this.#takeRoom(made);
    } finally {
      // Also when the steps are not run to their end.
      this.#isMaking = false;
      if (!isKept) this.#drop(made);
    }
    if (isKept) this.#made.set(filter.key, made);
    asked.subset = isKept ? made : null;
    // Without room for a subset, many more devices must be rejected before the next try.
    asked.wasted = isKept ? 0 : -16 * this.#positions.size;
  }

  /** How many devices a subset may have: what is free, or what its account lacks of its part. Gives up what is hardly used. */
  #roomFor(made: Subset, nowMs: number): number {
    const others = (): readonly Subset[] => this.#subsets.filter(({ key }) => key !== made.key);
    for (const other of others()) if (nowMs - other.usedAtMs > IN_USE_MS) this.#drop(other);
    const free = this.#devicesMax - sizeOf(others());
    const { most, devices } = this.#partOf([...others(), made]);
    const own = others().filter(({ accountId }) => accountId === made.accountId);
    if (own.length < most) return Math.max(free, devices - sizeOf(own));
    return others().length < SUBSETS_MAX ? free : 0;
  }

  /** Gives up subsets of accounts that have more than their part, until there is room for this one; false: there is none. */
  #takeRoom(made: Subset): boolean {
    while (this.#subsets.length > SUBSETS_MAX || sizeOf(this.#subsets) > this.#devicesMax) {
      const { most, devices } = this.#partOf(this.#subsets);
      const byAccount = Map.groupBy(this.#subsets, ({ accountId }) => accountId);
      byAccount.delete(made.accountId);
      const above = [...byAccount.values()].filter((each) => each.length > most || sizeOf(each) > devices);
      const [largest] = above.sort((a, b) => sizeOf(b) - sizeOf(a) || b.length - a.length);
      if (largest === undefined) return false;
      this.#drop(largest.reduce((oldest, each) => (each.usedAtMs < oldest.usedAtMs ? each : oldest)));
    }
    return true;
  }

  /** What each account may have that has one of these: subsets, and devices in all of them. */
  #partOf(subsets: readonly Subset[]): { most: number; devices: number } {
    const accounts = new Set(subsets.map(({ accountId }) => accountId)).size;
    return {
      most: Math.max(1, Math.floor(SUBSETS_MAX / accounts)),
      devices: this.#devicesMax / accounts,
    };
  }

  #drop(subset: Subset): void {
    this.#subsets = this.#subsets.filter((other) => other !== subset);
    if (this.#made.get(subset.key) === subset) this.#made.delete(subset.key);
  }

  #askedBy(accountId: number, key: string): Asked {
    let own = this.#asked.get(accountId);
    const known = own?.get(key);
    if (known !== undefined) return known;
    if (this.#askedCount === ASKED_MAX) this.#forgetOne();
    own = this.#asked.get(accountId);
    if (own === undefined) {
      own = new Map();
      this.#asked.set(accountId, own);
    }
    const asked: Asked = { wasted: 0, subset: null };
    own.set(key, asked);
    this.#askedCount++;
    return asked;
  }

  /** Forgets the oldest of the account that asks with the most filters: without a subset, if there is one. */
  #forgetOne(): void {
    let [busiest, most]: [number, Map<string, Asked>] = [0, new Map()];
    for (const [accountId, own] of this.#asked) if (own.size > most.size) [busiest, most] = [accountId, own];
    const [first] = most.keys();
    const idle = [...most].find(([key]) => !this.#made.has(key))?.[0] ?? first;
    if (idle === undefined) return;
    most.delete(idle);
    if (most.size === 0) this.#asked.delete(busiest);
    this.#askedCount--;
  }
}

/** How many devices they have together. */
function sizeOf(subsets: readonly Subset[]): number {
  return subsets.reduce((sum, { index }) => sum + index.size, 0);
}
