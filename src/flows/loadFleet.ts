import type { AreaCatalog } from '../memory/areaCatalog.ts';
import { streamAreas } from '../store/areas.ts';
import { streamDevices } from '../store/deviceRows.ts';
import { selectMemberships } from '../store/memberships.ts';
import { countDevices, selectFeedCursor, selectWorldVersions } from '../store/snapshot.ts';
import type { Sql, Tx } from '../store/sql.ts';
import { selectSubscriptions } from '../store/webhooks.ts';
import type { Memory } from './applyChanges.ts';
import { compileAreas } from './compileAreas.ts';

const CHUNK = 5_000;
/** Areas are larger than devices: two thousand vertices each at most. */
const AREA_CHUNK = 500;
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
    const cursor = await selectFeedCursor(tx);
    const total = await countDevices(tx);
    let loaded = 0;
    for await (const rows of streamDevices(tx, CHUNK)) {
      for (const { fields, position } of rows) {
        fleet.putDevice(fields);
        if (position !== null) fleet.move(fields.id, position);
      }
      loaded += rows.length;
      if (loaded % PROGRESS_EVERY < CHUNK && loaded < total) onProgress(loaded, total);
    }
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
  for await (const rows of streamAreas(tx, AREA_CHUNK)) {
    await compileAreas(areas, rows);
    for (const { id } of rows) present.add(id);
  }
  for (const id of areas.ids()) if (!present.has(id)) areas.remove(id);
}
