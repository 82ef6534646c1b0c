import { isUnseen, type Worlds } from '../access/credentials.ts';
import { WorldWatch } from '../changelog/appliedTransactions.memory.ts';
import { invariant } from '../lib/errors.ts';
import { type PassingNumbers, passingNumbers, release } from '../lib/radixOrder.ts';
import { Pace, type Steps } from '../lib/workTurns.ts';
import type { ChangeQuery } from './changeOrder.ts';
import {
  Device,
  type DeviceFields,
  deviceJson,
  type LatestPosition,
  type Motion,
  type NearDevice,
  NO_MOTION,
  type Occupant,
} from './device.ts';
import { DeviceColumns, PROBE } from './deviceColumns.memory.ts';
import type { PassingDevice } from './deviceRows.sql.ts';
import { DeviceTexts } from './deviceTexts.memory.ts';
import { FleetReload } from './fleetReload.memory.ts';
import { nearestOfSeveral } from './index/nearestHits.ts';
import { LivingFleet } from './living/livingFleet.memory.ts';
import { mergedPage } from './sortedList.ts';
import type { OccupantState } from './stays/occupants.memory.ts';
import { type PackedStays, stayCount } from './stays/packedStays.ts';
import { StayCounts } from './stays/stayCounts.ts';
import { FIRST_VERSION, LongSearch, World } from './world.memory.ts';
import {
  type Changed,
  mergeChanges,
  type Removal,
  type ShownDevice,
  shownNow,
} from './worldChanges.memory.ts';

/**
 * All devices of all tenants with their latest positions, in memory. Readers name the worlds that they may see (one or
 * two) first; what is in another world is not found. `putDevice`, `move`, `putStays`, `putRemoval` and
 * `raiseVersion` are the only mutators, besides a reload. Each is idempotent, so a change may be applied twice.
 */
