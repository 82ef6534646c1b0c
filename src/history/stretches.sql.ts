import { CopiedRow } from '../postgres/copiedRow.ts';
import { weekStartMs } from '../postgres/partitions.ts';
import type { Tx } from '../postgres/sql.ts';
import { instant, integers, RawSql } from '../postgres/sqlText.ts';
import {
  COLUMN_NAMES,
  emptyColumns,
  type PackedColumns,
  type PointColumns,
  sliceColumns,
} from './codec/pointColumns.ts';
import {
  MARK_LIST,
  MOTION_LIST,
  PLACE_LIST,
  POINT_LIST,
  readMarkedPlace,
  readMotion,
  readPlace,
  readPoint,
} from './copiedPoint.sql.ts';
import { copiedPackedRow, PACKED_LIST, type PackedRow, unpackRow } from './packedRows.sql.ts';

/** Rows of one statement: a few milliseconds of a connection. */
const ROWS = 4_096;
/** Rows of packed points of one statement: a week of a vehicle, or half a megabyte. */
const PACKED_ROWS = 8;

/** All points of a device between two instants: those that are rows, and those that are packed. */
export interface Stretch {
  /** It may end before the window that was asked for: there were too many. */
  readonly fromMs: number;
  readonly toMs: number;
  readonly rows: PointColumns;
  /** In order; some of their points may be outside. */
  readonly packed: readonly PackedRow[];
  readonly isEmpty: boolean;
  readonly wanted: WantedColumns;
}

/** What a reader needs of the points: time and place; with speed; all but how they came; or time, place and how they came. */
export type WantedColumns = 'place' | 'motion' | 'plain' | 'marked';
const PLACE = ['recordedAtMs', 'lats', 'lngs'] as const;
const MOTION = [...PLACE, 'speedsKmh'] as const;
const PLAIN = [...MOTION, 'altitudesM', 'headings', 'satellites', 'odometersKm'] as const;
const MARKED = [...PLACE, 'receivedAtMs', 'lates'] as const;
const NAMES = { place: PLACE, motion: MOTION, plain: PLAIN, marked: MARKED };
/** The columns of rows and what reads them, and as many nulls where packed points are. */
const LISTS = {
  place: { points: PLACE_LIST, nulls: nulls(PLACE.length), read: readPlace },
  motion: { points: MOTION_LIST, nulls: nulls(MOTION.length), read: readMotion },
  plain: { points: POINT_LIST, nulls: nulls(PLAIN.length), read: readPoint },
  marked: {
    points: new RawSql(`${PLACE_LIST.text}, ${MARK_LIST.text}`),
    nulls: nulls(MARKED.length),
    read: readMarkedPlace,
  },
};

/**
 * The first points of a device in a window. The window says which partitions are looked at, so it should be short. One
 * statement: a point that is packed at this moment is seen once. Null: the device is in none of the worlds.
 */
export async function selectStretch(
  sql: Tx,
  worldIds: readonly number[],
  deviceId: number,
  { fromMs, toMs }: { readonly fromMs: number; readonly toMs: number },
  wanted: WantedColumns,
): Promise<Stretch | null> {
  const names = NAMES[wanted];
  const lists = LISTS[wanted];
  // Most stretches are all packed, and need no room for rows.
  let rows = NO_ROWS;
  const packed: PackedRow[] = [];
  const row = new CopiedRow();
  let count = 0;
  let isThere = false;
  // A device without points gives one row without values; one that is not there gives none.
  const query = sql`
    select p.* from device d left join lateral (
      (select ${lists.points}, ${NO_PACKED} from position
        where device_id = ${integers([deviceId])} and recorded_at between ${instant(fromMs)} and ${instant(toMs)}
        order by recorded_at limit ${integers([ROWS])})
      union all
      (select ${lists.nulls}, ${PACKED_LIST} from packed_points
        where device_id = ${integers([deviceId])} and last_at >= ${instant(fromMs)}
          and first_at between ${instant(weekStartMs(fromMs))} and ${instant(toMs)}
        order by first_at limit ${integers([PACKED_ROWS])})) p on true
    where d.id = ${integers([deviceId])} and d.world_id in (${integers(worldIds)})`;
  await sql.copy(query, (bytes) => {
    row.feed(bytes);
    while (row.next()) {
      isThere = true;
      const recordedAtMs = row.timestampMsOrNull();
      if (recordedAtMs !== null) {
        if (count === 0) rows = emptyColumns(ROWS, names);
        lists.read(row, recordedAtMs, rows, count);
        count++;
        continue;
      }
      row.skipNulls(names.length - 1);
      const firstMs = row.timestampMsOrNull();
      if (firstMs !== null) packed.push(copiedPackedRow(row, deviceId, firstMs));
    }
  });
  if (!isThere) return null;
  packed.sort((a, b) => a.firstMs - b.firstMs);
  const lastRowMs = count === ROWS ? (rows.recordedAtMs[count - 1] as number) : toMs;
  const lastPackedMs = packed.length === PACKED_ROWS ? (packed.at(-1) as PackedRow).lastMs : toMs;
  return {
    fromMs,
    toMs: Math.min(toMs, lastRowMs, lastPackedMs),
    rows: sliceColumns(rows, 0, count),
    packed,
    isEmpty: count === 0 && packed.length === 0,
    wanted,
  };
}

