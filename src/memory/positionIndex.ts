import { invariant } from '../base/invariant.ts';
import { isLatLng } from '../geometry/latLng.ts';
import { writeSurfacePoint } from '../geometry/surfacePoint.ts';
import type { NearHit, Precedes } from './positionIndexHeap.ts';
import { LATTICE_CENTRE, STEPS_PER_M } from './positionIndexLattice.ts';
import { PositionIndexSearch } from './positionIndexSearch.ts';
import { PositionIndexTrie } from './positionIndexTrie.ts';

/**
 * The positions of one world's devices, ready for the question which are nearest. Devices are known by slots, small
 * integers that the owner hands out densely per world: memory grows with the highest slot, 50 to 100 bytes each.
 *
 * Earth-centred coordinates make 180° and the poles ordinary places and let the search compare chords instead of
 * computing angles. There is never anything to rebuild; the longest a `put` takes is to double an array.
 */
export class PositionIndex {
  private readonly trie = new PositionIndexTrie();
  /** Latitude and longitude of slot s at 2s and 2s + 1: the lattice of the trie is too coarse for exact distances. */
  private positions = new Float64Array(0);
  private devices = 0;
  private readonly precedes: Precedes;

  constructor(precedes: Precedes = (slot, other) => slot < other) {
    this.precedes = precedes;
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
    if (this.trie.has(slot)) {
      this.trie.move(slot, x, y, z);
    } else {
      this.trie.insert(slot, x, y, z);
      this.devices++;
      this.reserve(slot);
    }
    this.positions[2 * slot] = lat;
    this.positions[2 * slot + 1] = lng;
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
   * of equals the one first that precedes the other. To merge worlds, pass the last distance found in one as `maxM` for the next.
   */
  near(lat: number, lng: number, limit: number, maxM = Infinity): NearHit[] {
    invariant(isLatLng(lat, lng), 'position index: not a position');
    return search.run(this.trie, this.positions, lat, lng, limit, maxM, this.precedes);
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
