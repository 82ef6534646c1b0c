import { distanceM } from '../geo/wgs84.ts';
import { passingNumbers, radixOrder, release } from '../lib/radixOrder.ts';
import type { Steps } from '../lib/workTurns.ts';
import { Device, type DeviceFields, type LatestPosition, type Motion, type NearDevice } from './device.ts';
import { type DeviceColumns, IMEI } from './deviceColumns.memory.ts';
import { PositionIndex } from './index/positionIndex.ts';
import type { SlotFilter } from './index/search.ts';
import { Ages } from './living/ages.memory.ts';
import { Subsets } from './living/subsets.memory.ts';
import { SortedList } from './sortedList.ts';
import { Occupants } from './stays/occupants.memory.ts';
import type { StayCounts } from './stays/stayCounts.ts';
import { TileCounts } from './tiles/tileCounts.memory.ts';
import { type Removal, WorldChanges } from './worldChanges.memory.ts';

/** The version of a world to which nothing was ever written. Memory need not know such a world. */
export const FIRST_VERSION = 1;

/** The devices of one tenant, an account's private ones or an organization's: the indexes of their rows. */
export class World {
  readonly #columns: DeviceColumns;
  /** The version of the world's keys, owners, devices and areas that this memory holds. */
  version = FIRST_VERSION;
  /** By IMEI, as text. */
  readonly devices: SortedList<number, number>;
  /**
   * Devices at the same position are in the order of their IMEIs, since rows differ from pod to pod: so they have the same
   * order on every pod.
   */
  readonly positions: PositionIndex;
  /** What happened to its devices last, for those who follow them. */
  readonly changes: WorldChanges;
  /** Which of its devices are in which areas, of this world or of another that watches it. */
  readonly occupants: Occupants;
  /** Made when somebody filters devices here for the first time. */
  #subsets: Subsets | null = null;
  /** Made when somebody asks for a tile of the map. */
  #tiles: TileCounts | null = null;
  /** Made when somebody follows by age; given up when nobody does. */
  #ages: Ages | null = null;
  /** Searches in progress, with the rows of the devices that were added, changed or removed since they began. */
  readonly #searches = new Map<RowSearch, Set<number>>();

  constructor(columns: DeviceColumns, counts: StayCounts) {
    this.#columns = columns;
    this.devices = new SortedList(itself, (row, other) => columns.compare(row, other));
    this.positions = new PositionIndex(columns);
    this.changes = new WorldChanges(columns);
    this.occupants = new Occupants(columns, counts);
  }

  /** Indexes of the positions of some of its devices, for those who ask for them again and again. */
  get subsets(): Subsets {
    this.#subsets ??= new Subsets(this.#columns, this.devices, this.positions);
    return this.#subsets;
  }

  /** Counts by tiles of the map, which have to be prepared. */
  tiles(nowMs: number): TileCounts {
    this.#tiles ??= new TileCounts(this.#columns, this.devices, nowMs);
    return this.#tiles;
  }

