import { promisify } from 'node:util';
import { constants, crc32, zstdCompress, zstdDecompressSync } from 'node:zlib';
import { columnBytesMax, PackedColumns } from './pointColumns.ts';

/** The form of the bytes: one that this version does not know is not read. */
export const CODEC = 1;
/** The most points of one blob. They are unpacked in one go, in about a millisecond. */
export const PACKED_POINTS_MAX = 10_000;

/** Points of one device as they are stored. */
export interface PackedBlob {
  readonly codec: number;
  /** CRC-32 of the bytes, as a signed number of 32 bits. */
  readonly checksum: number;
  readonly bytes: Buffer;
}

/** Facts about a blob that are stored beside it. It is damaged where they are not true. */
export interface PackedFacts {
  readonly count: number;
  readonly firstMs: number;
  readonly lastMs: number;
}

const LEVEL = 3;
const compress = promisify(zstdCompress);
/** Of what Node takes. */
const CHUNK_BYTES_MIN = 64;
const UNPACKED_BYTES_MAX = columnBytesMax(PACKED_POINTS_MAX);

/** Compresses columns, beside the event loop. */
export async function packColumns(columns: Uint8Array): Promise<PackedBlob> {
  const bytes = await compress(columns, {
    params: { [constants.ZSTD_c_compressionLevel]: LEVEL },
    pledgedSrcSize: columns.length,
  });
  return { codec: CODEC, checksum: checksumOf(bytes), bytes };
}

/** The columns of a blob, or a text that says what is wrong with it. */
export function unpackColumns(blob: PackedBlob, facts: PackedFacts): PackedColumns | string {
  const columns = openColumns(blob, facts);
  return typeof columns === 'string' ? columns : checkTimes(columns, facts);
}

/** The same columns if their first and last time are as stored beside them; else a text. */
export function checkTimes(columns: PackedColumns, facts: PackedFacts): PackedColumns | string {
  try {
    const times = columns.column('recordedAtMs');
    return times[0] === facts.firstMs && times.at(-1) === facts.lastMs ? columns : OTHER_POINTS;
  } catch (error) {
    return unreadable(error);
  }
}

/** Like unpackColumns, but the times are neither read nor checked. */
export function openColumns(
  { codec, checksum, bytes }: PackedBlob,
  { count }: Pick<PackedFacts, 'count'>,
): PackedColumns | string {
  if (codec !== CODEC) return `it has the form ${codec}, which this version does not know`;
  if (checksumOf(bytes) !== checksum) return 'its checksum is wrong';
  try {
    // One piece of memory, and a byte more: the decompressor takes another piece when one is full.
    const chunkSize = Math.min(contentBytesOf(bytes) ?? UNPACKED_BYTES_MAX, UNPACKED_BYTES_MAX) + 1;
    const options = { maxOutputLength: UNPACKED_BYTES_MAX, chunkSize: Math.max(chunkSize, CHUNK_BYTES_MIN) };
    const columns = new PackedColumns(zstdDecompressSync(bytes, options));
    return columns.count === count ? columns : OTHER_POINTS;
  } catch (error) {
    return unreadable(error);
  }
}

const OTHER_POINTS = 'it has other points than stands beside it';

function unreadable(error: unknown): string {
  return `it cannot be read (${error instanceof Error ? error.message : 'unknown'})`;
}

function checksumOf(bytes: Uint8Array): number {
  return crc32(bytes) | 0;
}

/** Behind the magic number. */
const DESCRIPTOR_AT = 4;
const IS_SINGLE_SEGMENT = 0x20;
const DICTIONARY_BYTES = [0, 1, 2, 4] as const;
/** A size of two bytes begins there: what is smaller has one byte. */
const TWO_BYTES_FROM = 256;

/**
 * How long the content of a Zstandard frame is, by its header (RFC 8878, section 3.1.1.1). Null where the header does not
 * say it, or in more than four bytes.
 */
export function contentBytesOf(frame: Buffer): number | null {
  const descriptor = frame[DESCRIPTOR_AT] ?? 0;
  const isSingleSegment = (descriptor & IS_SINGLE_SEGMENT) !== 0;
  const windowBytes = isSingleSegment ? 0 : 1;
  const at = DESCRIPTOR_AT + 1 + windowBytes + (DICTIONARY_BYTES[descriptor & 3] as number);
  const sizeForm = descriptor >> 6;
  if (at + 4 > frame.length) return null;
  if (sizeForm === 0) return isSingleSegment ? frame.readUInt8(at) : null;
  if (sizeForm === 1) return frame.readUInt16LE(at) + TWO_BYTES_FROM;
  return sizeForm === 2 ? frame.readUInt32LE(at) : null;
}
