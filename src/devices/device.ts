import type { PackedStays, Stay } from './stays/packedStays.ts';

/** A device in memory. Only `Fleet.putDevice` replaces its fields, and only `Fleet.move` its position. */
export interface Device {
  readonly fields: DeviceFields;
  readonly position: LatestPosition | null;
}

/** Server time of the last accepted point that moved the device, or of the last edit if that is later; epoch ms. */
export function updatedAtMs(device: Device): number {
  return Math.max(device.fields.editedAtMs, device.position?.movedAtMs ?? 0);
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

/** A device with its stays. */
export interface OccupyingDevice extends Device {
  /** In the index of its world. */
  readonly slot: number;
  stays: PackedStays;
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
