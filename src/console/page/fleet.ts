import { signal } from '@preact/signals';
import { InOrder } from './lists/inOrder.ts';
import type { ChangedDevice, RemovedDevice } from './types.ts';

export type DeviceChange = ChangedDevice | RemovedDevice;

/** Called with what has changed, in the order in which it was reported. */
export type FleetListener = (changed: readonly (KnownDevice | RemovedDevice)[]) => void;

/** Lists are drawn again at most this often: a fleet of 100 000 changes 10 000 times a second. */
const LISTS_EVERY_MS = 500;
/** A short delay, so that changes that arrive together are drawn together. */
const LISTS_AFTER_MS = 30;
/** How many devices are checked for their age before the clock is read again. */
const AGED_AT_ONCE = 500;
/** Lists of groups that devices share, and names that are offered. */
const GROUPS_MAX = 1_000;
/** Van 2 comes before Van 12. */
const COLLATOR = new Intl.Collator(undefined, { numeric: true });

/** The devices of the account by IMEI, as the stream reports them. */
export class Fleet {
  /** Counts up some time after changes. Lists read it to be drawn again. */
  readonly round = signal(0);
  readonly #devices = new Map<string, KnownDevice>();
  readonly #order = new InOrder<KnownDevice>(byName);
  readonly #listeners = new Set<FleetListener>();
  /** Devices of the same groups share one list of them, by its JSON. */
  readonly #groups = new Map<string, readonly string[]>();
  readonly #groupLists = signal(0);
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

  /** By name, then IMEI; the same list while no device comes, goes or is renamed. */
  sorted(): readonly KnownDevice[] {
    return this.#order.sorted(this.#devices.values());
  }

  /** Those that devices have, or had since the page was opened. What shows them is drawn again when others come in. */
  groupNames(): readonly string[] {
    this.#groupLists.value;
    return [...new Set([...this.#groups.values()].flat())].sort(COLLATOR.compare).slice(0, GROUPS_MAX);
  }

  apply(changed: readonly DeviceChange[]): void {
    this.#notify(changed.map((device) => ('removed' in device ? this.#remove(device) : this.#keep(device))));
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
        age(device, status);
        aged.push(device);
      }
      if (++seen % AGED_AT_ONCE !== 0) continue;
      this.#notify(aged);
      aged = [];
      const waiting = pause();
      if (waiting !== null) await waiting;
    }
    this.#notify(aged);
  }

  #notify(changed: readonly (KnownDevice | RemovedDevice)[]): void {
    if (changed.length === 0) return;
    for (const listener of this.#listeners) listener(changed);
    this.#timer ??= setTimeout(this.#next, this.#waitMs());
  }

  #remove(device: RemovedDevice): RemovedDevice {
    const known = this.#devices.get(device.imei);
    if (known !== undefined) this.#order.remove(known);
    this.#devices.delete(device.imei);
    return device;
  }

