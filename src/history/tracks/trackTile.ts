import { crc32, deflateSync } from 'node:zlib';
import { TILE_EXTENT, type Tile, type TilePath, VectorTile } from '../../geo/vectorTile.ts';
import { Pace, type Steps } from '../../lib/workTurns.ts';
import { below, decodeCounts } from './cellCounts.ts';
import { BASE_ZOOM, type CellCounts, everySecondBit, interleave, TILE_CELLS, TILE_SIDE } from './cells.ts';
import type { TrackTile } from './tracks.sql.ts';

export const TRACKS_LAYER = 'tracks';

/** In how many days of devices a cell was driven at least, for each level. */
export const LEVELS_FROM = [1, 3, 10, 30] as const;
const LEVEL_OF = Uint8Array.from(
  { length: 256 },
  (_, count) => LEVELS_FROM.filter((from) => count >= from).length,
);

/** The cells of the grid that a tile shows, with those around it: lines go on beyond its sides. */
export interface TrackView {
  /** The zoom of the stored tiles that it is made of. */
  readonly zoom: number;
  /** Their numbers. */
  readonly tiles: readonly number[];
  /** The corner of the tile, in cells. Above zoom 21 a tile is less than a cell. */
  readonly originX: number;
  readonly originY: number;
  /** The sides of the tile, in cells. */
  readonly side: number;
  /** The first column and row of the view, and how many of each it has. */
  readonly left: number;
  readonly top: number;
  readonly width: number;
}

export function viewOf({ z, x, y }: Tile): TrackView {
  const zoom = Math.min(z, BASE_ZOOM);
  const side = TILE_SIDE / 2 ** (z - zoom);
  const [originX, originY] = [x * side, y * side];
  const [left, top] = [Math.floor(originX) - 1, Math.floor(originY) - 1];
  const width = Math.ceil(side) + 2;
  const across = 2 ** zoom;
  const tiles = new Set<number>();
  for (let tileY = Math.floor(top / TILE_SIDE); tileY * TILE_SIDE < top + width; tileY++) {
    if (tileY < 0 || tileY >= across) continue;
    for (let tileX = Math.floor(left / TILE_SIDE); tileX * TILE_SIDE < left + width; tileX++)
      tiles.add(interleave((tileX + across) % across, tileY));
  }
  return { zoom, tiles: [...tiles], originX, originY, side, left, top, width };
}

/** The levels of the cells of a view, row by row: what is stored, and cells of the base zoom that are not stored yet. */
export function* levelsOf(
  view: TrackView,
  stored: readonly TrackTile[],
  recent: readonly CellCounts[],
): Steps<Uint8Array> {
  const counts = new Uint16Array(view.width ** 2);
  const pace = new Pace();
  for (const { tile, bytes } of stored) {
    addTile(counts, view, tile, decodeCounts(bytes));
    if (pace.isDue()) yield* pace.pause();
  }
  for (const cells of recent) {
    for (const tile of view.tiles) yield* addRecent(counts, view, tile, cells, pace);
  }
  const levels = new Uint8Array(counts.length);
  for (let n = 0; n < counts.length; n++) levels[n] = LEVEL_OF[Math.min(counts[n]!, 255)]!;
  return levels;
}

function addTile(counts: Uint16Array, view: TrackView, tile: number, cells: CellCounts): void {
  for (let n = 0; n < cells.codes.length; n++) addCell(counts, view, tile, cells.codes[n]!, cells.counts[n]!);
}

/** Four cells of the next zoom are one, with the most of them, as in what is stored. */
function* addRecent(
  counts: Uint16Array,
  view: TrackView,
  tile: number,
  { codes, counts: own }: CellCounts,
  pace: Pace,
): Steps<void> {
  const scale = 4 ** (BASE_ZOOM - view.zoom);
  const end = (tile + 1) * TILE_CELLS * scale;
  let n = below(codes, tile * TILE_CELLS * scale);
  while (n < codes.length && codes[n]! < end) {
    const code = Math.floor(codes[n]! / scale);
    let most = 0;
    for (; n < codes.length && codes[n]! < (code + 1) * scale; n++) most = Math.max(most, own[n]!);
    addCell(counts, view, tile, code - tile * TILE_CELLS, most);
    if (pace.isDue()) yield* pace.pause();
  }
}

function addCell(
  counts: Uint16Array,
  { zoom, left, top, width }: TrackView,
  tile: number,
  code: number,
  count: number,
): void {
  const y = everySecondBit(tile >>> 1) * TILE_SIDE + everySecondBit(code >>> 1) - top;
  if (y < 0 || y >= width) return;
  const around = TILE_SIDE * 2 ** zoom;
  const first = (everySecondBit(tile) * TILE_SIDE + everySecondBit(code) - left + around) % around;
  // A view that is wider than the earth shows some cells twice.
  for (let x = first; x < width; x += around) {
    const at = y * width + x;
    counts[at] = Math.min(65_535, counts[at]! + count);
  }
}

const DIRECTIONS = [
  [1, 0],
  [0, 1],
  [1, 1],
  [-1, 1],
] as const;
/** Lines of one feature: its bytes are made in one step. */
const LINES_PER_FEATURE = 500;
/** Half of the length of the line that a cell without neighbours is, in cells. */
const DOT = 0.25;

/** The tile as lines from cell to cell, the lowest level first; null: nothing is in it. */
export function* trackVectors(view: TrackView, levels: Uint8Array): Steps<Buffer | null> {
  const lines = new LevelLines(view, levels);
  const pace = new Pace();
  for (let y = 0; y < view.width; y++) {
    for (let x = 0; x < view.width; x++) lines.addFrom(x, y);
    if (pace.isDue()) yield* pace.pause();
  }
  const layer = new VectorTile(TRACKS_LAYER);
  let id = 0;
  for (const [n, paths] of lines.byLevel.entries()) {
    for (let at = 0; at < paths.length; at += LINES_PER_FEATURE) {
      layer.add(++id, { level: n + 1 }, { kind: 'line', paths: paths.slice(at, at + LINES_PER_FEATURE) });
      if (pace.isDue()) yield* pace.pause();
    }
  }
  return id === 0 ? null : layer.finish();
}

