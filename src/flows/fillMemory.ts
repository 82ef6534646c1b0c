import { DeadlineExceeded, withDeadline } from '../base/deadline.ts';
import { AreaCatalog } from '../memory/areaCatalog.ts';
import { Fleet } from '../memory/fleet.ts';
import { Subscriptions } from '../memory/subscriptions.ts';
import { Tenancy } from '../memory/tenancy.ts';
import { adoptFeed, type FeedStand } from '../store/changes.ts';
import type { ApplyPorts, Memory } from './applyChanges.ts';
import { followMoves, followWrites, type MovesLeft } from './followPages.ts';
import { LOAD_DEADLINE_MS, loadFleet } from './loadFleet.ts';

export interface FillPorts extends ApplyPorts {
  readonly log: { info(fields: object, message: string): void };
}

/** Fills an empty memory from one snapshot; returns where that stands in the feed. */
export async function fillMemory({ sql, turns, log }: FillPorts, memory: Memory): Promise<FeedStand> {
  const { keyring } = memory;
  await adoptFeed(sql);
  keyring.clear();
  const tell = (loaded: number, total: number) => log.info({ loaded, total }, 'loading devices');
  const loading = loadFleet(sql, turns, memory, tell);
  const stand = await withDeadline(loading, LOAD_DEADLINE_MS, 'loading memory');
  // A key that was read since may have changed before the snapshot; the feed will not tell of that.
  keyring.clear();
  return stand;
}

/**
 * Fills a memory beside the present one, which goes on answering and taking points, and puts it in its place from one
 * moment to the next: what is gone from Postgres is then gone, and what is there was never missing. `onReplaced` is told
 * in that moment where memory stands.
 */
export async function refillMemory(
  ports: FillPorts,
  { fleet, areas, tenancy, subscriptions, keyring }: Memory,
  onReplaced: (stand: FeedStand) => void,
): Promise<void> {
  const loaded = {
    fleet: new Fleet(),
    areas: new AreaCatalog(),
    tenancy: new Tenancy(),
    subscriptions: new Subscriptions(),
    keyring,
  };
  try {
    const from = await fillMemory(ports, loaded);
    // What this pod commits from here on is in neither the load nor the read that follows.
    fleet.prepareFor(loaded.fleet);
    const stand = await followAll(ports, loaded, from);
    fleet.adopt(loaded.fleet);
    areas.adopt(loaded.areas);
    tenancy.adopt(loaded.tenancy);
    subscriptions.adopt(loaded.subscriptions);
    onReplaced(stand);
  } finally {
    fleet.prepareFor(null);
  }
}

async function followAll(ports: FillPorts, memory: Memory, from: FeedStand): Promise<FeedStand> {
  const { outcome, stand, left } = await followWrites(ports, memory, from, 'all');
  let rest: MovesLeft | null | 'lost' = outcome === 'lost' ? outcome : left;
  while (rest !== null) {
    if (rest === 'lost') throw new DeadlineExceeded('the feed was lost while memory was loaded');
    rest = await followMoves(ports, memory, rest, from.history);
  }
  return stand;
}
