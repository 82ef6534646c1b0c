import { AreaCatalog } from '../areas/areaCatalog.memory.ts';
import { copyAreas } from '../areas/areas.sql.ts';
import { adoptFeed, type FeedCursor } from '../changelog/changes.sql.ts';
import { countDevices, selectFeedCursor, selectWorldVersions } from '../changelog/database.sql.ts';
import { putDevices } from '../devices/changes/positionUpdates.ts';
import { copyDevices } from '../devices/deviceRows.sql.ts';
import { selectRemovals } from '../devices/devices.sql.ts';
import { Fleet } from '../devices/fleet.memory.ts';
import { StayCounts } from '../devices/stays/stayCounts.ts';
import { DeadlineExceeded, withDeadline } from '../lib/deadline.ts';
import type { Sql } from '../postgres/sql.ts';
import { selectMemberships } from '../tenants/memberships.sql.ts';
import { Tenancy } from '../tenants/tenancy.memory.ts';
import { Subscriptions } from '../webhooks/subscriptions.memory.ts';
import { selectSubscriptions } from '../webhooks/webhooks.sql.ts';
import {
  type ApplyPorts,
  compileAreas,
  followPositions,
  followWrites,
  type Memory,
  type PendingPositions,
  type Turns,
} from './applyChanges.ts';

export interface FillPorts extends ApplyPorts {
  readonly log: { info(fields: object, message: string): void };
}

/** Fills an empty memory from one snapshot. Returns the cursor of that snapshot. */
export async function fillMemory({ sql, turns, log }: FillPorts, memory: Memory): Promise<FeedCursor> {
  const { keyring } = memory;
  await adoptFeed(sql);
  keyring.clear();
  const onProgress = (loaded: number, total: number) => log.info({ loaded, total }, 'loading devices');
  const loading = loadFleet(sql, turns, memory, onProgress);
  const cursor = await withDeadline(loading, LOAD_DEADLINE_MS, 'loading memory');
  // A key that was cached meanwhile may have changed before the snapshot. The feed after the snapshot lacks that
  // change.
  keyring.clear();
  return cursor;
}

/**
 * Fills a second memory while the present one still answers and takes points, then replaces the present one at once. So
 * what was deleted from Postgres disappears, and what exists is never missing. Calls `onReplaced` with the new cursor
 * at that moment.
 */
export async function refillMemory(
  ports: FillPorts,
  { fleet, areas, tenancy, subscriptions, keyring }: Memory,
  onReplaced: (cursor: FeedCursor) => void,
): Promise<void> {
  const stays = new StayCounts();
  const loaded = {
    fleet: new Fleet(stays),
    areas: new AreaCatalog(stays),
    tenancy: new Tenancy(),
    subscriptions: new Subscriptions(),
    keyring,
  };
  try {
    const from = await fillMemory(ports, loaded);
    // What this pod commits from here on goes to both: neither the load nor the following read contains it.
    fleet.prepareFor(loaded.fleet);
    const cursor = await followAll(ports, loaded, from);
    fleet.adopt(loaded.fleet);
    areas.adopt(loaded.areas);
    tenancy.adopt(loaded.tenancy);
    subscriptions.adopt(loaded.subscriptions);
    onReplaced(cursor);
  } finally {
    fleet.prepareFor(null);
  }
}

async function followAll(ports: FillPorts, memory: Memory, from: FeedCursor): Promise<FeedCursor> {
  const { outcome, cursor, pending } = await followWrites(ports, memory, from, 'all');
  let rest: PendingPositions | null | 'lost' = outcome === 'lost' ? outcome : pending;
  while (rest !== null) {
    if (rest === 'lost') throw new DeadlineExceeded('the feed was lost while memory was loaded');
    rest = await followPositions(ports, memory, rest, from.history);
  }
  return cursor;
}

/** A million devices are loaded in 11 s; this only ends a load that is stuck. */
const LOAD_DEADLINE_MS = 600_000;
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
