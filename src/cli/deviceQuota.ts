import type { Account } from '../store/accounts.ts';
import type { DeviceDraft, StoredDevice } from '../store/devices.ts';
import { lockDeviceCounts } from '../store/deviceUsage.ts';
import type { Tx } from '../store/sql.ts';

/** What the lines of a chunk come to. */
export interface ImportPlan {
  readonly creates: readonly DeviceDraft[];
  readonly updates: readonly { readonly before: StoredDevice; readonly after: DeviceDraft }[];
  /** Why an IMEI is refused. */
  readonly refused: ReadonlyMap<string, string>;
}

/** What is answered to a device for which its owner has no room. */
export const TOO_MANY_DEVICES = 'there are as many devices as the plan of the account allows';

/** The plan without what its worlds have no room for: moves into them first, then new devices, in their order. */
export async function keepToQuota(tx: Tx, plan: ImportPlan, { maxDevices }: Account): Promise<ImportPlan> {
  const moves = plan.updates.filter(({ before, after }) => before.worldId !== after.worldId);
  const worldIds = new Set([
    ...plan.creates.map(({ worldId }) => worldId),
    ...moves.flatMap(({ before, after }) => [before.worldId, after.worldId]),
  ]);
  if (worldIds.size === 0) return plan;
  const counts = new Map(await lockDeviceCounts(tx, [...worldIds]));
  const refused = new Map(plan.refused);
  const enters = (imei: string, worldId: number): boolean => {
    const count = counts.get(worldId) ?? 0;
    if (count < maxDevices) counts.set(worldId, count + 1);
    else refused.set(imei, TOO_MANY_DEVICES);
    return count < maxDevices;
  };
  const updates = plan.updates.filter(({ before, after }) => {
    if (before.worldId === after.worldId) return true;
    if (!enters(after.imei, after.worldId)) return false;
    counts.set(before.worldId, (counts.get(before.worldId) ?? 1) - 1);
    return true;
  });
  const creates = plan.creates.filter(({ imei, worldId }) => enters(imei, worldId));
  return { updates, creates, refused };
}
