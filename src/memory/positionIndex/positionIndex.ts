import { invariant } from '../../base/invariant.ts';
import type { Steps } from '../../base/workTurns.ts';
import { writeSurfacePoint } from '../../geometry/geodesic/surfacePoint.ts';
import { isLatLng } from '../../geometry/latLng.ts';
import { type Cell, splitCell, WHOLE_EARTH } from './cell.ts';
import type { NearHit, Precedes } from './hitHeap.ts';
import { LATTICE_CENTRE, STEPS_PER_M } from './lattice.ts';
import type { RankOf } from './overflowBucket.ts';
import { EVERYTHING, Search } from './search.ts';
import { type SlotPositions, Trie } from './trie.ts';

/** The query of a search that goes on while devices move. */
export interface SearchInSteps {
  readonly lat: number;
  readonly lng: number;
  readonly limit: number;
  /** Devices farther away than this do not matter any more. */
  readonly reachM: number;
}

/**
 * The positions of one world's devices, indexed for queries of the nearest. Devices are identified by slots: small
 * integers that the owner assigns densely per world. Memory grows with the highest slot, by 50 to 100 bytes each.
 *
 * With earth-centred coordinates 180° and the poles are no special cases, and the search compares chords instead of
 * computing angles. Nothing is ever rebuilt; at most a `put` doubles an array.
 */
export class PositionIndex implements SlotPositions {
  private readonly trie: Trie;
  /** Latitude and longitude of slot s at 2s and 2s + 1: the lattice of the trie is too coarse for exact distances. */
  private positions = new Float64Array(0);
  private devices = 0;
  private readonly precedes: Precedes;

  /** Of devices equally far away, the one with the lower rank comes first. */
  constructor(rankOf: RankOf = (slot) => slot) {
    this.trie = new Trie(this, rankOf);
    this.precedes = (slot, other) => rankOf(slot) < rankOf(other);
  }

  /** How many devices are in the index. */
  get size(): number {
    return this.devices;
  }

  /** Nodes and blocks of the trie in use, and the bytes of all arrays including free room. */
  get usage(): { readonly nodes: number; readonly blocks: number; readonly bytes: number } {
    const { nodesInUse, blocksInUse, bytes } = this.trie;
    return { nodes: nodesInUse, blocks: blocksInUse, bytes: bytes + this.positions.byteLength };
  }

  /** Adds the device or moves it there. */
  put(slot: number, lat: number, lng: number): void {
    invariant(Number.isInteger(slot) && slot >= 0 && slot < MAX_SLOTS, 'position index: slot out of range');
    invariant(isLatLng(lat, lng), 'position index: not a position');
    writeSurfacePoint(lat, lng, ecef, 0);
    const x = Math.round(ecef[0]! * STEPS_PER_M) + LATTICE_CENTRE;
    const y = Math.round(ecef[1]! * STEPS_PER_M) + LATTICE_CENTRE;
    const z = Math.round(ecef[2]! * STEPS_PER_M) + LATTICE_CENTRE;
    const isPresent = this.trie.has(slot);
    if (isPresent && this.positions[2 * slot] === lat && this.positions[2 * slot + 1] === lng) return;
    if (isPresent && this.trie.shift(slot, x, y, z)) {
      this.setPosition(slot, lat, lng);
      return;
    }
    if (isPresent) {
      this.trie.erase(slot);
    } else {
      this.devices++;
      this.reserve(slot);
    }
    this.setPosition(slot, lat, lng);
    this.trie.insert(slot, x, y, z);
  }

  /** Removes the device; false when it was not in the index. */
  remove(slot: number): boolean {
    if (!this.trie.has(slot)) return false;
    this.trie.erase(slot);
    this.devices--;
    return true;
  }

  /**
   * The `limit` (1 to 1000) devices nearest by `distanceM`, at most `maxM` metres away (inclusive). They are sorted by
   * distance, then by rank. To merge worlds, pass the last distance found in one as `maxM` for the next. Null when it
   * would take more than about a millisecond, because thousands are equally far away.
   */
  near(lat: number, lng: number, limit: number, maxM = Infinity): NearHit[] | null {
    invariant(isLatLng(lat, lng), 'position index: not a position');
    const hits = search.run(this.trie, this.positions, lat, lng, limit, maxM, this.precedes, EVERYTHING);
    return search.isCut ? null : hits;
  }

  /**
   * The same in steps of about a millisecond, between which devices may be added, moved and removed. The set `skipped`
   * may grow meanwhile. Of the devices that do not change and are not in it, the `limit` nearest are offered, some of
   * them more than once. A part of the index that takes too long is split.
   */
  *nearInSteps(
    query: SearchInSteps,
    skipped: ReadonlySet<number>,
    offer: (hits: readonly NearHit[]) => void,
  ): Steps<void> {
    const { lat, lng, limit } = query;
    const cells: Cell[] = [WHOLE_EARTH];
    for (let cell = cells.pop(); cell !== undefined; cell = cells.pop()) {
      const { trie, positions, precedes } = this;
      offer(search.run(trie, positions, lat, lng, limit, query.reachM, precedes, { cell, skipped }));
      if (search.isCut) cells.push(...splitCell(trie, cell, search.queryPoint, search.lastPosition));
      yield;
    }
  }

  latOf(slot: number): number {
    return this.positions[2 * slot]!;
  }

  lngOf(slot: number): number {
    return this.positions[2 * slot + 1]!;
  }

  private setPosition(slot: number, lat: number, lng: number): void {
    this.positions[2 * slot] = lat;
    this.positions[2 * slot + 1] = lng;
  }

  private reserve(slot: number): void {
    const length = 2 * slot + 2;
    if (length <= this.positions.length) return;
    const larger = new Float64Array(Math.max(length, 2 * this.positions.length));
    larger.set(this.positions);
    this.positions = larger;
  }
}

/** Prevents a wrong slot from allocating gigabytes. */
const MAX_SLOTS = 2 ** 24;

// Shared by all indexes, which is safe because no call waits.
const search = new Search();
const ecef = new Float64Array(3);
