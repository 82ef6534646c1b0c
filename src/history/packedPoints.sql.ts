import { setImmediate as nextTurn } from 'node:timers/promises';
import { type Damage, DamagedPoints } from '../lib/errors.ts';
import { DAY_MS, weekStartMs } from '../lib/time.ts';
import { arrayLiteral, type Query } from '../postgres/sql.ts';
import { RawSql } from '../postgres/sqlText.ts';
import { checkTimes, openColumns, type PackedBlob, unpackColumns } from './codec/packedBlob.ts';
import { type ColumnRoom, type PackedColumns, upTo } from './codec/pointColumns.ts';

/** Both ends are included. */
export interface TimeWindow {
  readonly fromMs: number;
  readonly toMs: number;
}

/** A device and a time. */
export interface PointRange extends TimeWindow {
  readonly deviceId: number;
}

/** What a row of packed_points says about its points. */
export interface PackedSpan {
  readonly deviceId: number;
  readonly firstMs: number;
  readonly lastMs: number;
  readonly count: number;
}

/** A row of packed_points. */
export interface PackedRow extends PackedSpan, PackedBlob {}

/** The points of a row, in a room if there is one. Throws DamagedPoints. */
export function unpackRow(row: PackedRow, room: ColumnRoom | null = null): PackedColumns {
  return undamaged(row, unpackColumns(row, row, room));
}

/**
 * The points of a row, or null if none of their positions is wanted: then their times are not read, which saves a sixth of the
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

/** The columns of a row. The device is known. */
export const PACKED_LIST = new RawSql('first_at, last_at, count, codec::integer as codec, checksum, points');

/** The answer of Postgres for PACKED_LIST. */
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

/** A row as one column, for a copy whose other rows have none: each further column costs every row something. */
export const PACKED_BYTES = new RawSql(
  `int8send((extract(epoch from first_at) * 1000)::bigint) || int8send((extract(epoch from last_at) * 1000)::bigint)
    || int4send(count) || int4send(codec::integer) || int4send(checksum) || points`,
);
const HEADER_BYTES = 2 * 8 + 3 * 4;

/** Reads PACKED_BYTES. The bytes have memory of their own, which may be given to a thread. */
export function copiedPackedRow(deviceId: number, copied: Uint8Array): PackedRow {
  const bytes = Buffer.from(new Uint8Array(copied).buffer);
  return {
    deviceId,
    firstMs: Number(bytes.readBigInt64BE(0)),
    lastMs: Number(bytes.readBigInt64BE(8)),
    count: bytes.readInt32BE(16),
    codec: bytes.readInt32BE(20),
    checksum: bytes.readInt32BE(24),
    bytes: bytes.subarray(HEADER_BYTES),
  };
}

/** Points are rows for twice as long, by the clock of Postgres. The clock of this pod may differ by as much. */
export const NEVER_PACKED_MS = DAY_MS;
/** Rows in memory at a time: a megabyte. */
const ROWS_AT_A_TIME = 16;

/** A device and a time. */
export interface PointKey {
  readonly deviceId: number;
  readonly recordedAtMs: number;
}

/** Takes what cannot be unpacked. It counts as not there. */
export type OnDamaged = (damage: Damage) => void;

/** The places in the list of those points that are packed already. The caller has locked the devices. */
export async function findPacked(
  tx: Query,
  points: readonly PointKey[],
  nowMs: number,
  onDamaged: OnDamaged,
): Promise<Set<number>> {
  const found = new Set<number>();
  const ranges = points.map(({ deviceId, recordedAtMs: ms }) => ({ deviceId, fromMs: ms, toMs: ms }));
  const use = (columns: PackedColumns, { toMs }: PointRange, n: number): void => {
    const times = columns.column('recordedAtMs');
    if (times[upTo(times, toMs) - 1] === toMs) found.add(n);
  };
  await unpackNewest(tx, ranges, use, { nowMs, onDamaged });
  return found;
}

/** A position at a time. */
export interface TimedPosition {
  readonly recordedAtMs: number;
  readonly lat: number;
  readonly lng: number;
}

