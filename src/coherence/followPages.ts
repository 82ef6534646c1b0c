import {
  type ChangePage,
  type FeedCursor,
  type FeedSnapshot,
  type PagePosition,
  selectChanges,
} from '../changelog/changes.sql.ts';
import { type ApplyPorts, applyChanges, type Memory } from './applyChanges.ts';

/** Position updates that were committed after the snapshot `from`. Those on pages before `page` are applied already. */
export interface PendingPositions {
  readonly from: FeedSnapshot;
  readonly page: PagePosition;
}

/**
 * The result of reading the feed: it brought only position updates, or writes as well, or the feed is 'lost'. It is
 * lost when changes were pruned before they were read, and when this is another server: that one may lack transactions
 * which memory knows, and reuse their numbers.
 */
export interface Followed {
  readonly outcome: 'positions' | 'writes' | 'lost';
  /** Up to here every write is applied, unless the feed is lost. */
  readonly cursor: FeedCursor;
  /** Position updates up to there that are not applied; null: none. */
  readonly pending: PendingPositions | null;
}

/**
 * Applies every write that was committed after `from`. With 'all' it also applies the position updates on the first
 * page; the rest is pending, so that nobody who needs the newest writes waits for millions of positions. With 'writes'
 * it skips position updates, for when others are pending already.
 */
export async function followWrites(
  ports: ApplyPorts,
  memory: Memory,
  from: FeedCursor,
  firstPage: 'all' | 'writes',
): Promise<Followed> {
  const { sql, awaitReply } = ports;
  const versions = new Map<number, number>();
  let next: PagePosition | null = null;
  let pending: PendingPositions | null = null;
  let cursor = from;
  do {
    const kinds: 'all' | 'writes' = next === null ? firstPage : 'writes';
    const page: ChangePage = await awaitReply(selectChanges(sql, from.snapshot, next, kinds));
    const { upTo: snapshot, history, start, flushedBytes } = page;
    cursor = { snapshot, history, start, flushedBytes };
    if (page.pruned || page.history !== from.history) return { outcome: 'lost', cursor, pending };
    await applyChanges(ports, memory, page.changes);
    for (const { worldId, worldVersion } of page.changes) {
      if (worldId === null || worldVersion === null) continue;
      versions.set(worldId, Math.max(worldVersion, versions.get(worldId) ?? 0));
    }
    next = page.next;
    if (kinds === 'all' && next !== null) pending = { from: from.snapshot, page: next };
  } while (next !== null);
  // Versions are raised last, because one write may span several pages.
  for (const [worldId, version] of versions) memory.fleet.raiseVersion(worldId, version);
  return { outcome: versions.size > 0 ? 'writes' : 'positions', cursor, pending };
}

/** Applies the next page of pending position updates. Returns those that are pending then. */
export async function followPositions(
  ports: ApplyPorts,
  memory: Memory,
  { from, page: position }: PendingPositions,
  history: string,
): Promise<PendingPositions | null | 'lost'> {
  const page = await ports.awaitReply(selectChanges(ports.sql, from, position, 'positions'));
  if (page.pruned || page.history !== history) return 'lost';
  await applyChanges(ports, memory, page.changes);
  return page.next === null ? null : { from, page: page.next };
}
