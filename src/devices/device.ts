import { invariant } from '../lib/errors.ts';
import { imeiEnd, namesText, readNames } from './namesText.ts';
import type { Stay } from './stays/packedStays.ts';

/**
 * A device of memory, seen for a moment. It is read from the columns when it is first asked for something, or `taken`;
 * after that it does not change. So a caller that keeps one while other work has its turn takes it before.
 */
export class Device {
  /** In the columns; 0 for one that is not in memory. */
  readonly row: number;
  readonly #columns: DeviceReader | null;
  readonly #version: number;
  #state: DeviceState | null;

  constructor(
    columns: DeviceReader | null,
    row: number,
    version = columns === null ? 0 : columns.version(row),
    state: DeviceState | null = null,
  ) {
    this.row = row;
    this.#columns = columns;
    this.#version = version;
    this.#state = state;
  }

  /** One that is not in memory, such as an example. */
  static of(fields: DeviceFields, position: LatestPosition | null): Device {
    const { imei, name, plate, ...rest } = fields;
    return new Device(null, 0, 0, { ...rest, names: namesText(imei, name, plate), position });
  }

  taken(): this {
    this.#read();
    return this;
  }

  /** The same without what was read of it: to tell it from another later. */
  mark(): Device {
    return this.row === 0 ? this : new Device(this.#columns, this.row, this.#version);
  }

  /** Whether nothing has changed between the one and the other. */
  isSame(other: Device): boolean {
    if (this.row === 0) return this === other;
    return this.row === other.row && this.#version === other.#version && this.#columns === other.#columns;
  }

  get id(): number {
    return this.#read().id;
  }

  get imei(): string {
    const { names } = this.#read();
    return names.slice(0, imeiEnd(names));
  }

  /** See namesText. */
  get names(): string {
    return this.#read().names;
  }

  get model(): string | null {
    return this.#read().model;
  }

  get groups(): readonly string[] {
    return this.#read().groups;
  }

  get position(): LatestPosition | null {
    return this.#read().position;
  }

  /** What an administrator says about it, made anew. */
  get fields(): DeviceFields {
    const { id, worldId, names, model, groups, editedAtMs } = this.#read();
    return { id, worldId, ...readNames(names), model, groups, editedAtMs };
  }

  /** Server time of the last accepted point that moved it, or of the last edit if that is later; epoch ms. */
  get updatedAtMs(): number {
    const { editedAtMs, position } = this.#read();
    return Math.max(editedAtMs, position?.movedAtMs ?? 0);
  }

  /** What its status follows from, without the rest of it. */
  get statusFacts(): StatusFacts | null {
    if (this.#state !== null) return this.#state.position;
    return this.#columns?.statusFacts(this.row) ?? null;
  }

  #read(): DeviceState {
    if (this.#state !== null) return this.#state;
    const columns = this.#columns;
    invariant(columns?.version(this.row) === this.#version, 'a device is read before it changes');
    const state = columns.state(this.row);
    this.#state = state;
    return state;
  }
}

export type StatusFacts = Pick<LatestPosition, 'recordedAtMs' | 'speedKmh'>;

/** Everything about a device, at a moment. */
export interface DeviceState extends Omit<DeviceFields, 'imei' | 'name' | 'plate'> {
  readonly names: string;
  readonly position: LatestPosition | null;
}

/** The columns of memory, as a device reads them. */
export interface DeviceReader {
  /** Rises with every change of what is in the row. */
  version(row: number): number;
  state(row: number): DeviceState;
  statusFacts(row: number): StatusFacts | null;
}

/** A device and its geodesic distance from the query, in metres. */
export interface NearDevice {
  readonly device: Device;
  readonly distanceM: number;
}

/** A device in an area, with its stay there. */
export interface Occupant extends Stay {
  readonly device: Device;
}

/** The newest evaluated position of a device. */
export interface LatestPosition {
  readonly recordedAtMs: number;
  readonly lat: number;
  readonly lng: number;
  readonly altitudeM: number;
  readonly speedKmh: number;
  /** Last known reading; null when the device never sent one. */
  readonly odometerKm: number | null;
  /** Server time at which this position was accepted. */
  readonly movedAtMs: number;
}

/** Below this a device stands: GPS reports a few km/h of noise for a parked vehicle. */
export const MOVING_FROM_KMH = 5;
/** How long a device stands still, by GPS time, before it counts as parked. */
export const PARKING_MS = 120_000;

/** What a device said last beside its position. */
export interface Motion {
  /** Degrees, clockwise from north. */
  readonly headingDeg: number;
  readonly ignition: boolean | null;
  /** Rises with each message that changed the state of the device: orders what messages say of one position. */
  readonly revision: number;
  /** The transaction that stored it. */
  readonly xid: number;
}

/** For a device that never moved, and where the motion does not matter. */
export const NO_MOTION: Motion = { headingDeg: 0, ignition: null, revision: 0, xid: 0 };

/** What an administrator says about a device. */
export interface DeviceFields {
  readonly id: number;
  readonly imei: string;
  readonly worldId: number;
  readonly name: string | null;
  readonly plate: string | null;
  readonly model: string | null;
  readonly groups: readonly string[];
  readonly editedAtMs: number;
}
