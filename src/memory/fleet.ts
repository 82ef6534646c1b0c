import type { Steps } from '../base/workTurns.ts';
import type { DeviceFields, LatestPosition } from '../engine/device.ts';
import type { Device, NearDevice } from './device.ts';
import { LongSearch } from './longSearch.ts';
import { mergedPage } from './sortedList.ts';
import { FIRST_VERSION, World } from './world.ts';

interface MutableDevice extends Device {
  fields: DeviceFields;
  position: LatestPosition | null;
  /** Its number in the position index of its world. */
  slot: number;
}

/**
 * All devices of all tenants, in memory: the present of the fleet. Readers name the worlds they may see (one or
 * two) first; what lies in another world is not found. `putDevice`, `move` and `raiseVersion` are the only mutators
 * and each is idempotent, so that a change may be applied twice.
 */
export class Fleet {
  #byId = new Map<number, MutableDevice>();
  #byImei = new Map<string, MutableDevice>();
  #worlds = new Map<number, World>();
  /** Is told of what comes in while it is made ready to take this one's place. */
  #successor: Fleet | null = null;

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

  /** From now on `loaded`, or nobody, is told of every device and position that this one is told of. */
  prepareFor(loaded: Fleet | null): void {
    this.#successor = loaded;
  }

  /** Holds what `loaded` holds, from one moment to the next; `loaded` is not to be used any more. */
  adopt(loaded: Fleet): void {
    this.#byId = loaded.#byId;
    this.#byImei = loaded.#byImei;
    this.#worlds = loaded.#worlds;
    this.#successor = null;
  }

  worldVersion(worldId: number): number {
    return this.#worlds.get(worldId)?.version ?? FIRST_VERSION;
  }

  raiseVersion(worldId: number, version: number): void {
    const world = this.#world(worldId);
    if (version > world.version) world.version = version;
  }

  /**
   * Adds a device or replaces what is said about it, unless an older edit arrives late; its position stays. A
   * changed world moves it there.
   */
  putDevice(fields: DeviceFields): void {
    this.#successor?.putDevice(fields);
    const present = this.#byId.get(fields.id);
    if (present === undefined) {
      const device: MutableDevice = { fields, position: null, slot: -1 };
      this.#byId.set(fields.id, device);
      this.#byImei.set(fields.imei, device);
      this.#enter(device);
      return;
    }
    if (fields.editedAtMs < present.fields.editedAtMs) return;
    if (present.fields.worldId === fields.worldId) {
      present.fields = fields;
      return;
    }
    this.#leave(present);
    present.fields = fields;
    this.#enter(present);
  }

  /** Moves a device unless it already holds a newer position. False when the device is not known here. */
  move(deviceId: number, position: LatestPosition): boolean {
    this.#successor?.move(deviceId, position);
    const device = this.#byId.get(deviceId);
    if (device === undefined) return false;
    if (device.position !== null && device.position.recordedAtMs > position.recordedAtMs) return true;
    const world = this.#world(device.fields.worldId);
    world.willMove(device, device.slot);
    device.position = position;
    world.positions.put(device.slot, position.lat, position.lng);
    return true;
  }

  /** The device with this IMEI, whoever owns it: for ingest, never for a caller with a key. */
  anyDevice(imei: string): Device | undefined {
    return this.#byImei.get(imei);
  }

  /** The device with this IMEI if it lies in one of `worldIds`. */
  device(worldIds: readonly number[], imei: string): Device | undefined {
    const device = this.#byImei.get(imei);
    return device !== undefined && worldIds.includes(device.fields.worldId) ? device : undefined;
  }

  /** Devices of one or two worlds, ordered by IMEI as text. */
  page(worldIds: readonly number[], offset: number, limit: number): Device[] {
    const [first, second] = worldIds
      .map((id) => this.#worlds.get(id)?.devices)
      .filter((list) => list !== undefined);
    if (first === undefined) return [];
    if (second === undefined) return first.slice(offset, limit);
    return mergedPage(first, second, imeiOf, offset, limit);
  }

  /**
   * The `limit` devices nearest to a point by geodesic distance, nearest first, of equals the lower IMEI, no farther
   * than `maxM` metres (Infinity: no bound). Devices without a position are left out. The k-th distance found in the
   * first world bounds the search in the second. Null where it takes more than about a millisecond: see `nearInSteps`.
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
      const last = found[limit - 1];
      const hits = world.near(lat, lng, limit, last === undefined ? maxM : Math.min(maxM, last.distanceM));
      if (hits === null) return null;
      found = found.length === 0 ? hits : nearestOf(found, hits, limit);
    }
    return found;
  }

  /**
   * What `near` would answer at the moment of the first step, whoever moves meanwhile. For the few questions that
   * thousands of devices answer equally well, such as those on the equator from a pole.
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
      world = new World();
      this.#worlds.set(worldId, world);
    }
    return world;
  }

  #enter(device: MutableDevice): void {
    const world = this.#world(device.fields.worldId);
    device.slot = world.enter(device);
    if (device.position !== null) world.positions.put(device.slot, device.position.lat, device.position.lng);
  }

  #leave(device: MutableDevice): void {
    this.#world(device.fields.worldId).leave(device, device.slot);
  }
}

const imeiOf = (device: Device): string => device.fields.imei;

/** Two ascending lists merged; at equal distances the lower IMEI goes first, so that an answer never flickers. */
function nearestOf(a: readonly NearDevice[], b: readonly NearDevice[], limit: number): NearDevice[] {
  return [...a, ...b]
    .sort((x, y) => x.distanceM - y.distanceM || (imeiOf(x.device) < imeiOf(y.device) ? -1 : 1))
    .slice(0, limit);
}
