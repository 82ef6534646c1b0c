import type { Worlds } from '../../access/credentials.ts';
import type { Tile } from '../../geo/vectorTile.ts';
import type { Steps } from '../../lib/workTurns.ts';
import { Device, type NearDevice, statusAt } from '../device.ts';
import type { DeviceColumns } from '../deviceColumns.memory.ts';
import { nearestOfSeveral } from '../index/nearestHits.ts';
import type { Region } from '../index/regionWalk.ts';
import type { TileContent } from '../tiles/deviceTile.ts';
import { countedTile, TileSearch, tileRegion } from '../tiles/tileSearch.memory.ts';
import { LongSearch, type World } from '../world.memory.ts';
import { type ShownDevice, shownNow } from '../worldChanges.memory.ts';
import { type DeviceFilter, filterSeen } from './deviceFilter.ts';
import { RegionCount, RegionPage, type RegionSearch, type StatusCounts } from './regionSearch.memory.ts';
import { RowFilter } from './rowFilter.memory.ts';
import { walkRows } from './walkRows.memory.ts';

/** See tileMark. */
export interface TileMark {
  readonly stamps: readonly number[];
  readonly nowMs: number;
}

/** Where the nearest are asked for, how many, and no farther than `maxM`. */
export interface NearQuestion {
  readonly lat: number;
  readonly lng: number;
  readonly limit: number;
  readonly maxM: number;
}

/** Who asks: the account, and the worlds that it sees. */
export interface Asker {
  readonly accountId: number;
  readonly worldIds: Worlds;
}

/**
 * Questions about those devices of a fleet that pass a filter as of a moment, and that the caller sees. Most are answered in
 * steps, since there may be millions of devices.
 */
export class LivingFleet {
  readonly #columns: DeviceColumns;
  readonly #worlds: ReadonlyMap<number, World>;

  constructor(columns: DeviceColumns, worlds: ReadonlyMap<number, World>) {
    this.#columns = columns;
    this.#worlds = worlds;
  }

  /**
   * Shows a page of the devices of one or two worlds that pass, in the order of IMEIs as text. Returns how many pass.
   * Each device is seen once, as it is when its turn comes, and has to be read when it is shown: see Device.
   */
  *list(
    worldIds: Worlds,
    filter: DeviceFilter,
    nowMs: number,
    { offset, limit }: { offset: number; limit: number },
    show: (device: Device) => void,
  ): Steps<number> {
    const rows = this.#rowsOf(worldIds, filter, nowMs);
    let total = 0;
    const lists = this.#worldsOf(worldIds).map(({ devices }) => devices);
    yield* walkRows(this.#columns, lists, (row) => {
      if (!rows.passes(row)) return true;
      if (total >= offset && total - offset < limit) show(new Device(this.#columns, row));
      total++;
      return true;
    });
    return total;
  }

  /** As Fleet.near, of the devices that pass. */
  near(
    { accountId, worldIds }: Asker,
    { lat, lng, limit, maxM }: NearQuestion,
    filter: DeviceFilter,
    nowMs: number,
  ): NearDevice[] | null {
    const columns = this.#columns;
    const rows = this.#rowsOf(worldIds, filter, nowMs);
    const hits = nearestOfSeveral(columns, this.#worldsOf(worldIds), limit, maxM, ({ subsets }, reachM) =>
      subsets.near(accountId, rows, lat, lng, limit, reachM),
    );
    return hits?.map(({ slot, distanceM }) => ({ device: new Device(columns, slot), distanceM })) ?? null;
  }

  /** What `near` would return at the moment of the first step, whatever happens between steps. Looks at all devices. */
  *nearInSteps(
    worldIds: Worlds,
    { lat, lng, limit, maxM }: NearQuestion,
    filter: DeviceFilter,
    nowMs: number,
  ): Steps<NearDevice[]> {
    const columns = this.#columns;
    const rows = this.#rowsOf(worldIds, filter, nowMs);
    const search = new LongSearch(lat, lng, limit, maxM, rows);
    const worlds = this.#worldsOf(worldIds);
    for (const world of worlds) world.begin(search);
    try {
      for (const world of worlds) {
        yield* walkRows(columns, [world.devices], (row) => {
          const northM = Math.abs(columns.lat(row) - lat) * LATITUDE_LEAST_M;
          if (northM <= search.reachM && !world.hasChanged(search, row))
            search.offerPresent(new Device(columns, row));
          return true;
        });
      }
    } finally {
      for (const world of worlds) world.end(search);
    }
    return search.found;
  }

  /**
   * A page of the devices of one or two worlds that are in a region and pass, in the order of IMEIs as text, as of the
   * first step: those behind `afterImei`. `total` counts all of them, on whatever page.
   */
  *within(
    worldIds: Worlds,
    region: Region,
    filter: DeviceFilter | null,
    nowMs: number,
    page: { afterImei: string | null; limit: number },
  ): Steps<{ devices: readonly Device[]; total: number; hasMore: boolean }> {
    const search = new RegionPage(this.#columns, region, this.#rowsOf(worldIds, filter, nowMs), page);
    return yield* this.#search(worldIds, region, search, () => {
      return { devices: search.page(), total: search.total, hasMore: search.hasMore };
    });
  }

