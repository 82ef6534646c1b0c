import { distanceM } from '../geo/wgs84.ts';
import type { Steps } from '../lib/workTurns.ts';
import { type Removal, WorldChanges } from './changes/worldChanges.ts';
import type { Device, Motion, NearDevice, OccupyingDevice } from './device.ts';
import { PositionIndex } from './index/positionIndex.ts';
import { SortedList } from './sortedList.ts';
import { Occupants } from './stays/occupants.memory.ts';
import type { StayCounts } from './stays/stayCounts.ts';

/** The version of a world in which nothing was ever written. Memory need not know such a world. */
export const FIRST_VERSION = 1;

/** The devices of one tenant, an account's private ones or an organization's, with their indexes. */
export class World {
  /** The version of the world's keys, owners, devices and areas that this memory holds. */
  version = FIRST_VERSION;
  readonly devices = new SortedList<Device, string>((device) => device.fields.imei);
  /**
   * Ranked by IMEI, since slots differ from pod to pod: devices at the same position have the same order on every pod.
   */
  readonly positions = new PositionIndex((slot) => (this.bySlot[slot] as Device).fields.imei);
  /** What happened to its devices last, for those who follow them. */
  readonly changes = new WorldChanges((slot) => this.bySlot[slot] as Device);
  /** Which of its devices are in which areas, of this world or of another that watches it. */
  readonly occupants: Occupants;
  /** By their slots in the position index. */
  readonly bySlot: (OccupyingDevice | undefined)[] = [];
  readonly #freeSlots: number[] = [];
  /** Searches in progress, with the slots whose devices were added, moved or removed since they began. */
  readonly #searches = new Map<LongSearch, Set<number>>();

  constructor(counts: StayCounts) {
    this.occupants = new Occupants((slot) => this.bySlot[slot] as OccupyingDevice, counts);
  }

  /** Adds a device and returns its slot in the position index. */
  add(device: OccupyingDevice, editedXid: number, motion: Motion): number {
    this.devices.put(device);
    const removed = this.changes.dropRemoval(device.fields.imei);
    if (removed !== null) this.#freeSlots.push(removed);
    const slot = this.#freeSlots.pop() ?? this.bySlot.length;
    this.bySlot[slot] = device;
    this.changes.moved(slot, motion, editedXid);
    for (const changed of this.#searches.values()) changed.add(slot);
    return slot;
  }

  /** Takes a device out. Its slot goes to the removal, for those who follow this world. */
  remove(device: Device, slot: number, removal: Removal): void {
    this.willMove(device, slot);
    this.devices.remove(device.fields.imei);
    this.positions.remove(slot);
    this.bySlot[slot] = undefined;
    this.#freeSlots.push(...this.changes.putRemoval(slot, removal));
  }

  /** Remembers a device that left before this memory knew of it. */
  putRemoval(removal: Removal): void {
    const known = this.changes.removalOf(removal.imei);
    if (known !== undefined && known.xid >= removal.xid) return;
    const slot = this.changes.dropRemoval(removal.imei) ?? this.#freeSlots.pop() ?? this.bySlot.length;
    this.bySlot[slot] = undefined;
    this.#freeSlots.push(...this.changes.putRemoval(slot, removal));
  }

  forgetRemovals(beforeMs: number): void {
    this.#freeSlots.push(...this.changes.forgetRemovals(beforeMs));
  }

  /** Must be called before the position of a device changes: searches in progress use the old one. */
  willMove(device: Device, slot: number): void {
    for (const [search, changed] of this.#searches) {
      if (changed.has(slot)) continue;
      changed.add(slot);
      search.offerPresent(device);
    }
  }

  /** From here on the search uses this world as it is now. */
  begin(search: LongSearch): void {
    this.#searches.set(search, new Set());
  }

  end(search: LongSearch): void {
    this.#searches.delete(search);
  }

  /** Offers to a search that has begun all devices that may be among the nearest, in steps. */
  nearInSteps(search: LongSearch): Steps<void> {
    const changed = this.#searches.get(search) as ReadonlySet<number>;
    return this.positions.nearInSteps(search, changed, (hits) => {
      for (const { slot, distanceM } of hits) search.offer(this.bySlot[slot] as Device, distanceM);
    });
  }
}

/**
 * The nearest devices so far, in a search that takes many turns of the event loop. The result is as of the moment when
 * the search began: devices are copied as they are found, and a device that is about to move is offered before.
 */
export class LongSearch {
  readonly lat: number;
  readonly lng: number;
  readonly limit: number;
  /** Devices farther away than this are not accepted any more. */
  reachM: number;
  /** Sorted by distance, then by IMEI. */
  readonly found: NearDevice[] = [];

  constructor(lat: number, lng: number, limit: number, maxM: number) {
    this.lat = lat;
    this.lng = lng;
    this.limit = limit;
    this.reachM = maxM;
  }

  /** Offers a device with its present position, if it has one. */
  offerPresent(device: Device): void {
    const { position } = device;
    if (position !== null) this.offer(device, distanceM(this.lat, this.lng, position.lat, position.lng));
  }

  /** The same device may be offered again, as long as it has not moved. */
  offer(device: Device, offeredM: number): void {
    if (offeredM > this.reachM) return;
    const { found, limit } = this;
    const at = this.#rankOf(device.fields.imei, offeredM);
    if (found[at]?.device.fields.imei === device.fields.imei) return;
    if (at === limit) return;
    const { fields, position } = device;
    found.splice(at, 0, { device: { fields, position }, distanceM: offeredM });
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
      if (distanceM < offeredM || (distanceM === offeredM && device.fields.imei < imei)) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
