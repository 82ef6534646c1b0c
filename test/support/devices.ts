import type { DeviceFields, LatestPosition } from '../../src/devices/device.ts';
import { type DeviceRow, PassingDevice } from '../../src/devices/deviceRows.sql.ts';

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

/** A device as it is read from a copy. */
export function passingDevice(row: DeviceRow): PassingDevice {
  const { fields, editedXid, position, motion, stays } = row;
  const { imei, name, plate, ...others } = fields;
  const { xid: movedXid, ...moved } = motion;
  const device = new PassingDevice();
  Object.assign(device, others, position, moved, { editedXid, movedXid, stays });
  device.hasPosition = position !== null;
  const texts = { imei, name, plate };
  for (const [key, text] of Object.entries(texts) as ['imei' | 'name' | 'plate', string | null][]) {
    const start = device.bytes.length;
    device.bytes = Buffer.concat([device.bytes, Buffer.from(text ?? '')]);
    Object.assign(device[key], text === null ? { start: -1, end: -1 } : { start, end: device.bytes.length });
  }
  return device;
}
