import { TILE_EXTENT, TilePlane } from '../../geo/vectorTile.ts';
import { radixOrder } from '../../lib/radixOrder.ts';
import type { Steps } from '../../lib/workTurns.ts';

// The earth in Web Mercator is a grid of 2^21 cells a side: 19 m at the equator, 13 m at 45°. A cell has the code that
// interleaves the bits of its column and its row (a Morton code), so the cells of a tile of any zoom have consecutive codes.

/** The highest zoom whose tiles are stored. */
export const BASE_ZOOM = 13;
/** Cells along a side of a tile. */
const TILE_BITS = 8;
export const TILE_SIDE = 2 ** TILE_BITS;
export const TILE_CELLS = TILE_SIDE ** 2;
/** Cells along a side of the grid. */
export const GRID_SIDE = TILE_SIDE * 2 ** BASE_ZOOM;

/** The grid as a plane: x and y in cells. */
export const GRID = new TilePlane({ z: Math.log2(GRID_SIDE / TILE_EXTENT), x: 0, y: 0 });

/** Interleaves the bits of two numbers below 2^15. */
export function interleave(x: number, y: number): number {
  return spread(x) | (spread(y) << 1);
}

/** The numbers whose bits were interleaved: x of a code, and y of half of it. */
export function everySecondBit(code: number): number {
  let bits = code & 0x55555555;
  bits = (bits | (bits >>> 1)) & 0x33333333;
  bits = (bits | (bits >>> 2)) & 0x0f0f0f0f;
  bits = (bits | (bits >>> 4)) & 0x00ff00ff;
  return (bits | (bits >>> 8)) & 0xffff;
}

function spread(value: number): number {
  let bits = (value | (value << 8)) & 0x00ff00ff;
  bits = (bits | (bits << 4)) & 0x0f0f0f0f;
  bits = (bits | (bits << 2)) & 0x33333333;
  return (bits | (bits << 1)) & 0x55555555;
}

/** The spread bits of the columns and rows of a tile. */
const SPREAD = Uint16Array.from({ length: TILE_SIDE }, (_, n) => spread(n));

/** Cells and how often each was driven, ascending by code. */
export interface CellCounts {
  readonly codes: Float64Array;
  readonly counts: Uint8Array;
}

/** Counts end here. */
export const COUNT_MAX = 255;

/** A device has no more tiles of a day; what is in further ones is left out. One that drives fast all day meets most of them. */
const TILES_MAX = 1_024;
const BITS_PER_WORD = 32;

/** Cells of a track, each once: bits of the tiles that it meets. */
export class DrawnCells {
  readonly #tiles = new Map<number, Uint32Array>();
  // The tile that was met last: nearly always the next cell is in it, too.
  #tileX = -1;
  #tileY = -1;
  #bits: Uint32Array = NO_BITS;

  /** The tiles of the base zoom. */
  get tiles(): number {
    return this.#tiles.size;
  }

  put(x: number, y: number): void {
    const tileX = x >>> TILE_BITS;
    const tileY = y >>> TILE_BITS;
    if (tileX !== this.#tileX || tileY !== this.#tileY) {
      this.#tileX = tileX;
      this.#tileY = tileY;
      this.#bits = this.#bitsOf(interleave(tileX, tileY));
    }
    const code = SPREAD[x & (TILE_SIDE - 1)]! | (SPREAD[y & (TILE_SIDE - 1)]! << 1);
    // A tile beyond the most that are held has no bits: writing past the end of a typed array does nothing.
    this.#bits[code >>> 5]! |= 1 << (code & 31);
  }

  /**
   * The cells of the straight line between two places of the grid, both ends included, each next to the one before. The map
   * stops short of the poles and continues across 180°.
   */
  putLine(x0: number, y0: number, x1: number, y1: number): void {
    const dx = x1 - x0;
    const dy = y1 - y0;
    const steps = Math.max(1, Math.ceil(Math.max(Math.abs(dx), Math.abs(dy))));
    for (let n = 0; n <= steps; n++) {
      const y = Math.floor(y0 + (dy * n) / steps);
      if (y >= 0 && y < GRID_SIDE) this.put(Math.floor(x0 + (dx * n) / steps) & (GRID_SIDE - 1), y);
    }
  }

