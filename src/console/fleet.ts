import { signal } from '@preact/signals';
import type { ChangedDevice, Device } from './types.ts';

/** Called with what has changed, in the order in which it was told. */
export type FleetListener = (changed: readonly ChangedDevice[]) => void;

/** Lists are drawn again at most this often: a fleet of 100 000 changes 10 000 times a second. */
const LISTS_EVERY_MS = 500;
/** So that what comes together is drawn together. */
const LISTS_AFTER_MS = 30;

/** The devices of the account by IMEI, as the stream tells of them. */
export class Fleet {
  /** Counts up some time after changes. Lists read it to be drawn again. */
  readonly round = signal(0);
  readonly #devices = new Map<string, Device>();
  readonly #listeners = new Set<FleetListener>();
  #timer: ReturnType<typeof setTimeout> | null = null;
  #roundAtMs = 0;

  get size(): number {
    return this.#devices.size;
  }

  get(imei: string): Device | undefined {
    return this.#devices.get(imei);
  }

  values(): Iterable<Device> {
    return this.#devices.values();
  }

  apply(changed: readonly ChangedDevice[]): void {
    for (const device of changed) {
      if ('removed' in device) this.#devices.delete(device.imei);
      else this.#devices.set(device.imei, device);
    }
    for (const listener of this.#listeners) listener(changed);
    if (changed.length > 0) this.#timer ??= setTimeout(this.#next, this.#waitMs());
  }

  clear(): void {
    this.apply(Array.from(this.#devices.keys(), (imei) => ({ imei, removed: true })));
  }

  readonly #next = (): void => {
    this.#timer = null;
    this.#roundAtMs = Date.now();
    this.round.value++;
  };

  #waitMs(): number {
    return Math.max(LISTS_AFTER_MS, this.#roundAtMs + LISTS_EVERY_MS - Date.now());
  }

  /** Tells of every device now, and of each change from now on, until the returned function is called. */
  listen(listener: FleetListener): () => void {
    listener([...this.#devices.values()]);
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }
}
