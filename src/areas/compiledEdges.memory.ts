import { type EdgeIndex, edgeIndexBytes } from '../geo/edgeIndex.ts';
import { NumberPages } from '../lib/numberPages.ts';

/** What holds compiled edges, and compiles them again when it is asked after it has forgotten them. */
export interface EdgeHolder {
  forgetEdges(): void;
}

/**
 * Bounds what the compiled edges of all areas in memory take. Beyond the limit, edges of one of the worlds that hold the
 * most are forgotten, those that were compiled longest ago first. So a world that holds less than half of an equal share
 * of the limit loses nothing, however many areas others ask about.
 *
 * Areas that are gone count until their turn comes. Pages that are not full are not counted: at most 64 KB a world, and no
 * more than about what its edges take.
 */
export class CompiledEdges {
  readonly #maxBytes: number;
  readonly #worlds = new Map<number, WorldEdges>();
  /** The worlds that hold at least 2 ** n bytes and fewer than twice as many. */
  readonly #bySize: Set<WorldEdges>[] = Array.from({ length: SIZES }, () => new Set());
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Where edges of this world are compiled: they are dropped in about the order in which they came. */
  pages(worldId: number): NumberPages {
    return this.#world(worldId).pages;
  }

  /** The holder, an area of this world, has just compiled its edges. */
  keep(worldId: number, holder: EdgeHolder, edges: EdgeIndex): void {
    const bytes = OBJECT_BYTES + edgeIndexBytes(edges);
    const world = this.#world(worldId);
    world.holders.set(holder, bytes);
    this.#resize(world, bytes);
    while (this.#bytes > this.#maxBytes) {
      const largest = this.#largest();
      const [oldest] = largest.holders;
      // What is asked about now is kept, if it has no room at all until the next one comes.
      if (oldest === undefined || oldest[0] === holder) return;
      oldest[0].forgetEdges();
      largest.holders.delete(oldest[0]);
      this.#resize(largest, -oldest[1]);
    }
  }

  #world(worldId: number): WorldEdges {
    let world = this.#worlds.get(worldId);
    if (world === undefined) {
      world = { id: worldId, holders: new Map(), bytes: 0, pages: new NumberPages() };
      this.#worlds.set(worldId, world);
    }
    return world;
  }

  #resize(world: WorldEdges, byBytes: number): void {
    this.#bytes += byBytes;
    this.#bySize[sizeOf(world.bytes)]?.delete(world);
    world.bytes += byBytes;
    if (world.bytes === 0) this.#worlds.delete(world.id);
    else this.#bySize[sizeOf(world.bytes)]?.add(world);
  }

  /** One of the worlds that hold the most; there is one. */
  #largest(): WorldEdges {
    const worlds = this.#bySize.findLast((sameSize) => sameSize.size > 0);
    return worlds?.values().next().value as WorldEdges;
  }
}

interface WorldEdges {
  readonly id: number;
  /** In the order in which they were compiled, with their bytes. */
  readonly holders: Map<EdgeHolder, number>;
  readonly pages: NumberPages;
  bytes: number;
}

/** More than the bits of any limit. */
const SIZES = 32;

function sizeOf(bytes: number): number {
  return 31 - Math.clz32(bytes);
}

/** What compiled edges take beside their numbers. */
const OBJECT_BYTES = 1_000;
