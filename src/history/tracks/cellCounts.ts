import { constants, zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import { VarintReader, VarintWriter } from '../../lib/varints.ts';
import type { Steps } from '../../lib/workTurns.ts';
import { type CellCounts, COUNT_MAX, TILE_CELLS } from './cells.ts';

export const NO_CELLS: CellCounts = { codes: new Float64Array(0), counts: new Uint8Array(0) };

/** The counts of both together. */
function sumOf(one: CellCounts, other: CellCounts): CellCounts {
  if (one.codes.length === 0) return other;
  if (other.codes.length === 0) return one;
  const codes = new Float64Array(one.codes.length + other.codes.length);
  const counts = new Uint8Array(codes.length);
  let size = 0;
  for (let a = 0, b = 0; a < one.codes.length || b < other.codes.length; size++) {
    const codeA = one.codes[a] ?? Number.POSITIVE_INFINITY;
    const codeB = other.codes[b] ?? Number.POSITIVE_INFINITY;
    const countA = codeA <= codeB ? one.counts[a++]! : 0;
    const countB = codeB <= codeA ? other.counts[b++]! : 0;
    codes[size] = Math.min(codeA, codeB);
    counts[size] = Math.min(COUNT_MAX, countA + countB);
  }
  return partOf({ codes, counts }, 0, size);
}

/** The sum of all. A step adds two. */
export function* sumOfAll(all: readonly CellCounts[]): Steps<CellCounts> {
  let sums = all;
  while (sums.length > 1) {
    const next: CellCounts[] = [];
    for (let n = 0; n < sums.length; n += 2) {
      next.push(sumOf(sums[n]!, sums[n + 1] ?? NO_CELLS));
      yield;
    }
    sums = next;
  }
  return sums[0] ?? NO_CELLS;
}

function partOf({ codes, counts }: CellCounts, from: number, to: number): CellCounts {
  return { codes: codes.subarray(from, to), counts: counts.subarray(from, to) };
}

/** How many codes are below this one. */
export function below(codes: Float64Array, code: number): number {
  let low = 0;
  for (let high = codes.length; low < high; ) {
    const middle = (low + high) >>> 1;
    if (codes[middle]! < code) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The cells by their tiles of the base zoom, with their codes in the tile. */
export function byTile(cells: CellCounts): Map<number, CellCounts> {
  const tiles = new Map<number, CellCounts>();
  for (let from = 0; from < cells.codes.length; ) {
    const tile = Math.floor(cells.codes[from]! / TILE_CELLS);
    const to = below(cells.codes, (tile + 1) * TILE_CELLS);
    const { codes, counts } = partOf(cells, from, to);
    tiles.set(tile, { codes: codes.map((code) => code - tile * TILE_CELLS), counts });
    from = to;
  }
  return tiles;
}

/**
 * A tile with its quarter `quarter` (0 to 3) replaced by what a tile of the next zoom has, four cells as the most of them.
 */
export function withQuarter(parent: CellCounts, quarter: number, child: CellCounts): CellCounts {
  const first = (quarter * TILE_CELLS) / 4;
  const [from, to] = [below(parent.codes, first), below(parent.codes, first + TILE_CELLS / 4)];
  const codes = new Float64Array(parent.codes.length - (to - from) + child.codes.length);
  const counts = new Uint8Array(codes.length);
  codes.set(parent.codes.subarray(0, from));
  counts.set(parent.counts.subarray(0, from));
  let size = from;
  for (let n = 0; n < child.codes.length; n++) {
    const code = first + Math.floor(child.codes[n]! / 4);
    if (size > from && codes[size - 1] === code)
      counts[size - 1] = Math.max(counts[size - 1]!, child.counts[n]!);
    else {
      codes[size] = code;
      counts[size++] = child.counts[n]!;
    }
  }
  codes.set(parent.codes.subarray(to), size);
  counts.set(parent.counts.subarray(to), size);
  return partOf({ codes, counts }, 0, size + parent.codes.length - to);
}

/** Fewer bytes are not compressed: to begin takes longer than all the rest. */
const COMPRESSED_FROM = 4_096;
/** The first byte: what follows. */
const PLAIN = 0;
const COMPRESSED = 1;
/** The next level takes three times as long for a hundredth less. */
const COMPRESSION = { params: { [constants.ZSTD_c_compressionLevel]: 1 } };
/** More than any cells become before they are compressed. */
const BYTES_MAX = 2 ** 27;

/** A longer gap follows as a number. */
const FAR = 255;

/**
 * The counts as bytes: how many cells, the differences between their codes, and runs of equal counts; compressed with zstd
 * if long.
 */
export function encodeCounts({ codes, counts }: CellCounts): Buffer {
  const writer = new VarintWriter(16 + 2 * codes.length);
  writer.byte(PLAIN);
  writer.number(codes.length);
  let last = -1;
  for (let n = 0; n < codes.length; n++) {
    const gap = codes[n]! - last - 1;
    writer.byte(Math.min(gap, FAR));
    if (gap >= FAR) writer.number(gap);
    last = codes[n]!;
  }
  for (let n = 0; n < counts.length; ) {
    const from = n;
    while (n < counts.length && counts[n] === counts[from]) n++;
    writer.byte(counts[from]!);
    writer.number(n - from);
  }
  const bytes = writer.bytes();
  if (bytes.length < COMPRESSED_FROM) return bytes;
  return Buffer.concat([Buffer.of(COMPRESSED), zstdCompressSync(bytes.subarray(1), COMPRESSION)]);
}

/** The reverse of encodeCounts. Bytes that are damaged have no cells, so that what is driven later is still drawn. */
export function decodeCounts(bytes: Uint8Array): CellCounts {
  let plain = bytes.subarray(1);
  try {
    if (bytes[0] === COMPRESSED) plain = zstdDecompressSync(plain, { maxOutputLength: BYTES_MAX });
  } catch {
    return NO_CELLS;
  }
  try {
    return readCounts(new VarintReader(plain), plain.length);
  } catch (error) {
    if (error instanceof RangeError) return NO_CELLS;
    throw error;
  }
}

function readCounts(reader: VarintReader, sizeMax: number): CellCounts {
  const size = reader.number();
  if (size > sizeMax) throw new RangeError('there are more cells than bytes');
  const codes = new Float64Array(size);
  const counts = new Uint8Array(size);
  let last = -1;
  for (let n = 0; n < size; n++) {
    const gap = reader.byte();
    last += (gap === FAR ? reader.number() : gap) + 1;
    codes[n] = last;
  }
  for (let n = 0; n < size; ) {
    const count = reader.byte();
    const end = n + reader.number();
    if (end === n || end > size) throw new RangeError('there are more counts than cells');
    counts.fill(count, n, end);
    n = end;
  }
  return { codes, counts };
}
