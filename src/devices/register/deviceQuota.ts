import type { Tx } from '../../postgres/sql.ts';
import type { Account } from '../../tenants/accounts.sql.ts';
import { lockDeviceCounts } from './deviceUsage.sql.ts';
import type { ImportPlan } from './planImport.ts';

/** Why a device beyond the plan of its account is rejected. */
export const TOO_MANY_DEVICES = 'there are as many devices as the plan of the account allows';

/**
 * The plan without what its worlds have no room for: first the devices that change their world, then the new ones, in
 * their order.
 */
export async function keepToQuota(tx: Tx, plan: ImportPlan, { maxDevices }: Account): Promise<ImportPlan> {
  const movers = plan.updates.filter(({ before, after }) => before.worldId !== after.worldId);
  const worldIds = new Set([
    ...plan.creates.map(({ worldId }) => worldId),
    ...movers.flatMap(({ before, after }) => [before.worldId, after.worldId]),
  ]);
  if (worldIds.size === 0) return plan;
  const counts = new Map(await lockDeviceCounts(tx, [...worldIds]));
  const rejected = new Map(plan.rejected);
  const enters = (imei: string, worldId: number): boolean => {
    const count = counts.get(worldId) ?? 0;
    if (count < maxDevices) counts.set(worldId, count + 1);
    else rejected.set(imei, TOO_MANY_DEVICES);
    return count < maxDevices;
  };
  const updates = plan.updates.filter(({ before, after }) => {
    if (before.worldId === after.worldId) return true;
    if (!enters(after.imei, after.worldId)) return false;
    counts.set(before.worldId, (counts.get(before.worldId) ?? 1) - 1);
    return true;
  });
  const creates = plan.creates.filter(({ imei, worldId }) => enters(imei, worldId));
  return { updates, creates, rejected };
}
