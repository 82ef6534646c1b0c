import { isLatLng, writeSurfacePoint } from '../../geo/wgs84.ts';
import { invariant } from '../../lib/errors.ts';
import type { Steps } from '../../lib/workTurns.ts';
import type { NearHit, Precedes } from './nearestHits.ts';
import type { Rank, RankOf } from './overflowBucket.ts';
import { type Cell, Search, splitCell, WHOLE_EARTH } from './search.ts';
import { LATTICE_CENTRE, type SlotPositions, STEPS_PER_M, Trie } from './trie.ts';

/** The query of a search that continues while devices move. */
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
 * With earth-centred coordinates, 180° and the poles need no special cases, and the search compares chords instead of
 * computing angles. Nothing is ever rebuilt; at most a `put` doubles an array.
 */
export class PositionIndex implements SlotPositions {
  private readonly trie: Trie;
  /** Latitude and longitude of slot s at 2s and 2s + 1: the lattice of the trie is too coarse for exact distances. */
  private positions = new Float64Array(0);
  /**
   * The rank of each slot as a number, never in another order than the ranks. Of thousands that are equally near each is
   * compared; its rank itself is a text far away in memory, and nearly never needed.
   */
  private roughRanks = new Float64Array(0);
  private devices = 0;
  private readonly rankOf: RankOf;
  private readonly precedes: Precedes;

  /** If devices are equally far away, the one with the lower rank comes first. */
  constructor(rankOf: RankOf = (slot) => slot) {
    this.trie = new Trie(this, rankOf);
    this.rankOf = rankOf;
    this.precedes = (slot, other) => {
      const rough = this.roughRanks[slot]!;
      const otherRough = this.roughRanks[other]!;
      return rough === otherRough ? rankOf(slot) < rankOf(other) : rough < otherRough;
    };
  }

  /** How many devices are in the index. */
  get size(): number {
    return this.devices;
  }

  /** Nodes and blocks of the trie in use, and the bytes of all arrays including free room. */
  get usage(): { readonly nodes: number; readonly blocks: number; readonly bytes: number } {
    const { nodesInUse, blocksInUse, bytes } = this.trie;
    return {
      nodes: nodesInUse,
      blocks: blocksInUse,
      bytes: bytes + this.positions.byteLength + this.roughRanks.byteLength,
    };
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
      this.roughRanks[slot] = roughRank(this.rankOf(slot));
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
    const hits = search.run(
      this.trie,
      this.positions,
      lat,
      lng,
      limit,
      maxM,
      this.precedes,
      WHOLE_EARTH,
      null,
    );
    return search.isCut ? null : hits;
  }

  /**
   * The same in steps of about a millisecond, between which devices may be added, moved and removed. The set `skipped`
   * may grow between steps. The `limit` nearest of the devices that do not change and are not in it are offered, some
   * more than once. A part of the index that takes too long is split.
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
      offer(search.run(trie, positions, lat, lng, limit, query.reachM, precedes, cell, skipped));
      if (search.isCut) cells.push(...splitCell(trie, cell, search.query, search.lastPosition));
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
    this.positions = grown(this.positions, 2 * slot + 2);
    this.roughRanks = grown(this.roughRanks, slot + 1);
  }
}

function grown(numbers: Float64Array<ArrayBuffer>, length: number): Float64Array<ArrayBuffer> {
  if (length <= numbers.length) return numbers;
  const larger = new Float64Array(Math.max(length, 2 * numbers.length));
  larger.set(numbers);
  return larger;
}

/** The first characters of a text as the digits of a number. Those after a character other than 0 to 9 are unknown. */
function roughRank(rank: Rank): number {
  if (typeof rank === 'number') return rank;
  let number = 0;
  let isKnown = true;
  let digit = 0;
  for (let n = 0; n < RANK_CHARS; n++) {
    if (isKnown) {
      digit = n < rank.length ? rank.charCodeAt(n) - BEFORE_DIGITS : 0;
      isKnown = digit > 0 && digit < RANK_BASE;
      digit = Math.max(0, Math.min(RANK_BASE - 1, digit));
    }
    number = number * RANK_BASE + digit;
  }
  return number;
}

/** As many characters as a number can distinguish, and as an IMEI usually has. */
const RANK_CHARS = 15;
/** 0 is the end of a text, 1 to 10 are the digits. */
const RANK_BASE = 11;
const BEFORE_DIGITS = 47;
/** Prevents a wrong slot from allocating gigabytes. */
const MAX_SLOTS = 2 ** 24;

// Shared by all indexes, which is safe because no call waits.
const search = new Search();
const ecef = new Float64Array(3);
