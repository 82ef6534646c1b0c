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

/** What stands beside the blob, and must be true of it. */
export interface PackedFacts {
  readonly count: number;
  readonly firstMs: number;
  readonly lastMs: number;
}

const LEVEL = 3;
const compress = promisify(zstdCompress);
/** Nearly all blobs are unpacked into one piece of memory. */
const UNPACKING = { maxOutputLength: columnBytesMax(PACKED_POINTS_MAX), chunkSize: 2 ** 17 };

/** Compresses columns, beside the event loop. */
export async function packColumns(columns: Uint8Array): Promise<PackedBlob> {
  const bytes = await compress(columns, {
    params: { [constants.ZSTD_c_compressionLevel]: LEVEL },
    pledgedSrcSize: columns.length,
  });
  return { codec: CODEC, checksum: checksumOf(bytes), bytes };
}

/** The columns of a blob; a text that says what is wrong with it. */
export function unpackColumns(
  { codec, checksum, bytes }: PackedBlob,
  facts: PackedFacts,
): PackedColumns | string {
  if (codec !== CODEC) return `it has the form ${codec}, which this version does not know`;
  if (checksumOf(bytes) !== checksum) return 'its checksum is wrong';
  try {
    const columns = new PackedColumns(zstdDecompressSync(bytes, UNPACKING));
    const times = columns.column('recordedAtMs');
    const isRight =
      columns.count === facts.count && times[0] === facts.firstMs && times.at(-1) === facts.lastMs;
    return isRight ? columns : 'it has other points than stands beside it';
  } catch (error) {
    return `it cannot be read (${error instanceof Error ? error.message : 'unknown'})`;
  }
}

function checksumOf(bytes: Uint8Array): number {
  return crc32(bytes) | 0;
}
