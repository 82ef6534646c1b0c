import { type WritePorts, writeWorlds } from '../changelog/writeWorlds.ts';
import { fail, ok, type Result } from '../lib/result.ts';
import { selectAccount } from '../tenants/accounts.sql.ts';
import { type DeviceDraft, insertDevices } from './devices.sql.ts';
import { lockDeviceCounts } from './register/deviceUsage.sql.ts';

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
