import RBush from 'rbush';
import { mergedPage, SortedList } from '../devices/sortedList.ts';
import { StayCounts } from '../devices/stays/stayCounts.ts';
import type { IndexBox } from '../geo/bounds.ts';
import { invariant } from '../lib/invariant.ts';
import type { AreaType, StoredArea } from './area.ts';
import type { Shape } from './shape.ts';

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
 * are the only mutators. Only the follower of the change log calls them, so changes come in order.
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

/** An area in memory: what is stored, and its compiled shape. */
export interface Area extends StoredArea {
  readonly shape: Shape;
}

interface Entry extends IndexBox {
  readonly placing: Placing;
}

/** An area, and its entries in the tree of its world. */
interface Placing {
  readonly area: Area;
  readonly entries: Entry[];
  /** Only during a search: it has been found by another of its boxes. */
  isFound: boolean;
}

interface WorldTree {
  readonly tree: RBush<Entry>;
  areaCount: number;
}

/**
 * Finds the areas that may contain a position, with an R-tree per world over the boxes of their shapes. The boxes are
 * split at the antimeridian and padded outward, and a long track has several. So the index may find too much but never
 * too little.
 */
export class AreaIndex {
  readonly #worlds = new Map<number, WorldTree>();
  /** By area id: a tree removes only the same objects that were inserted. */
  readonly #placings = new Map<number, Placing>();

  /** Adds an area, or replaces an earlier revision of it, which may be in another world. */
  put(area: Area): void {
    const { worldId } = area;
    const placing: Placing = { area, entries: [], isFound: false };
    for (const { minX, minY, maxX, maxY } of area.shape.parts) {
      // A box of NaN would never be found and never be removed.
      invariant(Number.isFinite(minX + minY + maxX + maxY), `area ${area.id} has a box of finite numbers`);
      placing.entries.push({ minX, minY, maxX, maxY, placing });
    }
    this.remove(area.id);
    const world = this.#worlds.get(worldId) ?? { tree: new RBush<Entry>(), areaCount: 0 };
    this.#worlds.set(worldId, world);
    this.#placings.set(area.id, placing);
    for (const entry of placing.entries) world.tree.insert(entry);
    world.areaCount++;
  }

  remove(areaId: number): void {
    const placing = this.#placings.get(areaId);
    if (placing === undefined) return;
    this.#placings.delete(areaId);
    const { worldId } = placing.area;
    const world = this.#worlds.get(worldId);
    invariant(world, 'the world of an area that is placed has a tree');
    for (const entry of placing.entries) world.tree.remove(entry);
    world.areaCount--;
    if (world.areaCount === 0) this.#worlds.delete(worldId);
  }

  /** The areas of these worlds with a box around the position (degrees), each once, in any order. */
  near(worldIds: readonly number[], lat: number, lng: number): readonly Area[] {
    let found: Area[] | undefined;
    let several: Placing[] | undefined;
    for (const worldId of worldIds) {
      const world = this.#worlds.get(worldId);
      if (world === undefined) continue;
      for (const { placing } of world.tree.search({ minX: lng, minY: lat, maxX: lng, maxY: lat })) {
        if (placing.isFound) continue;
        found ??= [];
        found.push(placing.area);
        if (placing.entries.length === 1) continue;
        placing.isFound = true;
        several ??= [];
        several.push(placing);
      }
    }
    if (several !== undefined) for (const placing of several) placing.isFound = false;
    return found ?? NO_AREAS;
  }

  /** The areas of these worlds with a box that meets one of `boxes`, each once, in any order. */
  meeting(worldIds: readonly number[], boxes: readonly IndexBox[]): ReadonlySet<Area> {
    const found = new Set<Area>();
    for (const worldId of worldIds) {
      const tree = this.#worlds.get(worldId)?.tree;
      for (const box of boxes) for (const { placing } of tree?.search(box) ?? []) found.add(placing.area);
    }
    return found;
  }
}

const NO_AREAS: readonly Area[] = [];