  /** Of each status how many devices there are that pass: in a region, as of the first step, or wherever they are. */
  *count(
    worldIds: Worlds,
    region: Region | null,
    filter: DeviceFilter | null,
    nowMs: number,
  ): Steps<StatusCounts> {
    const rows = this.#rowsOf(worldIds, filter, nowMs);
    if (region !== null) {
      const search = new RegionCount(this.#columns, region, rows, nowMs);
      return yield* this.#search(worldIds, region, search, () => search.counts);
    }
    const columns = this.#columns;
    const counts: StatusCounts = { moving: 0, parked: 0, offline: 0, unknown: 0 };
    const lists = this.#worldsOf(worldIds).map(({ devices }) => devices);
    yield* walkRows(columns, lists, (row) => {
      if (rows?.passes(row) === false) return true;
      const isLocated = columns.hasPosition(row);
      counts[isLocated ? statusAt(columns.recordedAtMs(row), columns.speedKmh(row), nowMs) : 'unknown']++;
      return true;
    });
    return counts;
  }

  /**
   * What changes at every change of a device in a tile, of each world; and the second as of which statuses are counted there.
   * Nothing has changed when the last step is over.
   */
  *tileMark(worldIds: readonly number[], tile: Tile, nowMs: number): Steps<TileMark> {
    const worlds = this.#worldsOf(worldIds);
    for (let atMs = nowMs; ; ) {
      const mark = this.tileMarkAtOnce(worldIds, tile, atMs);
      if (mark !== null) return mark;
      for (const world of worlds) yield* world.tiles(atMs).prepare(atMs);
      atMs = Math.max(atMs, ...worlds.map((world) => world.tiles(atMs).nowMs));
    }
  }

  /** The same without steps; null where something has to be counted first. */
  tileMarkAtOnce(worldIds: readonly number[], tile: Tile, nowMs: number): TileMark | null {
    const stamps: number[] = [];
    let secondMs: number | null = null;
    for (const id of worldIds) {
      const tiles = this.#worlds.get(id)?.tiles(nowMs);
      stamps.push(tiles?.stamp(tile) ?? 0);
      if (tiles === undefined) continue;
      if (!tiles.isPrepared(nowMs) || (secondMs ?? tiles.nowMs) !== tiles.nowMs) return null;
      secondMs = tiles.nowMs;
    }
    return { stamps, nowMs: secondMs ?? nowMs };
  }

  /** What a tile shows of the devices that pass, as of a mark that was made just now, and until when if nothing changes. */
  *tile(
    worldIds: Worlds,
    tile: Tile,
    filter: DeviceFilter | null,
    { nowMs }: TileMark,
  ): Steps<{ content: TileContent; untilMs: number }> {
    const rows = this.#rowsOf(worldIds, filter, nowMs);
    if (rows === null) {
      const counts = this.#worldsOf(worldIds).map((world) => world.tiles(nowMs));
      return { content: countedTile(this.#columns, counts, tile), untilMs: Number.POSITIVE_INFINITY };
    }
    const region = tileRegion(tile);
    const search = new TileSearch(this.#columns, region, rows, tile);
    return yield* this.#search(worldIds, region, search, () => {
      return { content: search.content(), untilMs: search.untilMs };
    });
  }

  /**
   * The ids of the devices of one or two worlds that are in a region (null: wherever they are) and pass, in steps; null
   * when there are more than `max`. One that changes between steps may be among them or not.
   */
  *ids(
    worldIds: Worlds,
    region: Region | null,
    filter: DeviceFilter | null,
    nowMs: number,
    max: number,
  ): Steps<number[] | null> {
    const columns = this.#columns;
    const rows = this.#rowsOf(worldIds, filter, nowMs);
    const ids: number[] = [];
    const visit = (row: number): boolean => {
      if (rows?.passes(row) !== false) ids.push(columns.id(row));
      return ids.length <= max;
    };
    for (const world of this.#worldsOf(worldIds)) {
      const steps =
        region === null ? walkRows(columns, [world.devices], visit) : world.positions.within(region, visit);
      for (; ids.length <= max && steps.next().done !== true; ) yield;
      if (ids.length > max) return null;
    }
    return ids;
  }

  /**
   * Visits the ids of the devices of one or two worlds whose newest point has come to be older than one of these ages since
   * `fromMs` and before `toMs`, with that time, in steps. One that changes between steps may be among them or not.
   */
  *aged(
    worldIds: readonly number[],
    agesMs: Iterable<number>,
    fromMs: number,
    toMs: number,
    visit: (id: number, atMs: number) => void,
  ): Steps<void> {
    const columns = this.#columns;
    for (const world of this.#worldsOf(worldIds)) {
      const ages = yield* world.ages(toMs);
      for (const ageMs of agesMs)
        yield* ages.between(fromMs - ageMs, toMs - ageMs, (row) =>
          visit(columns.id(row), columns.recordedAtMs(row) + ageMs),
        );
    }
  }

  /** Those of these devices that are in one of the worlds, as feeds show them. They are read when they are asked: see Device. */
  shown(worldIds: readonly number[], ids: readonly number[]): ShownDevice[] {
    const columns = this.#columns;
    return ids.flatMap((id) => {
      const slot = columns.rowOfId(id);
      return slot === 0 || !worldIds.includes(columns.worldId(slot)) ? [] : [shownNow(columns, slot)];
    });
  }

  *#search<T>(worldIds: readonly number[], region: Region, search: RegionSearch, result: () => T): Steps<T> {
    const worlds = this.#worldsOf(worldIds);
    let hasPaused = false;
    try {
      for (const world of worlds) {
        const steps = world.positions.within(region, (row) => {
          if (!hasPaused || !world.hasChanged(search, row)) search.meet(row);
        });
        while (steps.next().done !== true) {
          search.settle();
          if (!hasPaused) {
            hasPaused = true;
            for (const each of worlds) each.begin(search);
          }
          yield;
        }
      }
      search.settle();
      return result();
    } finally {
      for (const world of worlds) world.end(search);
    }
  }

  #rowsOf(worlds: Worlds, filter: DeviceFilter, nowMs: number): RowFilter;
  #rowsOf(worlds: Worlds, filter: DeviceFilter | null, nowMs: number): RowFilter | null;
  /** The filter for those devices that a caller of these worlds sees; null: every device passes. */
  #rowsOf(worlds: Worlds, filter: DeviceFilter | null, nowMs: number): RowFilter | null {
    const seen = filterSeen(worlds, filter);
    return seen === null ? null : new RowFilter(this.#columns, seen, nowMs);
  }

  /** The steps that make the next questions with this filter fast, where that pays off; they have to be run. */
  due({ accountId, worldIds }: Asker, filter: DeviceFilter, nowMs: number): Steps<void> | null {
    for (const world of this.#worldsOf(worldIds)) {
      const steps = world.subsets.due(accountId, filter, nowMs);
      if (steps !== null) return steps;
    }
    return null;
  }

  #worldsOf(worldIds: readonly number[]): World[] {
    return worldIds.map((id) => this.#worlds.get(id)).filter((world) => world !== undefined);
  }
}

/** Less than a degree of latitude has anywhere, in metres. */
const LATITUDE_LEAST_M = 110_574 * (1 - 1e-6);
