import { Device, type NearDevice } from './device.ts';
import type { DeviceColumns } from './deviceColumns.memory.ts';
import type { RowFilter } from './living/rowFilter.memory.ts';
import type { World } from './world.memory.ts';

/** Those who pass a filter, for an account: which of them are searched together depends on what it asks. */
export interface Passing {
  readonly rows: RowFilter;
  readonly accountId: number;
}

/**
 * The `limit` devices of some worlds that are nearest to a point, no farther than `maxM` metres, by distance, then by IMEI.
 * `passing`: only those; null: all. Null when it would take more than about a millisecond. They are read when they are
 * asked: see Device.
 */
export function nearestOfWorlds(
  columns: DeviceColumns,
  worlds: ReadonlyMap<number, World>,
  worldIds: readonly number[],
  lat: number,
  lng: number,
  limit: number,
  maxM: number,
  passing: Passing | null,
): NearDevice[] | null {
  let found: NearDevice[] = [];
  for (const worldId of worldIds) {
    const world = worlds.get(worldId);
    if (world === undefined || world.positions.size === 0) continue;
    // The last distance found in the first world bounds the search in the second.
    const last = found[limit - 1];
    const reachM = last === undefined ? maxM : Math.min(maxM, last.distanceM);
    const hits =
      passing === null
        ? world.positions.near(lat, lng, limit, reachM)
        : world.subsets.near(passing.accountId, passing.rows, lat, lng, limit, reachM);
    if (hits === null) return null;
    const near = hits.map(({ slot, distanceM }) => ({ device: new Device(columns, slot), distanceM }));
    found = found.length === 0 ? near : merged(found, near, limit);
  }
  return found;
}

/** Merges two sorted lists. At equal distances the lower IMEI comes first, so that equal queries have equal results. */
function merged(a: readonly NearDevice[], b: readonly NearDevice[], limit: number): NearDevice[] {
  return [...a, ...b]
    .sort((x, y) => x.distanceM - y.distanceM || (x.device.imei < y.device.imei ? -1 : 1))
    .slice(0, limit);
}
