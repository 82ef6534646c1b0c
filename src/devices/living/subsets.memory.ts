import { MINUTE_MS } from '../../lib/time.ts';
import type { Steps } from '../../lib/workTurns.ts';
import type { LatestPosition } from '../device.ts';
import type { DeviceColumns } from '../deviceColumns.memory.ts';
import type { NearHit } from '../index/nearestHits.ts';
import type { PositionIndex } from '../index/positionIndex.ts';
import type { SortedList } from '../sortedList.ts';
import type { DeviceFilter } from './deviceFilter.ts';
import type { RowFilter } from './rowFilter.memory.ts';
import { Subset } from './subset.memory.ts';
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
/** A subset is given up for another one when it was not used for so long, and without one when nothing uses it. */
const IN_USE_MS = MINUTE_MS;
const UNUSED_MS = 5 * MINUTE_MS;

interface Asked {
  /** How many devices searches have rejected since the subset was made; without one, since the filter was first used. */
  wasted: number;
  subset: Subset | null;
}

/**
 * Finds the nearest of the devices of one world that pass a filter. A search among all devices turns down those that do
 * not pass. When the searches with one filter have together turned down as many as it costs to look at all devices, an
 * index of those that may pass is made, in steps, and kept in step with the world while it is used.
 */
export class Subsets {
  readonly #columns: DeviceColumns;
  readonly #devices: SortedList<number, number>;
  readonly #positions: PositionIndex;
  /** By the keys of filters, in the order in which they were asked for first. */
  readonly #asked = new Map<string, Asked>();
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
  near(rows: RowFilter, lat: number, lng: number, limit: number, maxM: number): NearHit[] | null {
    const asked = this.#askedFor(rows.filter.key);
    const { subset } = asked;
    let index = this.#positions;
    if (subset?.isGoodAt(rows.nowMs) === true) {
      subset.usedAtMs = rows.nowMs;
      index = subset.index;
    }
    if (index.size === 0) return [];
    const hits = index.near(lat, lng, limit, maxM, rows);
    asked.wasted += hits === null ? CUT_REJECTIONS : Math.max(0, index.rejected - FREE_REJECTIONS);
    return hits;
  }

  /** The steps that make or renew the subset of a filter, where that pays off; they have to be run. */
  due(filter: DeviceFilter, nowMs: number): Steps<void> | null {
    const asked = this.#asked.get(filter.key);
    const { size } = this.#positions;
    if (asked === undefined || this.#isMaking || size < WORLD_LEAST) return null;
    const { subset } = asked;
    const isOld = subset !== null && nowMs > (subset.fromMs + subset.untilMs) / 2;
    const isWasteful = asked.wasted > (subset === null ? size / 16 : size / 2);
    if (!isOld && !isWasteful) return null;
    this.#isMaking = true;
    return this.#make(asked, filter, nowMs);
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

  *#make(asked: Asked, filter: DeviceFilter, nowMs: number): Steps<void> {
    const subset = new Subset(this.#columns, filter, nowMs);
    const room = this.#makeRoom(asked, nowMs);
    let fits = room > 0;
    try {
      if (fits) {
        this.#subsets = [...this.#subsets, subset];
        yield* walkRows(this.#columns, [this.#devices], (row) => {
          subset.refresh(row);
          fits = subset.index.size <= room;
          return fits;
        });
      }
    } finally {
      this.#isMaking = false;
    }
    const isKept = fits && this.#subsets.includes(subset);
    if (asked.subset !== null) this.#drop(asked.subset);
    if (!isKept) this.#drop(subset);
    asked.subset = isKept ? subset : null;
    // Without room for a subset, many more devices must be rejected before the next try.
    asked.wasted = isKept ? 0 : -16 * this.#positions.size;
  }

  /** How many devices the subset of `asked` may have. May give up others that are hardly used. */
  #makeRoom(asked: Asked, nowMs: number): number {
    const others = (): readonly Subset[] => this.#subsets.filter((subset) => subset !== asked.subset);
    for (const other of others()) if (nowMs - other.usedAtMs > IN_USE_MS) this.#drop(other);
    if (others().length >= SUBSETS_MAX) return 0;
    return this.#devicesMax - others().reduce((sum, { index }) => sum + index.size, 0);
  }

  #drop(subset: Subset): void {
    this.#subsets = this.#subsets.filter((other) => other !== subset);
    for (const asked of this.#asked.values()) if (asked.subset === subset) asked.subset = null;
  }

  #askedFor(key: string): Asked {
    const known = this.#asked.get(key);
    if (known !== undefined) return known;
    if (this.#asked.size === ASKED_MAX) {
      for (const [oldest, { subset }] of this.#asked) {
        if (subset !== null) continue;
        this.#asked.delete(oldest);
        break;
      }
    }
    const asked: Asked = { wasted: 0, subset: null };
    this.#asked.set(key, asked);
    return asked;
  }
}
