import { signal } from '@preact/signals';
import { type KnownDevice, knownDevice, setStatus, statusAt, update } from './knownDevice.ts';
import type { ChangedDevice, Device, RemovedDevice } from './types.ts';

/** Called with what has changed, in the order in which it was told. */
export type FleetListener = (changed: readonly (KnownDevice | RemovedDevice)[]) => void;

/** Lists are drawn again at most this often: a fleet of 100 000 changes 10 000 times a second. */
const LISTS_EVERY_MS = 500;
/** A short delay, so that changes that arrive together are drawn together. */
const LISTS_AFTER_MS = 30;
/** How many devices are checked for their age before the clock is read again. */
const AGED_AT_ONCE = 500;

/** The devices of the account by IMEI, as the stream reports them. */
export class Fleet {
  /** Counts up some time after changes. Lists read it to be drawn again. */
  readonly round = signal(0);
  readonly #devices = new Map<string, KnownDevice>();
  readonly #listeners = new Set<FleetListener>();
  #timer: ReturnType<typeof setTimeout> | null = null;
  #roundAtMs = 0;

  get size(): number {
    return this.#devices.size;
  }

  get(imei: string): KnownDevice | undefined {
    return this.#devices.get(imei);
  }

  values(): Iterable<KnownDevice> {
    return this.#devices.values();
  }

  apply(changed: readonly ChangedDevice[]): void {
    this.#tell(changed.map((device) => ('removed' in device ? this.#remove(device) : this.#keep(device))));
  }

  clear(): void {
    this.apply(Array.from(this.#devices.keys(), (imei) => ({ imei, removed: true })));
  }

  /**
   * Updates every status to `nowMs` (epoch milliseconds of the server): the stream does not report devices that
   * send nothing. `pause` is called between parts and may wait.
   */
  async age(nowMs: number, pause: () => Promise<void> | null): Promise<void> {
    let aged: KnownDevice[] = [];
    let seen = 0;
    for (const device of this.#devices.values()) {
      const status = statusAt(device.location, nowMs);
      if (status !== device.status) {
        setStatus(device, status);
        aged.push(device);
      }
      if (++seen % AGED_AT_ONCE !== 0) continue;
      this.#tell(aged);
      aged = [];
      const waiting = pause();
      if (waiting !== null) await waiting;
    }
    this.#tell(aged);
  }

  #tell(changed: readonly (KnownDevice | RemovedDevice)[]): void {
    if (changed.length === 0) return;
    for (const listener of this.#listeners) listener(changed);
    this.#timer ??= setTimeout(this.#next, this.#waitMs());
  }

  #remove(device: RemovedDevice): RemovedDevice {
    this.#devices.delete(device.imei);
    return device;
  }

  #keep(device: Device): KnownDevice {
    let known = this.#devices.get(device.imei);
    if (known === undefined) {
      known = knownDevice(device);
      this.#devices.set(device.imei, known);
    } else update(known, device);
    return known;
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
