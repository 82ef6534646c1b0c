import { WorldWatch } from '../changelog/appliedTransactions.memory.ts';
import type { Steps } from '../lib/workTurns.ts';
import type { ChangeQuery } from './changes/changeOrder.ts';
import { type Changed, mergeChanges, type Removal, type ShownDevice } from './changes/worldChanges.ts';
import {
  type Device,
  type DeviceFields,
  type LatestPosition,
  type Motion,
  type NearDevice,
  NO_MOTION,
  type Occupant,
  type OccupyingDevice,
} from './device.ts';
import { mergedPage } from './sortedList.ts';
import type { OccupantState } from './stays/occupants.memory.ts';
import { NO_PACKED_STAYS, type PackedStays, stayCount } from './stays/packedStays.ts';
import { StayCounts } from './stays/stayCounts.ts';
import { FIRST_VERSION, LongSearch, World } from './world.memory.ts';

interface MutableDevice extends OccupyingDevice {
  fields: DeviceFields;
  position: LatestPosition | null;
  /** Its slot in the position index of its world. */
  slot: number;
  /** The revision of the device's state (see Motion) that its stays are from. */
  staysRevision: number;
}

/**
 * All devices of all tenants with their latest positions, in memory. Readers name the worlds that they may see (one or
 * two) first; what is in another world is not found. `putDevice`, `move`, `putStays` and `raiseVersion` are the only
 * mutators. Each is idempotent, so a change may be applied twice.
 */
export class Fleet {
  #byId = new Map<number, MutableDevice>();
  #byImei = new Map<string, MutableDevice>();
  #worlds = new Map<number, World>();
  /** In which worlds something is new. */
  readonly watch = new WorldWatch();
  /** A fleet that is being loaded to replace this one. It receives all changes too. */
  #successor: Fleet | null = null;
  #stays: StayCounts;

  /** `stays`: those of its devices are counted there, with the areas that AreaCatalog puts there. */
  constructor(stays = new StayCounts()) {
    this.#stays = stays;
  }

  /** Counts of the stays of its devices. */
  get stays(): StayCounts {
    return this.#stays;
  }

  get deviceCount(): number {
    return this.#byId.size;
  }