  /** Its devices by the times of their newest points, once the steps are done. */
  *ages(nowMs: number): Steps<Ages> {
    for (;;) {
      this.#ages ??= new Ages(this.#columns, nowMs);
      const ages = this.#ages;
      yield* ages.fill(this.devices, nowMs);
      if (ages === this.#ages) return ages;
    }
  }

  /** Adds a device that is in no world, with its position, its stays and the transactions that changed it last. */
  add(row: number, imei: string, editedXid: number, movedXid: number): void {
    const columns = this.#columns;
    this.devices.put(row);
    this.changes.dropRemoval(imei);
    this.changes.order.put(row, movedXid, editedXid);
    for (const changed of this.#searches.values()) changed.add(row);
    if (columns.hasPosition(row)) this.positions.put(row, columns.lat(row), columns.lng(row));
    this.#subsets?.refresh(row);
    this.#tiles?.put(row);
    this.#ages?.put(row);
    this.occupants.enter(row);
  }

  /** Replaces the fields of a device that stays in this world. */
  edit(row: number, fields: DeviceFields): void {
    this.#willChange(row);
    this.#columns.edit(row, fields);
    this.#subsets?.refresh(row);
    this.#tiles?.touch(row);
  }

  /** Adds many devices that are in no world: see `add`. Uses their rows up. */
  *fill(rows: Uint32Array): Steps<void> {
    const columns = this.#columns;
    const byHead = yield* radixOrder(rows.length, (n) => columns.keyHead(rows[n] as number, IMEI));
    const byImei = passingNumbers(rows.length);
    for (let n = 0; n < byHead.length; n++) {
      const row = rows[byHead[n] as number] as number;
      let at = n;
      // IMEIs that begin with the same 15 digits.
      for (; at > 0 && columns.compare(byImei[at - 1] as number, row) > 0; at--)
        byImei[at] = byImei[at - 1] as number;
      byImei[at] = row;
      if (n % FILLED_PER_STEP === 0) yield;
    }
    release(byHead);
    yield* this.devices.fill(byImei);
    release(byImei);
    yield* this.changes.order.fill(rows);
    yield* this.occupants.fill(rows);
    let positioned = 0;
    for (let n = 0; n < rows.length; n++) {
      const row = rows[n] as number;
      if (columns.hasPosition(row)) rows[positioned++] = row;
      if (n % FILLED_PER_STEP === 0) yield;
    }
    yield* this.positions.fill(rows.subarray(0, positioned));
  }

  /** Takes a device out, and remembers that for those who follow this world; null: that is known otherwise. */
  remove(row: number, removal: Removal | null): void {
    this.#willChange(row);
    this.occupants.leave(row);
    this.#subsets?.remove(row);
    this.#tiles?.take(row);
    this.#ages?.remove(row);
    this.positions.remove(row);
    // A newer device may have its IMEI already.
    if (this.devices.at(this.devices.rank(row)) === row) this.devices.remove(row);
    this.changes.order.remove(row);
    if (removal !== null) this.changes.putRemoval(removal);
  }

  /** Moves a device there. */
  move(row: number, position: LatestPosition, motion: Motion): void {
    this.#willChange(row);
    this.#subsets?.move(row, position);
    if (this.#tiles?.isUnused(position.movedAtMs) === true) this.#tiles = null;
    const before = this.#tiles?.present(row) ?? null;
    this.positions.put(row, position.lat, position.lng);
    this.#columns.move(row, position, motion);
    this.#tiles?.move(row, before);
    this.#ages?.put(row);
    if (this.#ages?.isUnused(position.movedAtMs) === true) this.#ages = null;
    this.changes.order.put(row, motion.xid, this.#columns.editedXid(row));
  }

  /** From here on the search uses this world as it is now. */
  begin(search: RowSearch): void {
    this.#searches.set(search, new Set());
  }

  end(search: RowSearch): void {
    this.#searches.delete(search);
  }

  /** Whether a device was added, changed or removed since the search has begun. It was offered if it was there. */
  hasChanged(search: RowSearch, row: number): boolean {
    return this.#searches.get(search)?.has(row) === true;
  }

  /** Offers to a search that has begun all devices that may be among the nearest, in steps. */
  nearInSteps(search: LongSearch): Steps<void> {
    const changed = this.#searches.get(search) as ReadonlySet<number>;
    return this.positions.nearInSteps(search, changed, (hits) => {
      for (const { slot, distanceM } of hits) search.offer(new Device(this.#columns, slot), distanceM);
    });
  }

  /** A device is about to change: searches in progress see it as it was. */
  #willChange(row: number): void {
    for (const [search, changed] of this.#searches) {
      if (changed.has(row)) continue;
      changed.add(row);
      search.offerPresent(new Device(this.#columns, row));
    }
  }
}

/** Devices that are put in order before other work has its turn: a fraction of a millisecond. */
const FILLED_PER_STEP = 4_096;

function itself(row: number): number {
  return row;
}

/** A search over the devices of a world that takes many turns of the event loop. */
export interface RowSearch {
  /** Offers a device before it changes. */
  offerPresent(device: Device): void;
}

/**
 * The nearest devices so far, in a search that takes many turns of the event loop. The result is as of the moment when
 * the search began: devices are taken as they are found, and a device that is about to move is offered before.
 */
export class LongSearch implements RowSearch {
  readonly lat: number;
  readonly lng: number;
  readonly limit: number;
  /** Devices farther away than this are not accepted any more. */
  reachM: number;
  /** Sorted by distance, then by IMEI. */
  readonly found: NearDevice[] = [];
  readonly #filter: SlotFilter | null;

  constructor(lat: number, lng: number, limit: number, maxM: number, filter: SlotFilter | null = null) {
    this.lat = lat;
    this.lng = lng;
    this.limit = limit;
    this.reachM = maxM;
    this.#filter = filter;
  }

  /** Offers a device with its present position, if it has one and passes the filter. */
  offerPresent(device: Device): void {
    if (this.#filter?.passes(device.row) === false) return;
    const { position } = device;
    if (position !== null) this.offer(device, distanceM(this.lat, this.lng, position.lat, position.lng));
  }

  /** The same device may be offered again, as long as it has not moved. */
  offer(device: Device, offeredM: number): void {
    if (offeredM > this.reachM) return;
    const { found, limit } = this;
    const { imei } = device;
    const at = this.#rankOf(imei, offeredM);
    if (found[at]?.device.imei === imei) return;
    if (at === limit) return;
    found.splice(at, 0, { device: device.taken(), distanceM: offeredM });
    if (found.length > limit) found.pop();
    if (found.length === limit) this.reachM = found[limit - 1]!.distanceM;
  }

  /** How many of the devices found come before it. */
  #rankOf(imei: string, offeredM: number): number {
    let low = 0;
    let high = this.found.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      const { device, distanceM } = this.found[middle]!;
      if (distanceM < offeredM || (distanceM === offeredM && device.imei < imei)) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
