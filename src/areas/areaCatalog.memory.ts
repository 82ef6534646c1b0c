import RBush from 'rbush';
import { mergedPage, SortedList } from '../devices/sortedList.ts';
import { StayCounts } from '../devices/stays/stayCounts.ts';
import type { IndexBox } from '../geo/measure.ts';
import { invariant } from '../lib/errors.ts';
import type { AreaType, Shape, StoredArea } from './area.ts';

/** An area in memory: what is stored, and its compiled shape. */
export interface Area extends StoredArea {
  readonly shape: Shape;
}

/**
 * All areas of all tenants, in memory. Readers name the worlds that they may see (one or two) first. `put` and `remove`
 * are the only mutators. Only the follower of the change feed calls them, so changes come in order.
 */
export class AreaCatalog {
  #byId = new Map<number, IndexedArea>();
  #byExternalId = new Map<string, Area>();
  #worlds = new Map<number, WorldAreas>();
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
    this.#stays = loaded.#stays;
  }

  /** Adds an area, or replaces an earlier revision of it, which may be in another world. */
  put(area: Area): void {
    const indexed = indexedArea(area);
    this.remove(area.id);
    this.#byId.set(area.id, indexed);
    if (area.definition.externalId !== null) this.#byExternalId.set(externalKey(area), area);
    let world = this.#worlds.get(area.worldId);
    if (world === undefined) {
      world = new WorldAreas();
      this.#worlds.set(area.worldId, world);
    }
    world.all.put(area);
    world.list(area.definition.geometry.type).put(area);
    for (const entry of indexed.entries) world.tree.insert(entry);
    this.#stays.putArea(area.id, area.accountId);
  }

  remove(areaId: number): void {
    const indexed = this.#byId.get(areaId);
    if (indexed === undefined) return;
    const { area, entries } = indexed;
    this.#byId.delete(areaId);
    this.#stays.removeArea(areaId);
    if (this.#byExternalId.get(externalKey(area)) === area) this.#byExternalId.delete(externalKey(area));
    const world = this.#worlds.get(area.worldId);
    invariant(world, 'the world of an area in the catalog is in it too');
    world.all.remove(areaId);
    world.list(area.definition.geometry.type).remove(areaId);
    for (const entry of entries) world.tree.remove(entry);
    if (world.all.size === 0) this.#worlds.delete(area.worldId);
  }

  revisionOf(areaId: number): number | undefined {
    return this.#byId.get(areaId)?.area.revision;
  }

  /** The area with this id if it is in one of `worldIds`. */
  area(worldIds: readonly number[], areaId: number): Area | undefined {
    const area = this.#byId.get(areaId)?.area;
    return area !== undefined && worldIds.includes(area.worldId) ? area : undefined;
  }

  /** The area that `accountId` created with this external id, if it is in one of `worldIds`. */
  byExternalId(worldIds: readonly number[], accountId: number, externalId: string): Area | undefined {
    const area = this.#byExternalId.get(`${accountId} ${externalId}`);
    return area !== undefined && worldIds.includes(area.worldId) ? area : undefined;
  }

  /** The areas of these worlds that may contain the position (degrees), each once, in any order. */
  near(worldIds: readonly number[], lat: number, lng: number): readonly Area[] {
    let found: Area[] | undefined;
    let several: IndexedArea[] | undefined;
    for (const worldId of worldIds) {
      const world = this.#worlds.get(worldId);
      if (world === undefined) continue;
      for (const { indexed } of world.tree.search({ minX: lng, minY: lat, maxX: lng, maxY: lat })) {
        if (indexed.isFound) continue;
        found ??= [];
        found.push(indexed.area);
        if (indexed.entries.length === 1) continue;
        indexed.isFound = true;
        several ??= [];
        several.push(indexed);
      }
    }
    if (several !== undefined) for (const indexed of several) indexed.isFound = false;
    return found ?? NO_AREAS;
  }

  /** The areas of these worlds that may have a position in common with the area, itself among them. */
  meeting(worldIds: readonly number[], { shape }: Area): ReadonlySet<Area> {
    const found = new Set<Area>();
    for (const worldId of worldIds) {
      const tree = this.#worlds.get(worldId)?.tree;
      for (const box of shape.parts)
        for (const { indexed } of tree?.search(box) ?? []) found.add(indexed.area);
    }
    return found;
  }

  count(worldIds: readonly number[], type: AreaType | null): number {
    return worldIds.reduce((sum, worldId) => sum + (this.#worlds.get(worldId)?.list(type).size ?? 0), 0);
  }

  /** Areas of one or two worlds, of one type or all, ordered by id. */
  page(worldIds: readonly number[], type: AreaType | null, offset: number, limit: number): Area[] {
    const lists = worldIds
      .map((worldId) => this.#worlds.get(worldId)?.list(type))
      .filter((list) => list !== undefined);
    return mergedPage(lists, offset, limit);
  }
}

/** The areas of one world: all and those of each type, sorted by id, and an R-tree over the boxes of their shapes. */
class WorldAreas {
  readonly all = new SortedList<Area, number>(idOf);
  readonly byType: Readonly<Record<AreaType, SortedList<Area, number>>> = {
    circle: new SortedList(idOf),
    polygon: new SortedList(idOf),
    polyline: new SortedList(idOf),
    point: new SortedList(idOf),
  };
  readonly tree = new RBush<Entry>();

  list(type: AreaType | null): SortedList<Area, number> {
    return type === null ? this.all : this.byType[type];
  }
}

/** An area and its entries in the tree: kept, since a tree removes only the same objects that were inserted. */
interface IndexedArea {
  readonly area: Area;
  readonly entries: Entry[];
  /** Only during a search: it has been found by another of its boxes. */
  isFound: boolean;
}

/**
 * A box of an area's shape. Boxes are split at the antimeridian and padded outward, and a long polyline has several. So
 * a search may find too much but never too little.
 */
interface Entry extends IndexBox {
  readonly indexed: IndexedArea;
}

function indexedArea(area: Area): IndexedArea {
  const indexed: IndexedArea = { area, entries: [], isFound: false };
  for (const { minX, minY, maxX, maxY } of area.shape.parts) {
    // A box of NaN would never be found and never be removed.
    invariant(Number.isFinite(minX + minY + maxX + maxY), `area ${area.id} has a box of finite numbers`);
    indexed.entries.push({ minX, minY, maxX, maxY, indexed });
  }
  return indexed;
}

function idOf(area: Area): number {
  return area.id;
}

function externalKey(area: Area): string {
  return `${area.accountId} ${area.definition.externalId}`;
}

const NO_AREAS: readonly Area[] = [];
