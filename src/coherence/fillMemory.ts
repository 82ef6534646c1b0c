import { AreaCatalog } from '../areas/areaCatalog.memory.ts';
import { adoptFeed, type FeedCursor } from '../changelog/changes.sql.ts';
import { Fleet } from '../devices/fleet.memory.ts';
import { StayCounts } from '../devices/stays/stayCounts.ts';
import { DeadlineExceeded, withDeadline } from '../lib/deadline.ts';
import { Tenancy } from '../tenants/tenancy.memory.ts';
import { Subscriptions } from '../webhooks/subscriptions.memory.ts';
import type { ApplyPorts, Memory } from './applyChanges.ts';
import { followPositions, followWrites, type PendingPositions } from './followPages.ts';
import { LOAD_DEADLINE_MS, loadFleet } from './loadFleet.ts';

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
