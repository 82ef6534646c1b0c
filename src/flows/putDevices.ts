import type { Steps } from '../base/workTurns.ts';
import type { Fleet } from '../memory/fleet.ts';
import type { DeviceRow } from '../store/deviceRows.ts';

/** Devices between two looks at the clock: a fraction of a millisecond. */
const DEVICES_PER_STEP = 50;

/** Puts devices with their positions into memory. */
export function* putDevices(fleet: Fleet, rows: readonly DeviceRow[]): Steps<void> {
  for (const [n, { fields, position }] of rows.entries()) {
    if (n % DEVICES_PER_STEP === DEVICES_PER_STEP - 1) yield;
    fleet.putDevice(fields);
    if (position !== null) fleet.move(fields.id, position);
  }
}