const NO_ROWS = emptyColumns(0);
const NO_PACKED = new RawSql(
  'null::timestamptz as first_at, null::timestamptz, null::integer, null::integer, null::integer, null::bytea',
);

function nulls(count: number): RawSql {
  return new RawSql(Array(count).fill('null').join());
}

/** The points of a stretch, oldest first, in pieces of any length. Throws DamagedPoints. */
export function* pointsOf({
  fromMs,
  toMs,
  rows,
  packed,
  wanted,
}: Stretch): Generator<PointColumns, void, undefined> {
  const end = upTo(rows.recordedAtMs, toMs);
  let at = 0;
  for (const row of packed) {
    if (row.firstMs > toMs) break;
    const before = upTo(rows.recordedAtMs, row.firstMs - 1);
    if (before > at) yield sliceColumns(rows, at, before);
    const inside = Math.min(end, upTo(rows.recordedAtMs, row.lastMs));
    const points = pointsIn(unpackRow(row), { fromMs, toMs }, wanted);
    const merged = mergeColumns(points, sliceColumns(rows, before, inside));
    if (merged.count > 0) yield merged;
    at = inside;
  }
  if (end > at) yield sliceColumns(rows, at, end);
}

/** The points of a packed row in a time. */
export function pointsIn(
  columns: PackedColumns,
  { fromMs, toMs }: { readonly fromMs: number; readonly toMs: number },
  wanted: WantedColumns,
): PointColumns {
  const times = columns.column('recordedAtMs');
  return sliceColumns(columns.columns(NAMES[wanted]), upTo(times, fromMs - 1), upTo(times, toMs));
}

/** How many of these times, in order, are not after `ms`. */
export function upTo(timesMs: Float64Array, ms: number): number {
  let low = 0;
  for (let high = timesMs.length; low < high; ) {
    const middle = (low + high) >>> 1;
    if ((timesMs[middle] as number) <= ms) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Points of both, by time. Of two with the same time the one of `packed` stays: it was stored first. */
export function mergeColumns(packed: PointColumns, rows: PointColumns): PointColumns {
  if (rows.count === 0) return packed;
  if (packed.count === 0) return rows;
  const merged = emptyColumns(packed.count + rows.count);
  const times = packed.recordedAtMs;
  const rowTimes = rows.recordedAtMs;
  let count = 0;
  for (let p = 0, r = 0; p < packed.count || r < rows.count; count++) {
    const time = p < packed.count ? (times[p] as number) : Number.POSITIVE_INFINITY;
    const rowTime = r < rows.count ? (rowTimes[r] as number) : Number.POSITIVE_INFINITY;
    const isPacked = time <= rowTime;
    const source = isPacked ? packed : rows;
    const at = isPacked ? p++ : r++;
    for (const name of COLUMN_NAMES) merged[name][count] = source[name][at] as number;
    if (time === rowTime) r++;
  }
  return sliceColumns(merged, 0, count);
}
