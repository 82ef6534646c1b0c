import { isDeepStrictEqual } from 'node:util';
import RBush from 'rbush';
import { mergedPage, SortedList } from '../devices/sortedList.ts';
import { StayCounts } from '../devices/stays/stayCounts.ts';
import type { IndexBox } from '../geo/measure.ts';
import { invariant } from '../lib/errors.ts';
import { radixOrder, release } from '../lib/radixOrder.ts';
import { Pace, type Steps } from '../lib/workTurns.ts';
import type { AreaType, StoredArea } from './area.ts';
import { BoxSearch, NOTHING, type RevisionDigest, sumOf } from './boxSearch.memory.ts';
import type { Shape } from './shape.ts';

/** An area in memory: what is stored, and its shape, the same one until the next revision. */
export interface Area extends StoredArea {
  readonly shape: Shape;
}

/**
 * All areas of all tenants, in memory. Readers name the worlds that they may see (one or two) first. `put` and `remove`
 * are the only mutators of one that is in use. Only the follower of the change feed calls them, so changes come in order.
 */
export class AreaCatalog {
  readonly #byId = new Map<number, Area>();
  readonly #byExternalId = new Map<string, Area>();
  readonly #worlds = new Map<number, WorldAreas>();
  /** What is in no tree yet, by world. */
  readonly #loaded = new Map<number, Entry[]>();
  readonly #stays: StayCounts;

  /** `stays`: counts the stays in its areas, with the devices of a Fleet. */
  constructor(stays = new StayCounts()) {
    this.#stays = stays;
  }

  get size(): number {
    return this.#byId.size;
  }

  /** Whether it has the area, just as it is stored. */
  holds({ id, revision, worldId, accountId, createdAtMs, definition, measures }: StoredArea): boolean {
    const held = this.#byId.get(id);
    return (
      held?.revision === revision &&
      held.worldId === worldId &&
      held.accountId === accountId &&
      held.createdAtMs === createdAtMs &&
      isDeepStrictEqual(held.definition, definition) &&
      isDeepStrictEqual(held.measures, measures)
    );
  }

  /** Removes the areas that are not among these. */
  *keep(ids: ReadonlySet<number>): Steps<void> {
    const pace = new Pace();
    for (const id of this.#byId.keys()) {
      if (!ids.has(id)) this.remove(id);
      if (pace.isDue()) yield* pace.pause();
    }
  }

  /** Adds an area, or replaces an earlier revision of it, which may be in another world. */
  put(area: Area): void {
    const entries = entriesOf(area);
    this.remove(area.id);
    const { tree } = this.#add(area);
    for (const entry of entries) tree.insert(entry);
  }

  /** Adds an area that is not there. Searches find it only after `index`, which takes less time than one by one. */
  load(area: Area): void {
    invariant(!this.#byId.has(area.id), 'an area is loaded once');
    this.#add(area);
    const loaded = this.#loaded.get(area.worldId);
    if (loaded === undefined) this.#loaded.set(area.worldId, entriesOf(area));
    else loaded.push(...entriesOf(area));
  }

  /** Puts all that was loaded into the trees of its worlds. */
  *index(): Steps<void> {
    for (const [worldId, entries] of this.#loaded) {
      const world = this.#worlds.get(worldId);
      const order = yield* radixOrder(entries.length, (n) => curveOrder(entries[n] as Entry));
      // Entries that follow each other on the curve are near each other: each part becomes a branch of the tree.
      for (let at = 0; at < order.length; at += ENTRIES_PER_STEP) {
        world?.tree.load(Array.from(order.subarray(at, at + ENTRIES_PER_STEP), (n) => entries[n] as Entry));
        world?.boxes.changed();
        yield;
      }
      release(order);
    }
    this.#loaded.clear();
  }

  #add(area: Area): WorldAreas {
    this.#byId.set(area.id, area);
    if (area.definition.externalId !== null) this.#byExternalId.set(externalKey(area), area);
    let world = this.#worlds.get(area.worldId);
    if (world === undefined) {
      world = new WorldAreas();
      this.#worlds.set(area.worldId, world);
    }
    world.all.put(area);
    world.list(area.definition.geometry.type).put(area);
    world.boxes.changed();
    this.#stays.putArea(area.id, area.accountId);
    return world;
  }

