import { crc32 } from 'node:zlib';
import { type ColumnRoom, PackedColumns } from './pointColumns.ts';

/** The form of the bytes: one that this version does not know is not read. */
export const CODEC = 1;
/** The most points of one blob. Of 3 000 each, a day at 10 s takes 6.2 instead of 5.9 bytes a point on disk. */
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

/** The bytes of columns (writeColumns), with what shows later that they are whole. */
export function packColumns(columns: Uint8Array): PackedBlob {
  return {
    codec: CODEC,
    checksum: checksumOf(columns),
    bytes: Buffer.from(columns.buffer, columns.byteOffset, columns.length),
  };
}

/** The columns of a blob, in a room if there is one, or a text that says what is wrong with it. */
export function unpackColumns(
  blob: PackedBlob,
  facts: PackedFacts,
  room: ColumnRoom | null = null,
): PackedColumns | string {
  const columns = openColumns(blob, facts, room);
  return typeof columns === 'string' ? columns : checkTimes(columns, facts);
}

/** The columns if their first and last time match those stored beside them; else a text that says what is wrong. */
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
  room: ColumnRoom | null = null,
): PackedColumns | string {
  if (codec !== CODEC) return `it has the form ${codec}, which this version does not know`;
  if (checksumOf(bytes) !== checksum) return 'its checksum is wrong';
  try {
    const columns = new PackedColumns(bytes, room);
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
