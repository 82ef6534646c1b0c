import { type WritePorts, writeWorlds } from '../changelog/writeWorlds.ts';
import { fail, ok, type Result } from '../lib/result.ts';
import { selectAccount } from '../tenants/accounts.sql.ts';
import { selectDevicesByImei } from './deviceRows.sql.ts';
import {
  type DeviceDraft,
  deleteDeviceRows,
  deletePacked,
  deletePoints,
  insertDevices,
  lockDeviceCounts,
  selectDevicesForUpdate,
} from './devices.sql.ts';

export type CreateDeviceError = 'unknown_account' | 'no_organization' | 'too_many' | 'taken';

/** Registers a device for an account, or for its organization. */
export function createDevice(
  ports: WritePorts,
  email: string,
  { isShared, ...draft }: Omit<DeviceDraft, 'worldId'> & { readonly isShared: boolean },
): Promise<Result<null, CreateDeviceError>> {
  return writeWorlds(ports, async ({ tx, changed }): Promise<Result<null, CreateDeviceError>> => {
    const account = await selectAccount(tx, email, 'share');
    if (account === undefined) return fail('unknown_account');
    const worldId = isShared ? account.organizationWorldId : account.worldId;
    if (worldId === null) return fail('no_organization');
    const count = (await lockDeviceCounts(tx, [worldId])).get(worldId) ?? 0;
    if (count >= account.maxDevices) return fail('too_many');
    const [created] = await insertDevices(tx, [{ ...draft, worldId }]);
    if (created === undefined) return fail('taken');
    changed({ kind: 'device', worldId, entityIds: [created.id] });
    return ok(null);
  });
}

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
  for (const deletePiece of [deletePoints, deletePacked]) {
    for (let deleted = 1; deleted > 0; points += deleted) {
      if (interrupted.aborted) return fail('interrupted');
      deleted = await deletePiece(ports.sql, device.fields.id);
    }
  }
  return writeWorlds(ports, async ({ tx, changed }): Promise<Result<number, DeleteDeviceError>> => {
    const [locked] = await selectDevicesForUpdate(tx, [imei]);
    if (locked === undefined) return fail('unknown_device');
    points += await deleteDeviceRows(tx, locked.id);
    changed({ kind: 'device', worldId: locked.worldId, entityIds: [locked.id] });
    return ok(points);
  });
}
