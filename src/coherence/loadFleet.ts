import { copyAreas } from '../areas/areas.sql.ts';
import type { FeedCursor } from '../changelog/changes.sql.ts';
import { countDevices, selectFeedCursor, selectWorldVersions } from '../changelog/snapshot.sql.ts';
import { copyDevices } from '../devices/deviceRows.sql.ts';
import { selectRemovals } from '../devices/devices.sql.ts';
import type { Sql } from '../postgres/sql.ts';
import { selectMemberships } from '../tenants/memberships.sql.ts';
import { selectSubscriptions } from '../webhooks/webhooks.sql.ts';
import type { Memory, Turns } from './applyChanges.ts';
import { compileAreas } from './applyChanges.ts';
import { putDevices } from './putDevices.ts';

/** A million devices are loaded in 11 s; this only ends a load that is stuck. */
export const LOAD_DEADLINE_MS = 600_000;
const PROGRESS_EVERY = 100_000;

/**
 * Fills an empty memory from one snapshot of Postgres. Returns the feed's cursor at that snapshot, so that following
 * from there misses nothing. Reports progress, since a million devices take seconds.
 */
export async function loadFleet(
  sql: Sql,
  turns: Turns,
  { fleet, areas, tenancy, subscriptions }: Omit<Memory, 'keyring'>,
  onProgress: (loaded: number, total: number) => void,
): Promise<FeedCursor> {
  return sql.begin('isolation level repeatable read read only', async (tx) => {
    // One statement reads all devices, as fast as they are put into memory.
    await tx.unsafe(`set local statement_timeout = ${LOAD_DEADLINE_MS}`);
    const cursor = await selectFeedCursor(tx);
    const total = await countDevices(tx);
    let loaded = 0;
    await copyDevices(tx, async (rows) => {
      await turns.run('feed', putDevices(fleet, rows));
      const before = loaded;
      loaded += rows.length;
      const isDue = Math.floor(before / PROGRESS_EVERY) < Math.floor(loaded / PROGRESS_EVERY);
      if (isDue && loaded < total) onProgress(loaded, total);
    });
    for (const { worldId, ...removal } of await selectRemovals(tx)) fleet.putRemoval(worldId, removal, false);
    await turns.run('feed', fleet.sortChanges());
    for (const row of await selectMemberships(tx)) {
      tenancy.putAccount(row.accountId, row.worldId, row.organizationWorldId);
      fleet.stays.setLimit(row.accountId, row.maxStays);
    }
    for (const row of await selectSubscriptions(tx, null)) subscriptions.put(row);
    await copyAreas(tx, (rows) => turns.run('feed', compileAreas(areas, rows)));
    for (const { id, version } of await selectWorldVersions(tx)) fleet.raiseVersion(id, version);
    onProgress(loaded, total);
    return cursor;
  }) as Promise<FeedCursor>;
}

/** Reads how many stays each account may have: a change of a plan is in no feed. */
export async function readQuotas(sql: Sql, { fleet }: Pick<Memory, 'fleet'>): Promise<void> {
  for (const { accountId, maxStays } of await selectMemberships(sql))
    fleet.stays.setLimit(accountId, maxStays);
}
