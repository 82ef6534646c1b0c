import {
  type ChangePage,
  type FeedCursor,
  type FeedStand,
  type PagePlace,
  selectChanges,
} from '../store/changes.ts';
import { type ApplyPorts, applyChanges, type Memory } from './applyChanges.ts';

/** Moves committed after the cursor `from`, of which those up to `place` are applied. */
export interface MovesLeft {
  readonly from: FeedCursor;
  readonly place: PagePlace;
}

/**
 * What became of a read of the feed. 'lost': it cannot be told what was committed, because it was pruned or because this
 * is another server, which may lack transactions that memory knows and gives their numbers again.
 */
export interface Followed {
  readonly outcome: 'moves' | 'writes' | 'lost';
  /** Up to where every write is applied, unless lost. */
  readonly stand: FeedStand;
  /** Moves up to there that are not. */
  readonly left: MovesLeft | null;
}

/**
 * Applies every write that was committed after `from`, and as many moves as are on the first page: whoever asks for the
 * newest writes does not wait for millions of moves. With 'writes' it leaves out all moves: others are left already.
 */
export async function followWrites(
  ports: ApplyPorts,
  memory: Memory,
  from: FeedStand,
  first: 'all' | 'writes',
): Promise<Followed> {
  const { sql, ask } = ports;
  const versions = new Map<number, number>();
  let place: PagePlace | null = null;
  let left: MovesLeft | null = null;
  let stand = from;
  do {
    const kinds: 'all' | 'writes' = place === null ? first : 'writes';
    const page: ChangePage = await ask(selectChanges(sql, from.cursor, place, kinds));
    stand = { cursor: page.upTo, history: page.history };
    if (page.pruned || page.history !== from.history) return { outcome: 'lost', stand, left };
    await applyChanges(ports, memory, page.changes);
    for (const { worldId, worldVersion } of page.changes) {
      if (worldId === null || worldVersion === null) continue;
      versions.set(worldId, Math.max(worldVersion, versions.get(worldId) ?? 0));
    }
    place = page.next;
    if (kinds === 'all' && place !== null) left = { from: from.cursor, place };
  } while (place !== null);
  // Only now: one write may reach over several pages.
  for (const [worldId, version] of versions) memory.fleet.raiseVersion(worldId, version);
  return { outcome: versions.size > 0 ? 'writes' : 'moves', stand, left };
}

/** Applies the next page of the moves that are left; returns what is left then. */
export async function followMoves(
  ports: ApplyPorts,
  memory: Memory,
  { from, place }: MovesLeft,
  history: string,
): Promise<MovesLeft | null | 'lost'> {
  const page = await ports.ask(selectChanges(ports.sql, from, place, 'moves'));
  if (page.pruned || page.history !== history) return 'lost';
  await applyChanges(ports, memory, page.changes);
  return page.next === null ? null : { from, place: page.next };
}
