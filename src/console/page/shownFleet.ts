import { effect, type ReadonlySignal, signal } from '@preact/signals';
import {
  type Filters,
  hasStatus,
  passesBesideStatus,
  STATUSES,
  type Status,
  type StatusCounts,
} from './filters.ts';
import type { Fleet, FleetListener, KnownDevice } from './fleet.ts';
import type { RemovedDevice } from './types.ts';

/** The devices of a fleet that pass the filters. */
export class ShownFleet {
  /** Of those that pass the filters but that of their status. Follows the rounds of the fleet. */
  readonly counts = signal<StatusCounts>({ moving: 0, parked: 0, offline: 0, unknown: 0 });
  readonly #fleet: Fleet;
  readonly #filters: ReadonlySignal<Filters>;
  readonly #listeners = new Set<FleetListener>();
  /** With what status each of them is counted. */
  readonly #counted = new Map<string, Status>();
  readonly #tally = { moving: 0, parked: 0, offline: 0, unknown: 0 };
  #passes: (device: KnownDevice) => boolean = () => true;

  constructor(fleet: Fleet, filters: ReadonlySignal<Filters>) {
    this.#fleet = fleet;
    this.#filters = filters;
    fleet.listen((changed) => this.#take(changed));
    effect(() => {
      this.#passes = passesBesideStatus(filters.value);
      this.#take([...fleet.values()]);
      this.#tell();
    });
    effect(() => {
      fleet.round.value;
      this.#tell();
    });
  }

  *values(): Iterable<KnownDevice> {
    for (const device of this.#fleet.values()) if (this.#isShown(device)) yield device;
  }

  /**
   * Calls the listener with all devices that are shown now, and with each change until the returned function is called.
   * Devices that pass no longer are removed.
   */
  listen(listener: FleetListener): () => void {
    listener([...this.values()]);
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** The same counts stay the same object, so that what shows them is not drawn again. */
  #tell(): void {
    const [told, now] = [this.counts.peek(), this.#tally];
    if (STATUSES.some((status) => told[status] !== now[status])) this.counts.value = { ...now };
  }

  #isShown(device: KnownDevice): boolean {
    return this.#counted.has(device.imei) && hasStatus(this.#filters.peek(), device);
  }

  #take(changed: readonly (KnownDevice | RemovedDevice)[]): void {
    for (const device of changed)
      this.#count(device.imei, 'removed' in device || !this.#passes(device) ? null : device.status);
    const shown = changed.map((device) =>
      'removed' in device || this.#isShown(device) ? device : { imei: device.imei, removed: true as const },
    );
    for (const listener of this.#listeners) listener(shown);
  }

  #count(imei: string, status: Status | null): void {
    const before = this.#counted.get(imei) ?? null;
    if (before === status) return;
    if (before !== null) this.#tally[before]--;
    if (status === null) this.#counted.delete(imei);
    else {
      this.#tally[status]++;
      this.#counted.set(imei, status);
    }
  }
}