export class Fleet {
  readonly #columns = new DeviceColumns();
  readonly #worlds = new Map<number, World>();
  /** How many devices are in no index yet, by world. */
  readonly #loaded = new Map<number, number>();
  /** Questions about all of its devices. */
  readonly living = new LivingFleet(this.#columns, this.#worlds);
  /** The JSON of its devices, as lists show it. */
  readonly texts = new DeviceTexts(deviceJson, TEXT_SLOTS);
  /** In which worlds something is new. */
  readonly watch = new WorldWatch();
  /** Counts of the stays of its devices. */
  readonly stays: StayCounts;

  /** `stays`: those of its devices are counted there, with the areas that AreaCatalog puts there. */
  constructor(stays = new StayCounts()) {
    this.stays = stays;
  }

  get deviceCount(): number {
    return this.#columns.size;
  }

  get positionedCount(): number {
    let count = 0;
    for (const world of this.#worlds.values()) count += world.positions.size;
    return count;
  }

  get worldCount(): number {
    return this.#worlds.size;
  }

  /** Begins to make it as a snapshot of Postgres is, while it is in use; `isNewer`: see FleetReload. */
  reload(isNewer: (xid: number) => boolean): FleetReload {
    const world = (worldId: number): World => this.#world(worldId);
    return new FleetReload({ fleet: this, columns: this.#columns, worlds: this.#worlds, world }, isNewer);
  }

  worldVersion(worldId: number): number {
    return this.#worlds.get(worldId)?.version ?? FIRST_VERSION;
  }

  raiseVersion(worldId: number, version: number): void {
    const world = this.#world(worldId);
    if (version > world.version) world.version = version;
  }

  /**
   * Adds a device or replaces its fields, unless this edit is older than the one it has. Its position stays. When its
   * world has changed, it moves to that world.
   */
  putDevice(fields: DeviceFields, editedXid = 0): void {
    const columns = this.#columns;
    const { id, imei, worldId, editedAtMs } = fields;
    const row = columns.rowOfId(id);
    if (row === 0) {
      this.#world(worldId).add(columns.add(fields), imei, editedXid, 0);
      this.watch.touch('devices', worldId);
      return;
    }
    if (editedAtMs < columns.editedAtMs(row)) return;
    const before = columns.worldId(row);
    // Even if this pod knew the change already: only changes read from the log count as followed.
    this.watch.touch('devices', worldId);
    if (before === worldId) {
      this.#world(worldId).edit(row, fields);
      const isKnown = editedXid !== 0 && columns.editedXid(row) === editedXid;
      if (!isKnown) this.#world(worldId).changes.order.put(row, columns.movedXid(row), editedXid);
      return;
    }
    const movedXid = columns.movedXid(row);
    this.#world(before).remove(row, { deviceId: id, imei, xid: editedXid, atMs: editedAtMs });
    this.watch.touch('devices', before);
    columns.edit(row, fields);
    this.#world(worldId).add(row, imei, editedXid, movedXid);
  }

  /**
   * Moves a device unless it already holds a newer position, or a newer message about this one. False when the device is
   * not known here.
   */
  move(deviceId: number, position: LatestPosition, motion: Motion = NO_MOTION): boolean {
    const columns = this.#columns;
    const row = columns.rowOfId(deviceId);
    if (row === 0) return false;
    const worldId = columns.worldId(row);
    // Even if this pod knew the change already: only changes read from the log count as followed.
    this.watch.touch('devices', worldId);
    if (columns.hasPosition(row)) {
      const aheadMs = columns.recordedAtMs(row) - position.recordedAtMs;
      const revision = columns.revision(row);
      if (aheadMs > 0 || (aheadMs === 0 && revision > motion.revision)) return true;
      // Applied before, by the commit of this pod or an earlier read of the same page.
      const isKnown = aheadMs === 0 && revision === motion.revision;
      if (isKnown && motion.xid !== 0 && columns.movedXid(row) === motion.xid) return true;
    }
    this.#world(worldId).move(row, position, motion);
    return true;
  }

  /**
   * Gives a device the stays that it has as of a revision of its state, unless those of a newer one are known: position
   * updates without stays may come between. Returns how many stays were compared, in steps: a device may be in thousands
   * of areas.
   */
  *putStays(deviceId: number, stays: PackedStays, revision: number): Steps<number> {
    const known = this.#columns.rowOfId(deviceId);
    if (known === 0 || revision < this.#columns.staysRevision(known)) return 0;
    this.#columns.setStaysRevision(known, revision);
    const before = this.#columns.stays(known);
    if (before === stays) return 0;
    const compared = Math.max(stayCount(before), stayCount(stays));
    for (let from: number | null = 0; from !== null; ) {
      const row = this.#columns.rowOfId(deviceId);
      if (row === 0 || this.#columns.staysRevision(row) !== revision) break;
      from = this.#world(this.#columns.worldId(row)).occupants.replace(row, stays, from);
      if (from !== null) yield;
    }
    return compared;
  }

  /**
   * A device left a world, or was deleted (`isGone`). If it is back in that world, only a deletion has an effect.
   */
  putRemoval(worldId: number, removal: Removal, isGone: boolean): void {
    const columns = this.#columns;
    const row = columns.rowOfId(removal.deviceId);
    if (row !== 0 && columns.worldId(row) === worldId) {
      if (!isGone) return;
      this.#world(worldId).remove(row, removal);
      columns.remove(row);
    } else {
      const namesake = columns.rowOfImei(removal.imei);
      if (namesake !== 0 && columns.worldId(namesake) === worldId) return;
      this.#world(worldId).changes.putRemoval(removal);
    }
    this.watch.touch('devices', worldId);
  }

  /** Whether this device was deleted as far as is known: no device has its id again. */
  isDeleted({ id, imei, worldId }: DeviceFields): boolean {
    return this.#columns.rowOfId(id) === 0 && (this.#worlds.get(worldId)?.changes.hasLeft(id, imei) ?? false);
  }

  /** Forgets who left before this time. */
  forgetRemovals(beforeMs: number): void {
    for (const world of this.#worlds.values()) world.changes.forgetRemovals(beforeMs);
  }

  /**
   * Adds a device that is not there, with its position and stays. Nothing finds it before `index`: many devices are loaded
   * faster that way than one by one.
   */
  load(device: PassingDevice): void {
    this.#columns.load(device);
    this.#loaded.set(device.worldId, (this.#loaded.get(device.worldId) ?? 0) + 1);
  }

  /** Puts all that was loaded into the lists and indexes of its worlds. */
  *index(): Steps<void> {
    const ends = new Map<number, number>();
    let end = 0;
    for (const [worldId, count] of this.#loaded) {
      ends.set(worldId, end);
      end += count;
    }
    const rows = yield* this.#loadedRows(ends, end);
    yield* this.#columns.makeFound(rows);
    for (const [worldId, count] of this.#loaded) {
      const worldEnd = ends.get(worldId) as number;
      yield* this.#world(worldId).fill(rows.subarray(worldEnd - count, worldEnd));
      this.watch.touch('devices', worldId);
    }
    release(rows);
    this.#loaded.clear();
  }

  /**
   * The rows that are in no index, world by world. `ends`: where those of each begin, and afterwards where they end. They
   * are found here and not kept in lists: growing lists would leave 20 bytes of garbage for each device after a start.
   */
  *#loadedRows(ends: Map<number, number>, length: number): Steps<PassingNumbers> {
    const columns = this.#columns;
    const rows = passingNumbers(length);
    for (let row = 1; row < columns.end; row++) {
      if (columns.isDevice(row) && columns.segment(row) === 0) {
        const worldId = columns.worldId(row);
        const at = ends.get(worldId) as number;
        rows[at] = row;
        ends.set(worldId, at + 1);
      }
      if (row % ROWS_PER_STEP === 0) yield;
    }
    return rows;
  }

  /**
   * Changes of one or two worlds by transaction, then by id; one more than the limit where there are more.
   */
  changed(worldIds: readonly number[], query: ChangeQuery): Changed[] {
    const pages = worldIds.map((worldId) => this.#worlds.get(worldId)?.changes.page(query) ?? []);
    const [first = [], second = []] = pages;
    if (second.length === 0) return first;
    return mergeChanges(first, second).slice(0, query.limit + 1);
  }

  /**
   * The devices of one or two worlds behind an IMEI, in the order of IMEIs, as `changed` shows them: those of any group, so
   * that a step is never longer. The caller leaves out what is not seen (isUnseen).
   */
  listed(worldIds: readonly number[], afterImei: string, limit: number): ShownDevice[] {
    const columns = this.#columns;
    columns.probeBehind(afterImei);
    let offset = 0;
    for (const worldId of worldIds) offset += this.#worlds.get(worldId)?.devices.rank(PROBE) ?? 0;
    return this.#rows(worldIds, offset, limit).map((slot) => shownNow(columns, slot));
  }

  /** See WorldChanges: the highest of these worlds. */
  removalHorizonXid(worldIds: readonly number[]): number {
    return Math.max(0, ...worldIds.map((worldId) => this.#worlds.get(worldId)?.changes.horizonXid ?? 0));
  }

  /** The device with this IMEI in any world: for ingest, never for a caller with a key. */
  anyDevice(imei: string): Device | undefined {
    const row = this.#columns.rowOfImei(imei);
    return row === 0 ? undefined : new Device(this.#columns, row).taken();
  }

  /** The id of `anyDevice`, and its world. */
  idOf(imei: string): number | undefined {
    const row = this.#columns.rowOfImei(imei);
    return row === 0 ? undefined : this.#columns.id(row);
  }

  worldOf(imei: string): number | undefined {
    const row = this.#columns.rowOfImei(imei);
    return row === 0 ? undefined : this.#columns.worldId(row);
  }

  /** The device with this IMEI if a caller of these worlds sees it. */
  device(worlds: Worlds, imei: string): Device | undefined {
    return this.has(worlds, imei) ? this.anyDevice(imei) : undefined;
  }

  has(worlds: Worlds, imei: string): boolean {
    const row = this.#columns.rowOfImei(imei);
    if (row === 0 || !worlds.includes(this.#columns.worldId(row))) return false;
    return worlds.groups === undefined || !isUnseen(worlds, this.#columns.groups(row));
  }

  /**
   * Devices of one or two worlds, ordered by IMEI as text. They are read when they are asked: see Device. A caller that sees
   * some groups only asks LivingFleet, here and below.
   */
  page(worldIds: Worlds, offset: number, limit: number): Device[] {
    seeAll(worldIds);
    return this.#rows(worldIds, offset, limit).map((row) => new Device(this.#columns, row));
  }

  #rows(worldIds: readonly number[], offset: number, limit: number): number[] {
    const lists = worldIds.map((id) => this.#worlds.get(id)?.devices).filter((list) => list !== undefined);
    return mergedPage(lists, offset, limit);
  }

  /**
   * Those of the devices of one or two worlds that are in an area, by the beginning of their stays, then by IMEI: a page,
   * and how many there are.
   */
  occupants(
    worldIds: readonly number[],
    areaId: number,
    state: OccupantState,
    { offset, limit }: { offset: number; limit: number },
  ): { page: Occupant[]; total: number } {
    const lists = worldIds.flatMap((id) => this.#worlds.get(id)?.occupants.lists(areaId, state) ?? []);
    return {
      page: mergedPage(lists, offset, limit),
      total: lists.reduce((sum, list) => sum + list.size, 0),
    };
  }

  /** The same for a caller that is limited to groups, in steps: one that comes or goes between them is counted or not. */
  *occupantsSeen(
    worlds: Worlds,
    areaId: number,
    state: OccupantState,
    { offset, limit }: { offset: number; limit: number },
  ): Steps<{ page: Occupant[]; total: number }> {
    const page: Occupant[] = [];
    const pace = new Pace();
    let total = 0;
    for (let at = 0; ; at += OCCUPANTS_AT_ONCE) {
      const part = this.occupants(worlds, areaId, state, { offset: at, limit: OCCUPANTS_AT_ONCE });
      const seen = part.page.filter(({ device }) => !isUnseen(worlds, this.#columns.groups(device.row)));
      const asked = seen.slice(Math.max(0, offset - total), Math.max(0, offset + limit - total));
      for (const { device } of asked) device.taken();
      page.push(...asked);
      total += seen.length;
      if (part.page.length < OCCUPANTS_AT_ONCE) return { page, total };
      if (pace.isDue()) yield* pace.pause();
    }
  }

  /**
   * The `limit` devices with a position that are nearest to a point, by geodesic distance up to `maxM` metres, then by IMEI; read
   * when they are asked (see Device). Null when it would take more than about a millisecond: see `nearInSteps`.
   */
  near(worldIds: Worlds, lat: number, lng: number, limit: number, maxM: number): NearDevice[] | null {
    seeAll(worldIds);
    const columns = this.#columns;
    const hits = nearestOfSeveral(columns, worldIds, limit, maxM, (worldId, reachM) => {
      const positions = this.#worlds.get(worldId)?.positions;
      return positions === undefined ? [] : positions.near(lat, lng, limit, reachM);
    });
    return hits?.map(({ slot, distanceM }) => ({ device: new Device(columns, slot), distanceM })) ?? null;
  }

  /**
   * What `near` would return at the moment of the first step, even if devices move between steps. For rare queries with
   * thousands of devices at nearly the same distance, such as those on the equator seen from a pole.
   */
  *nearInSteps(worldIds: Worlds, lat: number, lng: number, limit: number, maxM: number): Steps<NearDevice[]> {
    seeAll(worldIds);
    const search = new LongSearch(lat, lng, limit, maxM);
    const worlds = worldIds
      .map((worldId) => this.#worlds.get(worldId))
      .filter((world) => world !== undefined);
    for (const world of worlds) world.begin(search);
    try {
      for (const world of worlds) yield* world.nearInSteps(search);
    } finally {
      for (const world of worlds) world.end(search);
    }
    return search.found;
  }

  #world(worldId: number): World {
    let world = this.#worlds.get(worldId);
    if (world === undefined) {
      world = new World(this.#columns, this.stays);
      this.#worlds.set(worldId, world);
    }
    return world;
  }
}

/** With every one in use about 60 MB. */
const TEXT_SLOTS = 2 ** 17;

/** Answers about all devices are not for those who see some of them. */
function seeAll({ groups }: Worlds): void {
  invariant(groups === undefined, 'a caller is limited to groups');
}

/** Devices of an area, and rows, between two looks at the clock: a fraction of a millisecond. */
const OCCUPANTS_AT_ONCE = 128;
const ROWS_PER_STEP = 8_192;
