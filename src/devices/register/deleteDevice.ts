import { type WritePorts, writeWorlds } from '../../changelog/writeWorlds.ts';
import { fail, ok, type Result } from '../../lib/result.ts';
import { selectDevicesByImei } from '../deviceRows.sql.ts';
import { selectDevicesForUpdate } from '../devices.sql.ts';
import { deleteDeviceRows, deletePacked, deletePoints } from './deletedDevices.sql.ts';

/** Points of one statement: a fraction of a second. */
const POINTS_AT_A_TIME = 10_000;

export type DeleteDeviceError = 'unknown_device' | 'interrupted';

/**
 * Deletes a device of any owner, with its points and commands; its events stay. The points go first, in pieces, and the
 * device goes with the last of them, so a deletion that was cut off can be repeated. Returns the number of points.
 */
export async function deleteDevice(
  ports: WritePorts,
  imei: string,
  interrupted: AbortSignal,
): Promise<Result<number, DeleteDeviceError>> {
  const [device] = await selectDevicesByImei(ports.sql, [imei]);
  if (device === undefined) return fail('unknown_device');
  let points = 0;
  for (let isMore = true; isMore; ) {
    if (interrupted.aborted) return fail('interrupted');
    const deleted = await deletePoints(ports.sql, device.fields.id, POINTS_AT_A_TIME);
    points += deleted;
    isMore = deleted === POINTS_AT_A_TIME;
  }
  for (let isMore = true; isMore; ) {
    if (interrupted.aborted) return fail('interrupted');
    const deleted = await deletePacked(ports.sql, device.fields.id);
    points += deleted;
    isMore = deleted > 0;
  }
  return writeWorlds(ports, async ({ tx, changed }): Promise<Result<number, DeleteDeviceError>> => {
    const [locked] = await selectDevicesForUpdate(tx, [imei]);
    if (locked === undefined) return fail('unknown_device');
    points += await deleteDeviceRows(tx, locked.id);
    changed({ kind: 'device', worldId: locked.worldId, entityIds: [locked.id] });
    return ok(points);
  });
}
