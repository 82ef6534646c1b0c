import type { DeviceRow } from '../devices/deviceRows.sql.ts';
import type { Fleet } from '../devices/fleet.memory.ts';
import type { Steps } from '../lib/workTurns.ts';

/** Devices and stays between two pauses: a fraction of a millisecond. */
const WORK_PER_STEP = 50;

/** Puts devices with their positions and stays into memory. */
export function* putDevices(fleet: Fleet, rows: readonly DeviceRow[]): Steps<void> {
  let work = 0;
  for (const { fields, editedXid, position, motion, stays } of rows) {
    fleet.putDevice(fields, editedXid);
    work++;
    if (position !== null) {
      fleet.move(fields.id, position, motion);
      work += yield* fleet.putStays(fields.id, stays, motion.revision);
    }
    if (work < WORK_PER_STEP) continue;
    work = 0;
    yield;
  }
}
