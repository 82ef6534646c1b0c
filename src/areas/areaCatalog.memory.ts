import { mergedPage, SortedList } from '../devices/sortedList.ts';
import { StayCounts } from '../devices/stayCounts.ts';
import type { AreaType } from './area.ts';
import { AreaIndex } from './areaIndex.ts';
import type { Area } from './knownArea.ts';

/** The areas of one world, sorted by id: all of them, and those of each type for the filtered list. */
class WorldAreas {
  readonly all = new SortedList<Area, number>(idOf);
  readonly byType: Readonly<Record<AreaType, SortedList<Area, number>>> = {
    circle: new SortedList(idOf),
    polygon: new SortedList(idOf),
    polyline: new SortedList(idOf),
    point: new SortedList(idOf),
  };

  list(type: AreaType | null): SortedList<Area, number> {
    return type === null ? this.all : this.byType[type];
  }
}

/**
 * All areas of all tenants, in memory. Readers name the worlds that they may see (one or two) first. `put` and `remove`
 * are the only mutators. Only the follower of the change feed calls them, so changes come in order.
 */
export class AreaCatalog {
  #byId = new Map<number, Area>();
  #byExternalId = new Map<string, Area>();
  #worlds = new Map<number, WorldAreas>();
  #index = new AreaIndex();
  #stays: StayCounts;

  /** `stays`: counts the stays in its areas, with the devices of a Fleet. */
  constructor(stays = new StayCounts()) {
    this.#stays = stays;
  }

  get size(): number {
    return this.#byId.size;
  }

  /** Takes over the contents of `loaded` at once; `loaded` must not be used any more. */
  adopt(loaded: AreaCatalog): void {
    this.#byId = loaded.#byId;
    this.#byExternalId = loaded.#byExternalId;
    this.#worlds = loaded.#worlds;
    this.#index = loaded.#index;
    this.#stays = loaded.#stays;
  }

  /** Adds an area or replaces an earlier revision of it. */
  put(area: Area): void {
    this.remove(area.id);
    this.#byId.set(area.id, area);
    if (area.definition.externalId !== null) this.#byExternalId.set(externalKey(area), area);
    const world = this.#worlds.get(area.worldId) ?? new WorldAreas();
    this.#worlds.set(area.worldId, world);
    world.all.put(area);
    world.list(area.definition.geometry.type).put(area);
    this.#index.put(area);
    this.#stays.putArea(area.id, area.accountId);
  }

  remove(areaId: number): void {
    const area = this.#byId.get(areaId);
    if (area === undefined) return;
    this.#byId.delete(areaId);
    this.#index.remove(areaId);
    this.#stays.removeArea(areaId);
    if (this.#byExternalId.get(externalKey(area)) === area) this.#byExternalId.delete(externalKey(area));
    const world = this.#worlds.get(area.worldId);
    world?.all.remove(areaId);
    world?.list(area.definition.geometry.type).remove(areaId);
    if (world?.all.size === 0) this.#worlds.delete(area.worldId);
  }

  revisionOf(areaId: number): number | undefined {
    return this.#byId.get(areaId)?.revision;
  }

  /** The area with this id if it is in one of `worldIds`. */
  area(worldIds: readonly number[], areaId: number): Area | undefined {
    const area = this.#byId.get(areaId);
    return area !== undefined && worldIds.includes(area.worldId) ? area : undefined;
  }

  /** The area that `accountId` created with this external id, if it is in one of `worldIds`. */
  byExternalId(worldIds: readonly number[], accountId: number, externalId: string): Area | undefined {
    const area = this.#byExternalId.get(`${accountId} ${externalId}`);
    return area !== undefined && worldIds.includes(area.worldId) ? area : undefined;
  }

  /** At least the areas of these worlds that contain the position, each once, in any order. */
  near(worldIds: readonly number[], lat: number, lng: number): readonly Area[] {
    return this.#index.near(worldIds, lat, lng);
  }

  /** At least the areas of these worlds that have a position in common with the area, itself among them. */
  meeting(worldIds: readonly number[], { shape }: Area): ReadonlySet<Area> {
    return this.#index.meeting(worldIds, shape.parts);
  }

  count(worldIds: readonly number[], type: AreaType | null): number {
    let count = 0;
    for (const worldId of worldIds) count += this.#worlds.get(worldId)?.list(type).size ?? 0;
    return count;
  }

  /** Areas of one or two worlds, of one type or all, ordered by id. */
  page(worldIds: readonly number[], type: AreaType | null, offset: number, limit: number): Area[] {
    const lists = worldIds
      .map((worldId) => this.#worlds.get(worldId)?.list(type))
      .filter((list) => list !== undefined);
    return mergedPage(lists, offset, limit);
  }
}

function idOf(area: Area): number {
  return area.id;
}

function externalKey(area: Area): string {
  return `${area.accountId} ${area.definition.externalId}`;
}
