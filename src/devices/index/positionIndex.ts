import { isLatLng, writeSurfacePoint } from '../../geo/wgs84.ts';
import { invariant } from '../../lib/errors.ts';
import { passingNumbers, radixOrder, release } from '../../lib/radixOrder.ts';
import type { Steps } from '../../lib/workTurns.ts';
import type { NearHit, Precedes } from './nearestHits.ts';
import { type Region, walkRegion } from './regionWalk.ts';
import { type Cell, Search, type SlotFilter, splitCell, WHOLE_EARTH } from './search.ts';
import { type IndexedSlots, LATTICE_CENTRE, STEPS_PER_M, Trie, trieOrder } from './trie.ts';

/** The query of a search that continues while devices move. */
export interface SearchInSteps {
  readonly lat: number;
  readonly lng: number;
  readonly limit: number;
  /** Devices farther away than this do not matter any more. */
  readonly reachM: number;
}

/**
 * The positions of one world's devices, indexed for queries of the nearest. Devices are identified by slots, of which the
 * index keeps a number and a position where the owner says; beside those it takes some 30 bytes for each device.
 *
 * With earth-centred coordinates, 180° and the poles need no special cases, and the search compares chords instead of
 * computing angles. Nothing is ever rebuilt; at most a `put` doubles an array.
 */
export class PositionIndex {
  private readonly trie: Trie;
  private readonly slots: IndexedSlots;
  private devices = 0;
  private readonly precedes: Precedes;

  constructor(slots: IndexedSlots) {
    this.trie = new Trie(slots);
    this.slots = slots;
    this.precedes = (slot, other) => slots.compare(slot, other) < 0;
  }

  /** How many devices are in the index. */
  get size(): number {
    return this.devices;
  }

  /** Nodes and blocks of the trie in use, and the bytes of all arrays including free room. */
  get usage(): { readonly nodes: number; readonly blocks: number; readonly bytes: number } {
    const { nodesInUse, blocksInUse, bytes } = this.trie;
    return { nodes: nodesInUse, blocks: blocksInUse, bytes };
  }

  /** Adds the device or moves it there. */
  put(slot: number, lat: number, lng: number): void {
    invariant(isLatLng(lat, lng), 'position index: not a position');
    toLattice(lat, lng);
    const x = lattice[0]!;
    const y = lattice[1]!;
    const z = lattice[2]!;
    const isPresent = this.trie.has(slot);
    if (isPresent && this.slots.lat(slot) === lat && this.slots.lng(slot) === lng) return;
    if (isPresent && this.trie.shift(slot, x, y, z)) {
      this.slots.setLatLng(slot, lat, lng);
      return;
    }
    if (isPresent) this.trie.erase(slot);
    else this.devices++;
    this.slots.setLatLng(slot, lat, lng);
    this.trie.insert(slot, x, y, z);
  }

  /**
   * Adds slots whose positions their owner has set, in the order in which the trie has them: so one finds in the caches of
   * the processor what the one before it has used.
   */
  *fill(slots: ArrayLike<number>): Steps<void> {
    this.trie.expect(slots.length);
    const points = passingNumbers(3 * slots.length);
    const order = yield* radixOrder(slots.length, (n) => {
      toLattice(this.slots.lat(slots[n]!), this.slots.lng(slots[n]!));
      points.set(lattice, 3 * n);
      return trieOrder(lattice[0]!, lattice[1]!, lattice[2]!);
    });
    for (let n = 0; n < order.length; n++) {
      const at = order[n]!;
      this.trie.insert(slots[at]!, points[3 * at]!, points[3 * at + 1]!, points[3 * at + 2]!);
      if (n % FILLED_PER_STEP === 0) yield;
    }
    release(order);
    release(points);
    this.devices += slots.length;
  }

  /** Removes the device; false when it was not in the index. */
  remove(slot: number): boolean {
    if (!this.trie.has(slot)) return false;
    this.trie.erase(slot);
    this.devices--;
    return true;
  }

  /**
   * The `limit` (1 to 1000) devices nearest by `distanceM`, at most `maxM` metres away (inclusive), of those that pass the
   * filter. They are sorted by distance, then in the order of slots. To merge worlds, pass the last distance found in one
   * as `maxM` for the next. Null when it would take more than about a millisecond, because thousands are equally far away
   * or turned down.
   */
  near(
    lat: number,
    lng: number,
    limit: number,
    maxM = Infinity,
    filter: SlotFilter | null = null,
  ): NearHit[] | null {
    invariant(isLatLng(lat, lng), 'position index: not a position');
    const { trie, slots, precedes } = this;
    const hits = search.run(trie, slots, lat, lng, limit, maxM, precedes, WHOLE_EARTH, filter);
    return search.isCut ? null : hits;
  }

  /** How many devices the last `near` has turned down. */
  get rejected(): number {
    return search.rejected;
  }

  /** Visits the devices in a region, in steps: see walkRegion. */
  within(region: Region, visit: (slot: number) => void): Steps<void> {
    return walkRegion(this.trie, this.slots, region, visit);
  }

  /**
   * As `near`, without a filter, in steps of about a millisecond, between which devices may be added, moved and
   * removed. The set `skipped` may grow between steps. The `limit` nearest of the devices that do not change and are
   * not in it are offered, some more than once. A part of the index that takes too long is split.
   */
  *nearInSteps(
    query: SearchInSteps,
    skipped: ReadonlySet<number>,
    offer: (hits: readonly NearHit[]) => void,
  ): Steps<void> {
    const { lat, lng, limit } = query;
    const filter: SlotFilter = { passes: (slot) => !skipped.has(slot), work: 0 };
    const cells: Cell[] = [WHOLE_EARTH];
    for (let cell = cells.pop(); cell !== undefined; cell = cells.pop()) {
      const { trie, slots, precedes } = this;
      offer(search.run(trie, slots, lat, lng, limit, query.reachM, precedes, cell, filter));
      if (search.isCut) cells.push(...splitCell(trie, cell, search.query, search.lastPosition));
      yield;
    }
  }
}

/** Slots that are filled in before other work has its turn: a fraction of a millisecond. */
const FILLED_PER_STEP = 1_024;

function toLattice(lat: number, lng: number): void {
  writeSurfacePoint(lat, lng, ecef, 0);
  for (let axis = 0; axis < 3; axis++) {
    lattice[axis] = Math.round(ecef[axis]! * STEPS_PER_M) + LATTICE_CENTRE;
  }
}

// Shared by all indexes, which is safe because no call waits.
const search = new Search();
const ecef = new Float64Array(3);
const lattice = new Int32Array(3);
