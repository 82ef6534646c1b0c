import { signal } from '@preact/signals';
import type { ChangedDevice, Device } from './types.ts';

/** Called with what has changed, in the order in which it was told. */
export type FleetListener = (changed: readonly ChangedDevice[]) => void;

/** Lists are drawn again at most this often: a fleet of 100 000 changes 10 000 times a second. */
const LISTS_EVERY_MS = 500;
/** So that what comes together is drawn together. */
const LISTS_AFTER_MS = 30;

type Mutable<T> = { -readonly [Field in keyof T]: T[Field] };
type KnownLocation = Mutable<NonNullable<Device['location']>>;
interface KnownDevice extends Mutable<Omit<Device, 'location'>> {
  location: KnownLocation | null;
}

/** The devices of the account by IMEI, as the stream tells of them. */
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

  /** As it is now: the object changes with the device. */
  get(imei: string): Device | undefined {
    return this.#devices.get(imei);
  }

  values(): Iterable<Device> {
    return this.#devices.values();
  }

  apply(changed: readonly ChangedDevice[]): void {
    for (const device of changed) {
      if ('removed' in device) this.#devices.delete(device.imei);
      else this.#keep(device);
    }
    for (const listener of this.#listeners) listener(changed);
    if (changed.length > 0) this.#timer ??= setTimeout(this.#next, this.#waitMs());
  }

  /** In objects that stay: new ones that live on would be copied twice by the garbage collector, 10 000 a second. */
  #keep(device: Device): void {
    const known = this.#devices.get(device.imei);
    if (known === undefined) this.#devices.set(device.imei, knownDevice(device));
    else update(known, device);
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

function knownDevice({ imei, name, plate, status, location, ignition }: Device): KnownDevice {
  return {
    imei,
    name,
    plate,
    status,
    location: location === null ? null : knownLocation(location),
    ignition,
  };
}

function knownLocation(location: NonNullable<Device['location']>): KnownLocation {
  const { latitude, longitude, speed_kmh, recorded_at, heading } = location;
  return { latitude, longitude, speed_kmh, recorded_at, heading };
}

/** An equal text stays the one that is known. */
function update(known: KnownDevice, { name, plate, status, location, ignition }: Device): void {
  if (known.name !== name) known.name = name;
  if (known.plate !== plate) known.plate = plate;
  if (known.status !== status) known.status = status;
  known.ignition = ignition;
  const before = known.location;
  if (before === null || location === null) {
    known.location = location === null ? null : knownLocation(location);
    return;
  }
  before.latitude = location.latitude;
  before.longitude = location.longitude;
  before.speed_kmh = location.speed_kmh;
  before.recorded_at = location.recorded_at;
  before.heading = location.heading;
}