  #keep(device: ChangedDevice): KnownDevice {
    let known = this.#devices.get(device.imei);
    if (known === undefined) {
      known = knownDevice(device);
      this.#devices.set(device.imei, known);
      this.#order.add(known);
    } else {
      const name = nameOf(known);
      update(known, device);
      if (nameOf(known) !== name) this.#order.move(known);
    }
    (known as Writable<KnownDevice>).groups = this.#shared(device.groups);
    return known;
  }

  #shared(groups: readonly string[]): readonly string[] {
    const name = groups.length === 0 ? '' : JSON.stringify(groups);
    const known = this.#groups.get(name);
    if (known !== undefined) return known;
    if (this.#groups.size < GROUPS_MAX) this.#groups.set(name, groups);
    this.#groupLists.value = this.#groups.size;
    return groups;
  }

  readonly #next = (): void => {
    this.#timer = null;
    this.#roundAtMs = Date.now();
    this.round.value++;
  };

  #waitMs(): number {
    return Math.max(LISTS_AFTER_MS, this.#roundAtMs + LISTS_EVERY_MS - Date.now());
  }

  /** Calls the listener with all devices now, and with each change until the returned function is called. */
  listen(listener: FleetListener): () => void {
    listener([...this.#devices.values()]);
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }
}

/** What people call it. */
export function nameOf({ name, plate, imei }: Pick<KnownDevice, 'name' | 'plate' | 'imei'>): string {
  return name ?? plate ?? imei;
}

function byName(a: KnownDevice, b: KnownDevice): number {
  return COLLATOR.compare(nameOf(a), nameOf(b)) || COLLATOR.compare(a.imei, b.imei);
}

/** Whether the name, plate or IMEI of a device contains the text, whatever its case and blanks. */
export function fitting(text: string): (device: Pick<KnownDevice, 'name' | 'plate' | 'imei'>) => boolean {
  const wanted = plain(text);
  return ({ name, plate, imei }) =>
    wanted === '' || [name, plate, imei].some((value) => value !== null && plain(value).includes(wanted));
}

function plain(text: string): string {
  const lower = text.toLowerCase();
  return /\s/.test(lower) ? lower.replaceAll(/\s/g, '') : lower;
}

/** What is kept of a device. It is updated in place, so code that needs a value later must copy it. */
export interface KnownDevice {
  readonly imei: string;
  readonly name: string | null;
  readonly plate: string | null;
  readonly status: ChangedDevice['status'];
  readonly location: KnownLocation | null;
  readonly ignition: boolean | null;
  readonly groups: readonly string[];
  /** Counts up with each change, since the object stays the same: a row that shows this version is up to date. */
  readonly version: number;
}

interface KnownLocation {
  readonly latitude: number;
  readonly longitude: number;
  readonly speedKmh: number;
  readonly recordedAtMs: number;
  /** Degrees clockwise from north. */
  readonly heading: number;
}

const PARKED_BELOW_KMH = 5;
const PARKED_FOR_MS = 86_400_000;
const MOVING_FOR_MS = 600_000;

/**
 * The status of a device at a time of the server's clock, by the rule of the API (docs/decisions.md): parked under 5 km/h
 * for 24 hours, moving for 10 minutes, then offline; unknown without a position.
 */
export function statusAt(location: KnownLocation | null, nowMs: number): ChangedDevice['status'] {
  if (location === null) return 'unknown';
  const ageMs = nowMs - location.recordedAtMs;
  if (location.speedKmh < PARKED_BELOW_KMH) return ageMs <= PARKED_FOR_MS ? 'parked' : 'offline';
  return ageMs <= MOVING_FOR_MS ? 'moving' : 'offline';
}

type Writable<T> = { -readonly [Field in keyof T]: T[Field] };

export function knownDevice({ location, ...device }: ChangedDevice): KnownDevice {
  const { imei, name, plate, status, ignition, groups } = device;
  const place = location === null ? null : knownLocation(location);
  return { imei, name, plate, status, location: place, ignition, groups, version: 0 };
}

function age(device: Writable<KnownDevice>, status: KnownDevice['status']): void {
  device.status = status;
  device.version++;
}

/**
 * Updates a kept device to what the stream reports now. Objects and equal texts are reused: the garbage collector
 * copies new values that stay alive twice, which adds up at 10 000 changes a second.
 */
function update(known: KnownDevice, { name, plate, status, location, ignition }: ChangedDevice): void {
  const device: Writable<KnownDevice> = known;
  device.version++;
  if (device.name !== name) device.name = name;
  if (device.plate !== plate) device.plate = plate;
  if (device.status !== status) device.status = status;
  device.ignition = ignition;
  const place: Writable<KnownLocation> | null = device.location;
  if (place === null || location === null) {
    device.location = location === null ? null : knownLocation(location);
    return;
  }
  place.latitude = location.latitude;
  place.longitude = location.longitude;
  place.speedKmh = location.speed_kmh;
  place.recordedAtMs = Date.parse(location.recorded_at);
  place.heading = location.heading;
}

/** What the stream would say of a device that is known. */
export function changeOf({ location, version: _, ...device }: KnownDevice): ChangedDevice {
  if (location === null) return { ...device, location };
  const { latitude, longitude, speedKmh, recordedAtMs, heading } = location;
  const recorded_at = new Date(recordedAtMs).toISOString();
  return { ...device, location: { latitude, longitude, speed_kmh: speedKmh, recorded_at, heading } };
}

function knownLocation(location: NonNullable<ChangedDevice['location']>): KnownLocation {
  const { latitude, longitude, speed_kmh: speedKmh, recorded_at, heading } = location;
  return { latitude, longitude, speedKmh, recordedAtMs: Date.parse(recorded_at), heading };
}
