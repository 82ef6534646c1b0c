import { invariant } from '../base/invariant.ts';
import type { Steps } from '../base/workTurns.ts';
import { isLatLng } from '../geometry/latLng.ts';
import { writeSurfacePoint } from '../geometry/surfacePoint.ts';
import { type Cell, splitCell, WHOLE } from './positionIndexCell.ts';
import type { RankOf } from './positionIndexCrowd.ts';
import type { NearHit, Precedes } from './positionIndexHeap.ts';
import { LATTICE_CENTRE, STEPS_PER_M } from './positionIndexLattice.ts';
import { EVERYTHING, PositionIndexSearch } from './positionIndexSearch.ts';
import { type Places, PositionIndexTrie } from './positionIndexTrie.ts';

/** What is asked of a search that goes on while devices move. */
export interface SearchInSteps {
  readonly lat: number;
  readonly lng: number;
  readonly limit: number;
  /** Nobody farther away matters any more. */
  readonly reachM: number;
}

/**
 * The positions of one world's devices, ready for the question which are nearest. Devices are known by slots, small
 * integers that the owner hands out densely per world: memory grows with the highest slot, 50 to 100 bytes each.
 *
 * Earth-centred coordinates make 180° and the poles ordinary places and let the search compare chords instead of
 * computing angles. There is never anything to rebuild; the longest a `put` takes is to double an array.
 */
export class PositionIndex implements Places {
  private readonly trie: PositionIndexTrie;
  /** Latitude and longitude of slot s at 2s and 2s + 1: the lattice of the trie is too coarse for exact distances. */
  private positions = new Float64Array(0);
  private devices = 0;
  private readonly precedes: Precedes;

  /** Of devices equally far away the one of the lower rank goes first. */
  constructor(rankOf: RankOf = (slot) => slot) {
    this.trie = new PositionIndexTrie(this, rankOf);
    this.precedes = (slot, other) => rankOf(slot) < rankOf(other);
  }

  /** How many devices are in. */
  get size(): number {
    return this.devices;
  }

  /** Parts of the trie in use, and the bytes of all arrays, free room included. */
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
    const isIn = this.trie.has(slot);
    if (isIn && this.positions[2 * slot] === lat && this.positions[2 * slot + 1] === lng) return;
    if (isIn && this.trie.shift(slot, x, y, z)) {
      this.place(slot, lat, lng);
      return;
    }
    if (isIn) {
      this.trie.erase(slot);
    } else {
      this.devices++;
      this.reserve(slot);
    }
    this.place(slot, lat, lng);
    this.trie.insert(slot, x, y, z);
  }

  /** Takes the device out; false when it was not in. */
  remove(slot: number): boolean {
    if (!this.trie.has(slot)) return false;
    this.trie.erase(slot);
    this.devices--;
    return true;
  }

  /**
   * The `limit` (1 to 1000) devices nearest by `distanceM`, at most `maxM` metres away (inclusive), nearest first,
   * of equals the one of the lower rank first. To merge worlds, pass the last distance found in one as `maxM` for the
   * next. Null where that takes more than about a millisecond: thousands are equally far away.
   */
  near(lat: number, lng: number, limit: number, maxM = Infinity): NearHit[] | null {
    invariant(isLatLng(lat, lng), 'position index: not a position');
    const hits = search.run(this.trie, this.positions, lat, lng, limit, maxM, this.precedes, EVERYTHING);
    return search.isCut ? null : hits;
  }

  /**
   * The same in steps of about a millisecond, between which devices may come, move and leave. Of those that stay where
   * they are and are not in `passed`, which may grow, the `limit` nearest are offered, some of them more than once. A
   * part of the index that takes too long is split.
   */
  *nearInSteps(
    asked: SearchInSteps,
    passed: ReadonlySet<number>,
    offer: (hits: readonly NearHit[]) => void,
  ): Steps<void> {
    const { lat, lng, limit } = asked;
    const cells: Cell[] = [WHOLE];
    for (let cell = cells.pop(); cell !== undefined; cell = cells.pop()) {
      const { trie, positions, precedes } = this;
      offer(search.run(trie, positions, lat, lng, limit, asked.reachM, precedes, { cell, passed }));
      if (search.isCut) cells.push(...splitCell(trie, cell, search.place, search.lastSpot));
      yield;
    }
  }

  latOf(slot: number): number {
    return this.positions[2 * slot]!;
  }

  lngOf(slot: number): number {
    return this.positions[2 * slot + 1]!;
  }

  private place(slot: number, lat: number, lng: number): void {
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

/** Keeps a mistaken slot from claiming gigabytes. */
const MAX_SLOTS = 2 ** 24;

// One of each for all indexes: no call ever waits for anything.
const search = new PositionIndexSearch();
const ecef = new Float64Array(3);
