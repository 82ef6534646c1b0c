import type { Steps } from '../lib/workTurns.ts';
import type { LongSearch } from './index/longSearch.ts';
import type { Device, NearDevice } from './device.ts';
import type { World } from './world.memory.ts';

/** The worlds of a fleet, by id. */
type Worlds = ReadonlyMap<number, World>;

/** See Fleet.near. The last distance found in the first world bounds the search in the second. */
export function nearAtOnce(
  worlds: Worlds,
  worldIds: readonly number[],
  lat: number,
  lng: number,
  limit: number,
  maxM: number,
): NearDevice[] | null {
  let found: NearDevice[] = [];
  for (const worldId of worldIds) {
    const world = worlds.get(worldId);
    if (world === undefined || world.positions.size === 0) continue;
    const last = found[limit - 1];
    const hits = world.near(lat, lng, limit, last === undefined ? maxM : Math.min(maxM, last.distanceM));
    if (hits === null) return null;
    found = found.length === 0 ? hits : nearestOf(found, hits, limit);
  }
  return found;
}

/** See Fleet.nearInSteps. */
export function* nearInSteps(
  worlds: Worlds,
  worldIds: readonly number[],
  search: LongSearch,
): Steps<NearDevice[]> {
  const searched = worldIds.map((worldId) => worlds.get(worldId)).filter((world) => world !== undefined);
  for (const world of searched) world.begin(search);
  try {
    for (const world of searched) yield* world.nearInSteps(search);
  } finally {
    for (const world of searched) world.end(search);
  }
  return search.found;
}

const imeiOf = (device: Device): string => device.fields.imei;

/** Merges two sorted lists. At equal distances the lower IMEI comes first, so that equal queries have equal results. */
function nearestOf(a: readonly NearDevice[], b: readonly NearDevice[], limit: number): NearDevice[] {
  return [...a, ...b]
    .sort((x, y) => x.distanceM - y.distanceM || (imeiOf(x.device) < imeiOf(y.device) ? -1 : 1))
    .slice(0, limit);
}
