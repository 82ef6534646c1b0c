import type { AreaCatalog } from '../memory/areaCatalog.ts';
import { copyAreas } from '../store/areas.ts';
import { copyDevices } from '../store/deviceRows.ts';
import { selectMemberships } from '../store/memberships.ts';
import { countDevices, selectFeedCursor, selectWorldVersions } from '../store/snapshot.ts';
import type { Sql, Tx } from '../store/sql.ts';
import { selectSubscriptions } from '../store/webhooks.ts';
import type { Memory } from './applyChanges.ts';
import { compileAreas } from './compileAreas.ts';

/** A million devices are loaded in 11 s; this ends only what would never end. */
export const LOAD_DEADLINE_MS = 600_000;
const PROGRESS_EVERY = 100_000;

/**
 * Fills memory from one snapshot of Postgres and returns the feed's cursor at that snapshot: following from there
 * misses nothing. Reports progress on the way, since a million devices take seconds.
 */
export async function loadFleet(
  sql: Sql,
  { fleet, areas, tenancy, subscriptions }: Pick<Memory, 'fleet' | 'areas' | 'tenancy' | 'subscriptions'>,
  onProgress: (loaded: number, total: number) => void,
): Promise<string> {
  return sql.begin('isolation level repeatable read read only', async (tx) => {
    // One statement reads all devices, at the pace at which they are put into memory.
    await tx.unsafe(`set local statement_timeout = ${LOAD_DEADLINE_MS}`);
    const cursor = await selectFeedCursor(tx);
    const total = await countDevices(tx);
    let loaded = 0;
    await copyDevices(tx, (rows) => {
      for (const { fields, position } of rows) {
        fleet.putDevice(fields);
        if (position !== null) fleet.move(fields.id, position);
        loaded++;
        if (loaded % PROGRESS_EVERY === 0 && loaded < total) onProgress(loaded, total);
      }
    });
    for (const row of await selectMemberships(tx)) {
      tenancy.putAccount(row.accountId, row.worldId, row.organizationWorldId);
    }
    subscriptions.clear();
    for (const row of await selectSubscriptions(tx, null)) subscriptions.put(row);
    await loadAreas(tx, areas);
    for (const { id, version } of await selectWorldVersions(tx)) fleet.raiseVersion(id, version);
    onProgress(loaded, total);
    return cursor;
  }) as Promise<string>;
}

/** Areas that memory holds and the snapshot does not were deleted while this pod was away. */
async function loadAreas(tx: Tx, areas: AreaCatalog): Promise<void> {
  const present = new Set<number>();
  await copyAreas(tx, async (rows) => {
    await compileAreas(areas, rows);
    for (const { id } of rows) present.add(id);
  });
  for (const id of areas.ids()) if (!present.has(id)) areas.remove(id);
}