  get positionedCount(): number {
    let count = 0;
    for (const world of this.#worlds.values()) count += world.positions.size;
    return count;
  }

  get worldCount(): number {
    return this.#worlds.size;
  }

  /** From now on `loaded` also receives every device and position that this fleet receives; null: no fleet does. */
  prepareFor(loaded: Fleet | null): void {
    this.#successor = loaded;
  }

  /** Takes over the contents of `loaded` at once; `loaded` must not be used any more. */
  adopt(loaded: Fleet): void {
    this.#byId = loaded.#byId;
    this.#byImei = loaded.#byImei;
    this.#worlds = loaded.#worlds;
    this.#stays = loaded.#stays;
    this.#successor = null;
    this.watch.touchAll();
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
    this.#successor?.putDevice(fields, editedXid);
    const present = this.#byId.get(fields.id);
    if (present === undefined) {
      const device: MutableDevice = {
        fields,
        position: null,
        slot: -1,
        stays: NO_PACKED_STAYS,
        staysRevision: -1,
      };
      this.#byId.set(fields.id, device);
      this.#byImei.set(fields.imei, device);
      this.#addToWorld(device, editedXid, NO_MOTION);
      return;
    }
    if (fields.editedAtMs < present.fields.editedAtMs) return;
    const world = this.#world(present.fields.worldId);
    if (present.fields.worldId === fields.worldId) {
      present.fields = fields;
      // Even if this pod knew the change already: only changes read from the log count as followed.
      this.watch.touch('devices', fields.worldId);
      const isKnown = editedXid !== 0 && world.changes.editedXid(present.slot) === editedXid;
      if (!isKnown) world.changes.edited(present.slot, editedXid);
      return;
    }
    const motion = world.changes.motionOf(present.slot);
    this.#removeFromWorld(present, editedXid, fields.editedAtMs);
    present.fields = fields;
    this.#addToWorld(present, editedXid, motion);
  }

  /**
   * Moves a device unless it already holds a newer position, or a newer message about this one. False when the device is
   * not known here.
   */
  move(deviceId: number, position: LatestPosition, motion: Motion = NO_MOTION): boolean {
    this.#successor?.move(deviceId, position, motion);
    const device = this.#byId.get(deviceId);
    if (device === undefined) return false;
    const { worldId } = device.fields;
    const world = this.#world(worldId);
    const { changes } = world;
    // Even if this pod knew the change already: only changes read from the log count as followed.
    this.watch.touch('devices', worldId);
    if (device.position !== null) {
      const aheadMs = device.position.recordedAtMs - position.recordedAtMs;
      if (aheadMs > 0 || (aheadMs === 0 && changes.revisionOf(device.slot) > motion.revision)) return true;
      // Applied before, by the commit of this pod or an earlier read of the same page.
      const isKnown = aheadMs === 0 && changes.revisionOf(device.slot) === motion.revision;
      if (isKnown && motion.xid !== 0 && changes.movedXid(device.slot) === motion.xid) return true;
    }
    world.willMove(device, device.slot);
    device.position = position;
    world.positions.put(device.slot, position.lat, position.lng);
    changes.moved(device.slot, motion);
    return true;
  }

  /**
   * Gives a device the stays that it has as of a revision of its state, unless those of a newer one are known: position
   * updates without stays may come between. Returns how many stays were compared, in steps: a device may be in thousands
   * of areas.
   */
  *putStays(deviceId: number, stays: PackedStays, revision: number): Steps<number> {
    if (this.#successor !== null) yield* this.#successor.putStays(deviceId, stays, revision);
    const known = this.#byId.get(deviceId);
    if (known === undefined || revision < known.staysRevision) return 0;
    known.staysRevision = revision;
    if (known.stays === stays) return 0;
    const compared = Math.max(stayCount(known.stays), stayCount(stays));
    for (let from: number | null = 0; from !== null; ) {
      const device = this.#byId.get(deviceId);
      if (device?.staysRevision !== revision) break;
      from = this.#world(device.fields.worldId).occupants.replace(device, stays, from);
      if (from !== null) yield;
    }
    return compared;
  }

  /**
   * A device left a world, or was deleted (`isGone`). If it is back in that world, only a deletion has an effect.
   */
  putRemoval(worldId: number, removal: Removal, isGone: boolean): void {
    this.#successor?.putRemoval(worldId, removal, isGone);
    const present = this.#byId.get(removal.deviceId);
    if (present?.fields.worldId === worldId) {
      if (!isGone) return;
      this.#removeFromWorld(present, removal.xid, removal.atMs);
      this.#byId.delete(removal.deviceId);
      if (this.#byImei.get(removal.imei) === present) this.#byImei.delete(removal.imei);
      return;
    }
    const world = this.#world(worldId);
    if (this.#byImei.get(removal.imei)?.fields.worldId === worldId) return;
    world.putRemoval(removal);
    this.watch.touch('devices', worldId);
  }

  /** Forgets who left before this time. */
  forgetRemovals(beforeMs: number): void {
    for (const world of this.#worlds.values()) world.forgetRemovals(beforeMs);
  }

  /** Orders the changes of each world by transaction: after a load. */
  *sortChanges(): Steps<void> {
    for (const world of this.#worlds.values()) {
      world.changes.sort();
      yield;
    }
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

  /** The devices of one or two worlds behind an IMEI, in the order of IMEIs, as `changed` shows them. */
  listed(worldIds: readonly number[], afterImei: string, limit: number): ShownDevice[] {
    // No IMEI lies between this one and itself with a character more.
    const behind = `${afterImei}\0`;
    let offset = 0;
    for (const worldId of worldIds) offset += this.#worlds.get(worldId)?.devices.rank(behind) ?? 0;
    return this.page(worldIds, offset, limit).map((device) => {
      const { slot, fields } = device as MutableDevice;
      const { changes } = this.#world(fields.worldId);
      const [movedXid, editedXid] = [changes.movedXid(slot), changes.editedXid(slot)];
      const xid = Math.max(movedXid, editedXid);
      return changes.shown(device, { slot, xid, id: fields.id, movedXid, editedXid });
    });
  }

  /** See WorldChanges: the highest of these worlds. */
  removalHorizonXid(worldIds: readonly number[]): number {
    return Math.max(0, ...worldIds.map((worldId) => this.#worlds.get(worldId)?.changes.horizonXid ?? 0));
  }

  /** The device with this IMEI in any world: for ingest, never for a caller with a key. */
  anyDevice(imei: string): Device | undefined {
    return this.#byImei.get(imei);
  }

  /** The device with this IMEI if it is in one of `worldIds`. */
  device(worldIds: readonly number[], imei: string): Device | undefined {
    const device = this.#byImei.get(imei);
    return device !== undefined && worldIds.includes(device.fields.worldId) ? device : undefined;
  }

  /** Devices of one or two worlds, ordered by IMEI as text. */
  page(worldIds: readonly number[], offset: number, limit: number): Device[] {
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

  /**
   * The `limit` devices nearest to a point by geodesic distance, no farther than `maxM` metres (Infinity: no bound).
   * They are sorted by distance, then by IMEI. Devices without a position are left out. Null when it would take
   * more than about a millisecond: see `nearInSteps`.
   */
  near(
    worldIds: readonly number[],
    lat: number,
    lng: number,
    limit: number,
    maxM: number,
  ): NearDevice[] | null {
    let found: NearDevice[] = [];
    for (const worldId of worldIds) {
      const world = this.#worlds.get(worldId);
      if (world === undefined || world.positions.size === 0) continue;
      // The last distance found in the first world bounds the search in the second.
      const last = found[limit - 1];
      const reachM = last === undefined ? maxM : Math.min(maxM, last.distanceM);
      const hits = world.positions.near(lat, lng, limit, reachM);
      if (hits === null) return null;
      const near = hits.map(({ slot, distanceM }) => ({ device: world.bySlot[slot] as Device, distanceM }));
      found = found.length === 0 ? near : nearestOf(found, near, limit);
    }
    return found;
  }

  /**
   * What `near` would return at the moment of the first step, even if devices move between steps. For rare queries with
   * thousands of devices at nearly the same distance, such as those on the equator seen from a pole.
   */
  *nearInSteps(
    worldIds: readonly number[],
    lat: number,
    lng: number,
    limit: number,
    maxM: number,
  ): Steps<NearDevice[]> {
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
      world = new World(this.#stays);
      this.#worlds.set(worldId, world);
    }
    return world;
  }

  #addToWorld(device: MutableDevice, editedXid: number, motion: Motion): void {
    const { worldId } = device.fields;
    const world = this.#world(worldId);
    device.slot = world.add(device, editedXid, motion);
    if (device.position !== null) world.positions.put(device.slot, device.position.lat, device.position.lng);
    world.occupants.enter(device);
    this.watch.touch('devices', worldId);
  }

  #removeFromWorld(device: MutableDevice, xid: number, atMs: number): void {
    const { id, imei, worldId } = device.fields;
    const world = this.#world(worldId);
    world.occupants.leave(device);
    world.remove(device, device.slot, { deviceId: id, imei, xid, atMs });
    this.watch.touch('devices', worldId);
  }
}

/** Merges two sorted lists. At equal distances the lower IMEI comes first, so that equal queries have equal results. */
function nearestOf(a: readonly NearDevice[], b: readonly NearDevice[], limit: number): NearDevice[] {
  return [...a, ...b]
    .sort((x, y) => x.distanceM - y.distanceM || (x.device.fields.imei < y.device.fields.imei ? -1 : 1))
    .slice(0, limit);
}
