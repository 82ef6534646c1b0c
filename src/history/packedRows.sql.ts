import { DamagedPoints } from '../lib/damagedPoints.ts';
import type { CopiedRow } from '../postgres/copiedRow.ts';
import { RawSql } from '../postgres/sqlText.ts';
import { checkTimes, openColumns, type PackedBlob, unpackColumns } from './codec/packedBlob.ts';
import type { PackedColumns } from './codec/pointColumns.ts';

/** The points of a packed row, without the points. */
export interface PackedSpan {
  readonly deviceId: number;
  readonly firstMs: number;
  readonly lastMs: number;
  readonly count: number;
}

/** A row of packed_points. */
export interface PackedRow extends PackedSpan, PackedBlob {}

/** The points of a row. Throws DamagedPoints. */
export function unpackRow(row: PackedRow): PackedColumns {
  return undamaged(row, unpackColumns(row, row));
}

/**
 * The points of a row, or null if none of their places is wanted: their times are not read then, which is a sixth of the
 * work. Throws DamagedPoints.
 */
export function unpackRowIf(
  row: PackedRow,
  isWanted: (lats: Float64Array, lngs: Float64Array) => boolean,
): PackedColumns | null {
  const columns = undamaged(row, openColumns(row, row));
  if (!isWanted(columns.column('lats'), columns.column('lngs'))) return null;
  return undamaged(row, checkTimes(columns, row));
}

function undamaged({ deviceId, firstMs, lastMs }: PackedRow, columns: PackedColumns | string): PackedColumns {
  if (typeof columns !== 'string') return columns;
  throw new DamagedPoints({ deviceId, firstMs, lastMs, reason: columns });
}

/** What is read of a row, in the order in which `copiedPackedRow` reads it. The device is known. */
export const PACKED_LIST = new RawSql('first_at, last_at, count, codec::integer as codec, checksum, points');

/** What Postgres answers for PACKED_LIST. */
export interface SelectedPacked {
  readonly first_at: Date;
  readonly last_at: Date;
  readonly count: number;
  readonly codec: number;
  readonly checksum: number;
  readonly points: Buffer;
}

export function packedRowOf(deviceId: number, row: SelectedPacked): PackedRow {
  return {
    deviceId,
    firstMs: row.first_at.getTime(),
    lastMs: row.last_at.getTime(),
    count: row.count,
    codec: row.codec,
    checksum: row.checksum,
    bytes: row.points,
  };
}

/** Reads the columns behind first_at from a copy. */
export function copiedPackedRow(row: CopiedRow, deviceId: number, firstMs: number): PackedRow {
  return {
    deviceId,
    firstMs,
    lastMs: row.timestampMs(),
    count: row.int4(),
    codec: row.int4(),
    checksum: row.int4(),
    bytes: Buffer.from(row.bytes()),
  };
}
