import { isDeepStrictEqual } from 'node:util';
import { fail, ok, type Result } from '../../lib/result.ts';
import type { Account } from '../../tenants/accounts.sql.ts';
import type { DeviceDraft, StoredDevice } from '../devices.sql.ts';
import type { DevicePatch } from './devicePatch.ts';

/** What an import does to the devices that it names. */
export interface ImportPlan {
  readonly creates: readonly DeviceDraft[];
  readonly updates: readonly { readonly before: StoredDevice; readonly after: DeviceDraft }[];
  /** Why a device is not imported, by IMEI. */
  readonly rejected: ReadonlyMap<string, string>;
}

/** A device that stays as it is needs no update: importing a file again costs the running pods nothing. */
export function planImport(
  patches: Iterable<DevicePatch>,
  stored: readonly StoredDevice[],
  account: Account,
): ImportPlan {
  const storedByImei = new Map(stored.map((device) => [device.imei, device]));
  const creates: DeviceDraft[] = [];
  const updates: { before: StoredDevice; after: DeviceDraft }[] = [];
  const rejected = new Map<string, string>();
  for (const patch of patches) {
    const before = storedByImei.get(patch.imei);
    const after = applyPatch(patch, before, account);
    if (!after.ok) rejected.set(patch.imei, after.error);
    else if (before === undefined) creates.push(after.value);
    else if (!isDeepStrictEqual({ ...before, ...after.value }, before)) {
      updates.push({ before, after: after.value });
    }
  }
  return { creates, updates, rejected };
}

/** The device as it is to be. Its owner is the account or its organization, before and after. */
function applyPatch(
  patch: DevicePatch,
  before: StoredDevice | undefined,
  account: Account,
): Result<DeviceDraft, string> {
  const isForeign =
    before !== undefined &&
    before.worldId !== account.worldId &&
    before.worldId !== account.organizationWorldId;
  if (isForeign) return fail(`the device ${patch.imei} belongs to another owner`);
  const wantedWorldId = patch.organization === true ? account.organizationWorldId : account.worldId;
  if (wantedWorldId === null) return fail('organization is true, but the account belongs to no organization');
  return ok({
    imei: patch.imei,
    worldId: patch.organization === undefined ? (before?.worldId ?? account.worldId) : wantedWorldId,
    name: patch.name === undefined ? (before?.name ?? null) : patch.name,
    plate: patch.plate === undefined ? (before?.plate ?? null) : patch.plate,
    model: patch.model === undefined ? (before?.model ?? null) : patch.model,
    groups: patch.groups ?? before?.groups ?? [],
  });
}
