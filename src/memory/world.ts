import type { Steps } from '../base/workTurns.ts';
import type { Device, NearDevice } from './device.ts';
import type { LongSearch } from './longSearch.ts';
import { PositionIndex } from './positionIndex.ts';
import { SortedList } from './sortedList.ts';

/** Of a world in which nothing was ever written: it may be there without memory having been told. */
export const FIRST_VERSION = 1;

/** One tenant's devices with the indexes that answer for them: an account's private ones or an organization's. */
export class World {
  /** Version of the world's keys, owners, devices and areas that this memory has applied. */
  version = FIRST_VERSION;
  readonly devices = new SortedList<Device, string>((device) => device.fields.imei);
  /** Slots differ from pod to pod, IMEIs do not: of devices at the same place every pod names the same first. */
  readonly positions = new PositionIndex((slot) => (this.#bySlot[slot] as Device).fields.imei);
  readonly #bySlot: (Device | undefined)[] = [];
  readonly #freeSlots: number[] = [];
  /** Searches under way, and the slots whose devices came, moved or left since they began. */
  readonly #searches = new Map<LongSearch, Set<number>>();

  /** Adds a device to the list and returns the slot by which the position index will know it. */
  enter(device: Device): number {
    this.devices.put(device);
    const slot = this.#freeSlots.pop() ?? this.#bySlot.length;
    this.#bySlot[slot] = device;
    for (const passed of this.#searches.values()) passed.add(slot);
    return slot;
  }

  leave(device: Device, slot: number): void {
    this.willMove(device, slot);
    this.devices.remove(device.fields.imei);
    this.positions.remove(slot);
    this.#bySlot[slot] = undefined;
    this.#freeSlots.push(slot);
  }

  /** To be told before the position of a device is another one: searches under way look at it as it was. */
  willMove(device: Device, slot: number): void {
    for (const [search, passed] of this.#searches) {
      if (passed.has(slot)) continue;
      passed.add(slot);
      search.look(device);
    }
  }

  /** The nearest devices of this world, nearest first; null where that takes too long at once. See Fleet.near. */
  near(lat: number, lng: number, limit: number, maxM: number): NearDevice[] | null {
    const hits = this.positions.near(lat, lng, limit, maxM);
    return hits === null
      ? null
      : hits.map((hit) => ({ device: this.#bySlot[hit.slot] as Device, distanceM: hit.distanceM }));
  }

  /** From here on the search sees this world as it is now. */
  begin(search: LongSearch): void {
    this.#searches.set(search, new Set());
  }

  end(search: LongSearch): void {
    this.#searches.delete(search);
  }

  /** Offers to a search that has begun whoever may be among the nearest, in steps. */
  nearInSteps(search: LongSearch): Steps<void> {
    const passed = this.#searches.get(search) as ReadonlySet<number>;
    return this.positions.nearInSteps(search, passed, (hits) => {
      for (const { slot, distanceM } of hits) search.offer(this.#bySlot[slot] as Device, distanceM);
    });
  }
}
