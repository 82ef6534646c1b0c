import RBush from 'rbush';
import { invariant } from '../base/invariant.ts';
import type { IndexBox } from '../geometry/bounds.ts';
import type { Area } from './area.ts';

interface Entry extends IndexBox {
  readonly area: Area;
  /** Whether the area has no other box. */
  readonly isOnly: boolean;
}

/** The entries of an area and the world whose tree has them. */
interface Placing {
  readonly worldId: number;
  readonly entries: readonly Entry[];
}

interface WorldTree {
  readonly tree: RBush<Entry>;
  areaCount: number;
}

/**
 * Finds the areas that may contain a position, with an R-tree per world over the boxes of their shapes. The boxes are
 * split at the antimeridian and padded outward, so the index may find too much but never too little.
 */
export class AreaIndex {
  readonly #worlds = new Map<number, WorldTree>();
  /** By area id: a tree removes only the same objects that were inserted. */
  readonly #placings = new Map<number, Placing>();

  /** Adds an area, or replaces an earlier revision of it, which may be in another world. */
  put(area: Area): void {
    const { worldId } = area;
    const isOnly = area.shape.boxes.length === 1;
    const entries = area.shape.boxes.map(({ minX, minY, maxX, maxY }) => {
      // A box of NaN would never be found and never be removed.
      invariant(Number.isFinite(minX + minY + maxX + maxY), `area ${area.id} has a box of finite numbers`);
      return { minX, minY, maxX, maxY, area, isOnly };
    });
    this.remove(area.id);
    const world = this.#worlds.get(worldId) ?? { tree: new RBush<Entry>(), areaCount: 0 };
    this.#worlds.set(worldId, world);
    this.#placings.set(area.id, { worldId, entries });
    for (const entry of entries) world.tree.insert(entry);
    world.areaCount++;
  }

  remove(areaId: number): void {
    const placing = this.#placings.get(areaId);
    if (placing === undefined) return;
    this.#placings.delete(areaId);
    const world = this.#worlds.get(placing.worldId);
    invariant(world, 'the world of an area that is placed has a tree');
    for (const entry of placing.entries) world.tree.remove(entry);
    world.areaCount--;
    if (world.areaCount === 0) this.#worlds.delete(placing.worldId);
  }

  /** The areas of these worlds with a box around the position (degrees), each once, in any order. */
  near(worldIds: readonly number[], lat: number, lng: number): readonly Area[] {
    let found: Area[] | undefined;
    for (const worldId of worldIds) {
      const world = this.#worlds.get(worldId);
      if (world === undefined) continue;
      for (const { area, isOnly } of world.tree.search({ minX: lng, minY: lat, maxX: lng, maxY: lat })) {
        found ??= [];
        if (isOnly || !found.includes(area)) found.push(area);
      }
    }
    return found ?? NO_AREAS;
  }

  /** The areas of these worlds with a box that meets one of `boxes`, each once, in any order. */
  meeting(worldIds: readonly number[], boxes: readonly IndexBox[]): ReadonlySet<Area> {
    const found = new Set<Area>();
    for (const worldId of worldIds) {
      const tree = this.#worlds.get(worldId)?.tree;
      for (const box of boxes) for (const { area } of tree?.search(box) ?? []) found.add(area);
    }
    return found;
  }
}

const NO_AREAS: readonly Area[] = [];
