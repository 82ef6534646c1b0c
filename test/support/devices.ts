import type { DeviceFields, LatestPosition } from '../../src/devices/device.ts';

export const imeiOf = (n: number): string => String(350_000_000_000_000 + n);

/** The fields of a device in memory: those that a test does not name are empty. */
export const fieldsOf = (fields: Partial<DeviceFields> & Pick<DeviceFields, 'id'>): DeviceFields => ({
  imei: imeiOf(fields.id),
  worldId: 1,
  name: null,
  plate: null,
  model: null,
  groups: [],
  editedAtMs: 0,
  ...fields,
});

/** A position of a device that stands there. */
export const positionAt = (
  lat: number,
  lng: number,
  recordedAtMs = 0,
  more: Partial<LatestPosition> = {},
): LatestPosition => ({
  recordedAtMs,
  lat,
  lng,
  altitudeM: 0,
  speedKmh: 0,
  odometerKm: null,
  movedAtMs: recordedAtMs,
  ...more,
});