/** The newest packed point in each of these ranges, by the place of the range in the list. */
export async function newestPacked(
  tx: Query,
  ranges: readonly PointRange[],
  nowMs: number,
  onDamaged: OnDamaged,
): Promise<Map<number, TimedPosition>> {
  const newest = new Map<number, TimedPosition>();
  const use = (columns: PackedColumns, { fromMs, toMs }: PointRange, n: number): void => {
    const times = columns.column('recordedAtMs');
    const at = upTo(times, toMs) - 1;
    // Packed points come in the order of their times, so a later one is newer.
    if (at >= 0 && (times[at] as number) >= fromMs) newest.set(n, positionAt(columns, at));
  };
  await unpackNewest(tx, ranges, use, { nowMs, onDamaged });
  return newest;
}

export function positionAt(columns: PackedColumns, n: number): TimedPosition {
  return {
    recordedAtMs: columns.column('recordedAtMs')[n] as number,
    lat: columns.column('lats')[n] as number,
    lng: columns.column('lngs')[n] as number,
  };
}

/**
 * Unpacks the newest packed points that reach into each range, oldest first and each once, and gives them to `use` with
 * every range that they reach into. With `recent`, ranges that are recent by the clock of this pod cost nothing, and damage is
 * reported; without it damage throws DamagedPoints.
 */
export async function unpackNewest(
  tx: Query,
  all: readonly PointRange[],
  use: (columns: PackedColumns, range: PointRange, n: number) => void,
  recent?: { readonly nowMs: number; readonly onDamaged: OnDamaged },
): Promise<void> {
  const packedToMs = recent === undefined ? Number.POSITIVE_INFINITY : recent.nowMs - NEVER_PACKED_MS;
  const ranges = [...all.entries()].filter(([, { fromMs }]) => fromMs <= packedToMs);
  const keys =
    ranges.length === 0
      ? []
      : await selectNewestKeys(
          tx,
          ranges.map(([, range]) => range),
        );
  const byDevice = Map.groupBy(ranges, ([, { deviceId }]) => deviceId);
  for (let at = 0; at < keys.length; at += ROWS_AT_A_TIME) {
    for (const row of await selectRowsAt(tx, keys.slice(at, at + ROWS_AT_A_TIME))) {
      try {
        const columns = unpackRow(row);
        for (const [n, range] of byDevice.get(row.deviceId) ?? [])
          if (row.firstMs <= range.toMs && row.lastMs >= range.fromMs) use(columns, range, n);
      } catch (error) {
        if (!(error instanceof DamagedPoints) || recent === undefined) throw error;
        recent.onDamaged(error.damage);
      }
      await nextTurn();
    }
  }
}

interface RowKey {
  readonly device_id: number;
  readonly first_at: Date;
}

/** The newest row of packed points that reaches into each of these ranges, by device and time. */
async function selectNewestKeys(tx: Query, ranges: readonly PointRange[]): Promise<readonly RowKey[]> {
  const earliestMs = ranges.reduce((ms, { fromMs }) => Math.min(ms, fromMs), Number.POSITIVE_INFINITY);
  const latestMs = ranges.reduce((ms, { toMs }) => Math.max(ms, toMs), Number.NEGATIVE_INFINITY);
  return tx<RowKey[]>`
    select distinct p.device_id, p.first_at
    from unnest(
      ${arrayLiteral(ranges.map((each) => each.deviceId))}::bigint[],
      ${arrayLiteral(ranges.map((each) => each.fromMs))}::float8[],
      ${arrayLiteral(ranges.map((each) => each.toMs))}::float8[]) d (id, since, until)
    cross join lateral (
      select device_id, first_at from packed_points
      where device_id = d.id and last_at >= to_timestamp(d.since / 1000) and first_at <= to_timestamp(d.until / 1000)
        and first_at between ${new Date(weekStartMs(earliestMs))} and ${new Date(latestMs)}
      order by first_at desc limit 1) p
    order by p.device_id, p.first_at`;
}

async function selectRowsAt(tx: Query, keys: readonly RowKey[]): Promise<PackedRow[]> {
  const times = keys.map(({ first_at }) => first_at);
  const rows = await tx<(SelectedPacked & { device_id: number })[]>`
    select p.device_id, ${PACKED_LIST}
    from unnest(${arrayLiteral(keys.map((key) => key.device_id))}::bigint[], ${times}::timestamptz[]) k (id, at)
    join packed_points p on p.device_id = k.id and p.first_at = k.at
    order by p.device_id, p.first_at`;
  return rows.map((row) => packedRowOf(row.device_id, row));
}