  /** All of them but those of another, each counted once. */
  *counted(without: DrawnCells | null = null): Steps<CellCounts> {
    const tiles = [...this.#tiles.keys()].sort((a, b) => a - b);
    const pieces: Float64Array[] = [];
    let size = 0;
    for (const tile of tiles) {
      const codes = codesOf(
        tile,
        this.#tiles.get(tile)!,
        without === null ? NO_BITS : (without.#tiles.get(tile) ?? NO_BITS),
      );
      pieces.push(codes);
      size += codes.length;
      yield;
    }
    const codes = new Float64Array(size);
    let at = 0;
    for (const piece of pieces) {
      codes.set(piece, at);
      at += piece.length;
    }
    return { codes, counts: new Uint8Array(size).fill(1) };
  }

  #bitsOf(tile: number): Uint32Array {
    const known = this.#tiles.get(tile);
    if (known !== undefined || this.#tiles.size === TILES_MAX) return known ?? NO_BITS;
    const bits = new Uint32Array(TILE_CELLS / BITS_PER_WORD);
    this.#tiles.set(tile, bits);
    return bits;
  }
}

const NO_BITS = new Uint32Array(0);
/** Where the codes of one tile are collected. */
const CODES = new Float64Array(TILE_CELLS);

/** The codes of the bits of a tile that another does not have. */
function codesOf(tile: number, bits: Uint32Array, without: Uint32Array): Float64Array {
  const codes = CODES;
  let size = 0;
  for (let word = 0; word < bits.length; word++) {
    for (let left = bits[word]! & ~(without[word] ?? 0); left !== 0; left &= left - 1) {
      const bit = BITS_PER_WORD - 1 - Math.clz32(left & -left);
      codes[size++] = tile * TILE_CELLS + word * BITS_PER_WORD + bit;
    }
  }
  return codes.slice(0, size);
}

/** A tally has no more cells; further ones are left out. */
const TALLY_MAX = 2 ** 18;
const FIRST_SLOTS = 2 ** 10;
/** The code of an empty slot. */
const NONE = -1;
const ADDED_PER_STEP = 8_192;

/** Counts cells anywhere on the map: a hash table with open addressing. */
export class CellTally {
  #codes = new Float64Array(FIRST_SLOTS).fill(NONE);
  #counts = new Uint8Array(FIRST_SLOTS);
  #size = 0;

  /** Counts each of these cells once more. */
  *addEach({ codes }: CellCounts): Steps<void> {
    for (let n = 0; n < codes.length; n++) {
      this.#add(codes[n]!, 1);
      if (n % ADDED_PER_STEP === ADDED_PER_STEP - 1) yield;
    }
  }

  *counted(): Steps<CellCounts> {
    const slots = new Uint32Array(this.#size);
    let size = 0;
    for (let slot = 0; slot < this.#codes.length; slot++) {
      if (this.#codes[slot] !== NONE) slots[size++] = slot;
    }
    const order = yield* radixOrder(size, (n) => this.#codes[slots[n]!]!);
    return {
      codes: Float64Array.from(order, (n) => this.#codes[slots[n]!]!),
      counts: Uint8Array.from(order, (n) => this.#counts[slots[n]!]!),
    };
  }

  #add(code: number, count: number): void {
    const slot = this.#slotOf(code);
    if (this.#codes[slot] === code) {
      this.#counts[slot] = Math.min(COUNT_MAX, this.#counts[slot]! + count);
    } else if (this.#size < TALLY_MAX) {
      this.#codes[slot] = code;
      this.#counts[slot] = count;
      if (++this.#size * 2 > this.#codes.length) this.#grow();
    }
  }

  #grow(): void {
    const [codes, counts] = [this.#codes, this.#counts];
    this.#codes = new Float64Array(4 * codes.length).fill(NONE);
    this.#counts = new Uint8Array(4 * codes.length);
    this.#size = 0;
    for (let n = 0; n < codes.length; n++) if (codes[n] !== NONE) this.#add(codes[n]!, counts[n]!);
  }

  /** Where the cell is, or would be. */
  #slotOf(code: number): number {
    const codes = this.#codes;
    const mask = codes.length - 1;
    const tile = Math.floor(code / TILE_CELLS);
    // As MurmurHash3 ends: near cells must not be near each other in the table.
    let hash = Math.imul(tile, 0x9e3779b1) ^ (code - tile * TILE_CELLS);
    hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
    hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
    let slot = (hash ^ (hash >>> 16)) & mask;
    while (codes[slot] !== code && codes[slot] !== NONE) slot = (slot + 1) & mask;
    return slot;
  }
}
