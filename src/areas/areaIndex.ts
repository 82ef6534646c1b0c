import RBush from 'rbush';
import type { IndexBox } from '../geo/bounds.ts';
import { invariant } from '../lib/invariant.ts';
import type { Area } from './knownArea.ts';

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
