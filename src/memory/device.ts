import type { DeviceFields, LatestPosition } from '../engine/device.ts';

/** A device as every pod holds it. Replaced fields by `Fleet.putDevice`, position by `Fleet.move`, nobody else. */
export interface Device {
  readonly fields: DeviceFields;
  readonly position: LatestPosition | null;
}

/** Server time of the last accepted point that moved the device or of the last edit, epoch ms. */
export function updatedAtMs(device: Device): number {
  return Math.max(device.fields.editedAtMs, device.position?.movedAtMs ?? 0);
}

/** A device and its geodesic distance from the asked point, in metres. */
export interface NearDevice {
  readonly device: Device;
  readonly distanceM: number;
}
