import type { DeviceFields, LatestPosition } from './motion.ts';
import type { PackedStays } from './stays/packedStays.ts';
import type { Stay } from './stays/stays.ts';

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
