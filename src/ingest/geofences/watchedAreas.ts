import type { AreaCatalog } from '../../areas/areaCatalog.memory.ts';
import type { Tenancy } from '../../tenants/tenancy.memory.ts';
import type { WatchedAreas } from './geofences.ts';

/**
 * The areas that watch the devices of one world, for the engine. Made for one batch and not kept: memberships are
 * looked up here, once.
 */
export function watchedAreas(areas: AreaCatalog, tenancy: Tenancy, deviceWorldId: number): WatchedAreas {
  const worldIds = tenancy.watchersOf(deviceWorldId);
  return {
    deviceWorldId,
    near: (lat, lng) => areas.near(worldIds, lat, lng),
    byId: (areaId) => areas.area(worldIds, areaId),
    isShared: (worldId) => tenancy.isShared(worldId),
  };
}
