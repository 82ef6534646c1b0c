import type { WatchedAreas } from '../engine/geofences.ts';
import type { AreaCatalog } from './areaCatalog.ts';
import type { Tenancy } from './tenancy.ts';

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