  remove(areaId: number): void {
    const area = this.#byId.get(areaId);
    if (area === undefined) return;
    this.#byId.delete(areaId);
    this.#stays.removeArea(areaId);
    if (this.#byExternalId.get(externalKey(area)) === area) this.#byExternalId.delete(externalKey(area));
    const world = this.#worlds.get(area.worldId);
    invariant(world, 'the world of an area in the catalog is in it too');
    world.all.remove(areaId);
    world.list(area.definition.geometry.type).remove(areaId);
    for (const entry of entriesOf(area)) world.tree.remove(entry, isOfSameArea);
    world.boxes.changed();
    if (world.all.size === 0) this.#worlds.delete(area.worldId);
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

  /** The areas of these worlds that may contain the position (degrees), each once, in any order. */
  near(worldIds: readonly number[], lat: number, lng: number): readonly Area[] {
    let found: Area[] | undefined;
    let several: Set<Area> | undefined;
    const [x, y] = [down(lng), down(lat)];
    for (const worldId of worldIds) {
      const world = this.#worlds.get(worldId);
      if (world === undefined) continue;
      for (const { area, isOnly } of world.tree.search({ minX: x, minY: y, maxX: x, maxY: y })) {
        if (!isOnly) {
          several ??= new Set();
          if (several.has(area)) continue;
          several.add(area);
        }
        found ??= [];
        found.push(area);
      }
    }
    return found ?? NO_AREAS;
  }

  /** The areas of these worlds that may have a position in common with the area, itself among them. */
  meeting(worldIds: readonly number[], wanted: Area): ReadonlySet<Area> {
    const found = new Set<Area>();
    const boxes = entriesOf(wanted);
    for (const worldId of worldIds) {
      const tree = this.#worlds.get(worldId)?.tree;
      for (const box of boxes) for (const { area } of tree?.search(box) ?? []) found.add(area);
    }
    return found;
  }

  /** The areas of these worlds that may have a position in a box (degrees), each once, in any order. */
  *inBox(worldIds: readonly number[], box: IndexBox): Steps<Area[]> {
    const found = new Set<Area>();
    for (const worldId of worldIds) {
      const world = this.#worlds.get(worldId);
      if (world === undefined) continue;
      for (const area of yield* world.boxes.inBox(stepped(box))) found.add(area);
    }
    return [...found];
  }

  /** Which revisions of which areas `inBox` finds, as a digest that is the same on every pod. */
  *digest(worldIds: readonly number[], box: IndexBox): Steps<RevisionDigest> {
    let digest = NOTHING;
    for (const worldId of worldIds) {
      const world = this.#worlds.get(worldId);
      if (world !== undefined) digest = sumOf(digest, yield* world.boxes.digest(stepped(box)));
    }
    return digest;
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
  readonly boxes = new BoxSearch(this.tree);

  list(type: AreaType | null): SortedList<Area, number> {
    return type === null ? this.all : this.byType[type];
  }
}

/**
 * A box of an area's shape. Boxes are split at the antimeridian and padded outward, and a long polyline has several. So
 * a search may find too much but never too little. Sides are whole numbers of steps, which take half the memory of
 * other numbers.
 */
interface Entry extends IndexBox {
  readonly area: Area;
  /** The area has no other box. */
  readonly isOnly: boolean;
}

function stepped({ minX, minY, maxX, maxY }: IndexBox): IndexBox {
  return { minX: down(minX), minY: down(minY), maxX: up(maxX), maxY: up(maxY) };
}

function entriesOf(area: Area): Entry[] {
  const parts = area.shape.parts();
  return parts.map((part) => {
    // A box of NaN would be found where it is not.
    const sum = part.minX + part.minY + part.maxX + part.maxY;
    invariant(Number.isFinite(sum), `area ${area.id} has a box of finite numbers`);
    return {
      area,
      isOnly: parts.length === 1,
      minX: down(part.minX),
      minY: down(part.minY),
      maxX: up(part.maxX),
      maxY: up(part.maxY),
    };
  });
}

/** A degree: 180 of them are below 2^30, up to where V8 keeps whole numbers in the field itself. */
const STEPS = 5e6;

/** Degrees in whole steps, outward at the west and south side of a box. */
function down(degrees: number): number {
  return Math.floor(degrees * STEPS) | 0;
}

/** The same at its east and north side. */
function up(degrees: number): number {
  return Math.ceil(degrees * STEPS) | 0;
}

/** A shape has the same boxes each time, so an entry that is made again finds the one in the tree, or its twin. */
function isOfSameArea(a: Entry, b: Entry): boolean {
  return a.area === b.area && a.minX === b.minX && a.minY === b.minY;
}

/** Three full levels of a tree with nine branches each, and some milliseconds of work. */
const ENTRIES_PER_STEP = 9 ** 3;

/** Where the corner of a box is on a curve through all of the earth that turns at every bit of its coordinates. */
function curveOrder({ minX, minY }: Entry): number {
  return (spread((minX / STEPS + 180) / 360) * 2 + spread((minY / STEPS + 90) / 180)) >>> 0;
}

/** The first 16 bits behind the point of a number from 0 to 1, each at every second place. */
function spread(share: number): number {
  let bits = Math.max(0, Math.min(0xffff, Math.floor(share * 0x10000)));
  bits = (bits | (bits << 8)) & 0x00ff00ff;
  bits = (bits | (bits << 4)) & 0x0f0f0f0f;
  bits = (bits | (bits << 2)) & 0x33333333;
  return (bits | (bits << 1)) & 0x55555555;
}

function idOf(area: Area): number {
  return area.id;
}

function externalKey(area: Area): string {
  return `${area.accountId} ${area.definition.externalId}`;
}

const NO_AREAS: readonly Area[] = [];