/** Joins neighbouring cells by straight lines, each as long as it can be. */
class LevelLines {
  readonly byLevel: TilePath[][] = LEVELS_FROM.map(() => []);
  readonly #view: TrackView;
  readonly #levels: Uint8Array;

  constructor(view: TrackView, levels: Uint8Array) {
    this.#view = view;
    this.#levels = levels;
  }

  /** Adds the lines that begin in a cell. */
  addFrom(x: number, y: number): void {
    const own = this.#levelAt(x, y);
    if (own === 0) return;
    for (const [dx, dy] of DIRECTIONS) {
      const level = this.#link(x, y, dx, dy);
      if (level === 0 || this.#link(x - dx, y - dy, dx, dy) === level) continue;
      let steps = 1;
      while (this.#link(x + steps * dx, y + steps * dy, dx, dy) === level) steps++;
      this.#add(level, x, y, x + steps * dx, y + steps * dy);
    }
    if (this.#isInside(x, y) && !this.#hasNeighbour(x, y)) this.#add(own, x - DOT, y, x + DOT, y);
  }

  /** The level of the line from a cell to its neighbour; 0: there is none. Two that touch a third one are joined by way of it. */
  #link(x: number, y: number, dx: number, dy: number): number {
    const [from, to] = [this.#levelAt(x, y), this.#levelAt(x + dx, y + dy)];
    if (from === 0 || to === 0) return 0;
    // Lines that are outside of the tile belong to its neighbours.
    if (!this.#isInside(x, y) && !this.#isInside(x + dx, y + dy)) return 0;
    if (dx !== 0 && dy !== 0 && (this.#levelAt(x + dx, y) > 0 || this.#levelAt(x, y + dy) > 0)) return 0;
    return Math.min(from, to);
  }

  #hasNeighbour(x: number, y: number): boolean {
    for (let dy = -1; dy <= 1; dy++)
      for (let dx = -1; dx <= 1; dx++)
        if ((dx !== 0 || dy !== 0) && this.#levelAt(x + dx, y + dy) > 0) return true;
    return false;
  }

  #levelAt(x: number, y: number): number {
    const { width } = this.#view;
    return x < 0 || y < 0 || x >= width || y >= width ? 0 : this.#levels[y * width + x]!;
  }

  #isInside(x: number, y: number): boolean {
    const { width } = this.#view;
    return x > 0 && y > 0 && x < width - 1 && y < width - 1;
  }

  #add(level: number, x0: number, y0: number, x1: number, y1: number): void {
    const { originX, originY, left, top, side } = this.#view;
    const units = TILE_EXTENT / side;
    const xOf = (x: number) => Math.round((left + x + 0.5 - originX) * units);
    const yOf = (y: number) => Math.round((top + y + 0.5 - originY) * units);
    this.byLevel[level - 1]?.push([xOf(x0), yOf(y0), xOf(x1), yOf(y1)]);
  }
}

/** Pixels along a side of a picture. */
export const PICTURE_SIDE = 256;
/** How opaque each level is. */
export const ALPHAS = [0, 110, 160, 210, 255] as const;
/** Seen on light maps and on dark ones. */
export const GREY = 128;
const PNG_SIGNATURE = Buffer.from('89504e470d0a1a0a', 'hex');

/** The tile as a picture: PNG, grey with alpha. Null: nothing is in it. */
export function* trackPicture(view: TrackView, levels: Uint8Array): Steps<Buffer | null> {
  const { originX, originY, left, top, side, width } = view;
  // A row begins with the number of its filter: 0, none.
  const rowBytes = 1 + 2 * PICTURE_SIDE;
  const pixels = Buffer.alloc(PICTURE_SIDE * rowBytes);
  const cellOf = (pixel: number, origin: number, first: number) =>
    Math.floor(origin + ((pixel + 0.5) * side) / PICTURE_SIDE) - first;
  let isEmpty = true;
  for (let y = 0; y < PICTURE_SIDE; y++) {
    const row = cellOf(y, originY, top) * width;
    for (let x = 0; x < PICTURE_SIDE; x++) {
      const level = levels[row + cellOf(x, originX, left)]!;
      if (level === 0) continue;
      isEmpty = false;
      pixels[y * rowBytes + 1 + 2 * x] = GREY;
      pixels[y * rowBytes + 2 + 2 * x] = ALPHAS[level]!;
    }
  }
  if (isEmpty) return null;
  yield;
  const header = Buffer.alloc(13);
  header.writeUInt32BE(PICTURE_SIDE, 0);
  header.writeUInt32BE(PICTURE_SIDE, 4);
  header.set([8, 4], 8); // eight bits; grey and alpha
  const data = deflateSync(pixels, { level: 1 });
  return Buffer.concat([
    PNG_SIGNATURE,
    chunk('IHDR', header),
    chunk('IDAT', data),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}

/** PNG (W3C), section 5.3: length, type, data, and the CRC of type and data. */
function chunk(type: string, data: Buffer): Buffer {
  const bytes = Buffer.alloc(data.length + 12);
  bytes.writeUInt32BE(data.length, 0);
  bytes.write(type, 4, 'latin1');
  data.copy(bytes, 8);
  bytes.writeUInt32BE(crc32(bytes.subarray(4, -4)), data.length + 8);
  return bytes;
}
