import { type WritePorts, writeWorlds } from '../changelog/writeWorlds.ts';
import { fail, ok, type Result } from '../lib/result.ts';
import { lockAreaWorlds, moveArea } from './areas.sql.ts';

export type ShareAreaError = 'unknown_area' | 'no_organization';

/**
 * Makes an area its organization's (`shared`), or its account's again. Both worlds change: one gains the area, the
 * other loses it. An area that is there already is written once more, so that every pod reads it.
 */
export function shareArea(
  ports: WritePorts,
  areaId: number,
  shared: boolean,
): Promise<Result<null, ShareAreaError>> {
  return writeWorlds(ports, async ({ tx, changed }): Promise<Result<null, ShareAreaError>> => {
    const area = await lockAreaWorlds(tx, areaId);
    if (area === undefined) return fail('unknown_area');
    const worldId = shared ? area.organizationWorldId : area.accountWorldId;
    if (worldId === null) return fail('no_organization');
    await moveArea(tx, areaId, worldId);
    for (const changedWorldId of new Set([area.worldId, worldId])) {
      changed({ kind: 'area', worldId: changedWorldId, entityIds: [areaId] });
    }
    return ok(null);
  });
}
