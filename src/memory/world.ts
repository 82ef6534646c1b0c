import type { Device, NearDevice } from './device.ts';
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
  readonly positions = new PositionIndex((slot, other) => this.#imeiAt(slot) < this.#imeiAt(other));
  readonly #bySlot: (Device | undefined)[] = [];
  readonly #freeSlots: number[] = [];

  /** Adds a device to the list and returns the slot by which the position index will know it. */
  enter(device: Device): number {
    this.devices.put(device);
    const slot = this.#freeSlots.pop() ?? this.#bySlot.length;
    this.#bySlot[slot] = device;
    return slot;
  }

  leave(device: Device, slot: number): void {
    this.devices.remove(device.fields.imei);
    this.positions.remove(slot);
    this.#bySlot[slot] = undefined;
    this.#freeSlots.push(slot);
  }

  /** The nearest devices of this world, nearest first; see Fleet.near. */
  near(lat: number, lng: number, limit: number, maxM: number): NearDevice[] {
    return this.positions.near(lat, lng, limit, maxM).map((hit) => ({
      device: this.#bySlot[hit.slot] as Device,
      distanceM: hit.distanceM,
    }));
  }

  #imeiAt(slot: number): string {
    return (this.#bySlot[slot] as Device).fields.imei;
  }
}
