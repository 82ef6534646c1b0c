import RBush from 'rbush';
import { invariant } from '../base/invariant.ts';
import type { IndexBox } from '../geometry/bounds.ts';
import type { Area } from './area.ts';

interface Entry extends IndexBox {
  readonly area: Area;
}

interface WorldTree {
  readonly tree: RBush<Entry>;
  entryCount: number;
}

/**
 * Which areas may contain a position: an R-tree per world over the boxes of their shapes, which are plain (split at
 * the antimeridian) and padded outward, so it finds too much rather than too little.
 */
export class AreaIndex {
  readonly #worlds = new Map<number, WorldTree>();
  /** By area: the tree forgets only the very objects that it was given. */
  readonly #entries = new Map<number, readonly Entry[]>();

  /** Adds an area, in the place of an earlier revision wherever that was. */
  put(area: Area): void {
    this.remove(area.id);
    const world = this.#worlds.get(area.worldId) ?? { tree: new RBush<Entry>(NODE_ENTRIES), entryCount: 0 };
    this.#worlds.set(area.worldId, world);
    const entries = area.shape.boxes.map(({ minX, minY, maxX, maxY }) => {
      // A box of NaN would be found never and removed never.
      invariant(Number.isFinite(minX + minY + maxX + maxY), `area ${area.id} has a box of finite numbers`);
      return { minX, minY, maxX, maxY, area };
    });
    for (const entry of entries) world.tree.insert(entry);
    world.entryCount += entries.length;
    this.#entries.set(area.id, entries);
  }

  remove(areaId: number): void {
    const entries = this.#entries.get(areaId);
    const worldId = entries?.[0]?.area.worldId;
    const world = worldId === undefined ? undefined : this.#worlds.get(worldId);
    if (entries === undefined || worldId === undefined || world === undefined) return;
    this.#entries.delete(areaId);
    for (const entry of entries) world.tree.remove(entry);
    world.entryCount -= entries.length;
    if (world.entryCount === 0) this.#worlds.delete(worldId);
  }

  /** The areas of these worlds with a box around the position (degrees), each once, in any order. */
  near(worldIds: readonly number[], lat: number, lng: number): readonly Area[] {
    let found: Area[] | undefined;
    for (const worldId of worldIds) {
      const world = this.#worlds.get(worldId);
      if (world === undefined) continue;
      for (const { area } of world.tree.search({ minX: lng, minY: lat, maxX: lng, maxY: lat })) {
        found ??= [];
        if (area.shape.boxes.length === 1 || !found.includes(area)) found.push(area);
      }
    }
    return found ?? NO_AREAS;
  }
}

/** Entries of a node; 16 is quicker than the package's 9 in both, filling and searching. */
const NODE_ENTRIES = 16;

const NO_AREAS: readonly Area[] = [];
