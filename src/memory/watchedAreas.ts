import type { WatchedAreas } from '../engine/geofences.ts';
import type { AreaCatalog } from './areaCatalog.ts';
import type { Tenancy } from './tenancy.ts';

/**
 * The areas that watch the devices of one world, as the engine asks for them. Made for one batch and not kept: who
 * belongs to whom is looked up here, once.
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
