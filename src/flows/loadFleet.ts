import { copyAreas } from '../store/areas.ts';
import type { FeedStand } from '../store/changes.ts';
import { copyDevices } from '../store/deviceRows.ts';
import { selectMemberships } from '../store/memberships.ts';
import { countDevices, selectFeedStand, selectWorldVersions } from '../store/snapshot.ts';
import type { Sql } from '../store/sql.ts';
import { selectSubscriptions } from '../store/webhooks.ts';
import type { Memory, Turns } from './applyChanges.ts';
import { compileAreas } from './compileAreas.ts';
import { putDevices } from './putDevices.ts';

/** A million devices are loaded in 11 s; this ends only what would never end. */
export const LOAD_DEADLINE_MS = 600_000;
const PROGRESS_EVERY = 100_000;

/**
 * Fills an empty memory from one snapshot of Postgres and returns where the feed stands at that snapshot: following
 * from there misses nothing. Reports progress on the way, since a million devices take seconds.
 */
export async function loadFleet(
  sql: Sql,
  turns: Turns,
  { fleet, areas, tenancy, subscriptions }: Omit<Memory, 'keyring'>,
  onProgress: (loaded: number, total: number) => void,
): Promise<FeedStand> {
  return sql.begin('isolation level repeatable read read only', async (tx) => {
    // One statement reads all devices, at the pace at which they are put into memory.
    await tx.unsafe(`set local statement_timeout = ${LOAD_DEADLINE_MS}`);
    const stand = await selectFeedStand(tx);
    const total = await countDevices(tx);
    let loaded = 0;
    await copyDevices(tx, async (rows) => {
      await turns.run('feed', putDevices(fleet, rows));
      const before = loaded;
      loaded += rows.length;
      const isDue = Math.floor(before / PROGRESS_EVERY) < Math.floor(loaded / PROGRESS_EVERY);
      if (isDue && loaded < total) onProgress(loaded, total);
    });
    for (const row of await selectMemberships(tx)) {
      tenancy.putAccount(row.accountId, row.worldId, row.organizationWorldId);
    }
    for (const row of await selectSubscriptions(tx, null)) subscriptions.put(row);
    await copyAreas(tx, (rows) => turns.run('feed', compileAreas(areas, rows)));
    for (const { id, version } of await selectWorldVersions(tx)) fleet.raiseVersion(id, version);
    onProgress(loaded, total);
    return stand;
  }) as Promise<FeedStand>;
}
