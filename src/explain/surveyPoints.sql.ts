import { setImmediate as nextTurn } from 'node:timers/promises';
import { type PackedColumns, upTo } from '../history/codec/pointColumns.ts';
import {
  PACKED_LIST,
  type PointRange,
  packedRowOf,
  positionAt,
  type SelectedPacked,
  type TimedPosition,
  unpackNewest,
  unpackRow,
} from '../history/packedPoints.sql.ts';
import { weekStartMs } from '../lib/time.ts';
import { arrayLiteral, type Tx } from '../postgres/sql.ts';

/** The position of a device that was its last before a time. */
export interface LastPoint extends TimedPosition {
  readonly deviceId: number;
}

/** How many packed days that have only late points are skipped. */
const LOOKS_BACK = 8;

/** The newest evaluated point of each range, whose devices differ. Ranges without such a point are left out. */
export async function selectLastPoints(sql: Tx, ranges: readonly PointRange[]): Promise<LastPoint[]> {
  let left = ranges.filter(({ fromMs, toMs }) => fromMs <= toMs);
  if (left.length === 0) return [];
  const latestMs = left.reduce((ms, { toMs }) => Math.max(ms, toMs), Number.NEGATIVE_INFINITY);
  const rows = await sql<{ id: number; recorded_at: Date; latitude: number; longitude: number }[]>`
    select d.id, p.recorded_at, p.latitude, p.longitude
    from unnest(
      ${arrayLiteral(left.map((range) => range.deviceId))}::bigint[],
      ${arrayLiteral(left.map((range) => range.fromMs))}::float8[],
      ${arrayLiteral(left.map((range) => range.toMs))}::float8[]) d (id, since, until)
    cross join lateral (
      select recorded_at, latitude, longitude from position
      where device_id = d.id and recorded_at >= to_timestamp(d.since / 1000) and recorded_at <= to_timestamp(d.until / 1000)
        and recorded_at between ${new Date(earliestOf(left))} and ${new Date(latestMs)} and late is not true
      order by recorded_at desc limit 1) p`;
  const last = new Map(
    rows.map((row): [number, LastPoint] => [
      row.id,
      { deviceId: row.id, recordedAtMs: row.recorded_at.getTime(), lat: row.latitude, lng: row.longitude },
    ]),
  );
  // Of two with the same time that of a packed row counts: it came first.
  left = left.map((range) => ({ ...range, fromMs: last.get(range.deviceId)?.recordedAtMs ?? range.fromMs }));
  for (let look = 0; look < LOOKS_BACK && left.length > 0; look++) {
    const further: PointRange[] = [];
    await unpackNewest(
      sql,
      left.filter(({ fromMs, toMs }) => fromMs <= toMs),
      (columns, range) => {
        const { deviceId } = range;
        const n = newestIn(columns, range);
        if (n === null) further.push({ ...range, toMs: (columns.column('recordedAtMs')[0] as number) - 1 });
        else last.set(deviceId, { deviceId, ...positionAt(columns, n) });
      },
    );
    left = further;
  }
  return [...last.values()];
}

/** The place of the newest point in a period that was evaluated; null: there is none. */
function newestIn(columns: PackedColumns, { fromMs, toMs }: PointRange): number | null {
  const times = columns.column('recordedAtMs');
  const lates = columns.column('lates');
  let n = upTo(times, toMs) - 1;
  while (n >= 0 && lates[n] === 1) n--;
  return n >= 0 && (times[n] as number) >= fromMs ? n : null;
}

/**
 * For each of these points the time of the newest evaluated one of its device that is at least `lookBackMs` older; where
 * there is none, the time `lookBackMs` before it. Points before `oldestMs` do not count.
 */
export async function selectStarts(
  sql: Tx,
  points: readonly LastPoint[],
  lookBackMs: number,
  oldestMs: number,
): Promise<Map<number, number>> {
  const starts = new Map(points.map(({ deviceId, recordedAtMs }) => [deviceId, recordedAtMs - lookBackMs]));
  if (lookBackMs === 0) return starts;
  const ranges = [...starts].map(([deviceId, toMs]) => ({ deviceId, fromMs: oldestMs, toMs }));
  for (const { deviceId, recordedAtMs } of await selectLastPoints(sql, ranges))
    starts.set(deviceId, recordedAtMs);
  for (const [deviceId, startMs] of starts) starts.set(deviceId, Math.max(startMs, oldestMs));
  return starts;
}

/** How many rows a range has, as far as they were counted. */
export interface CountedRows {
  /** The number of the range, from 0. */
  readonly n: number;
  readonly count: number;
  readonly lastMs: number;
}

/** Counts the rows of these ranges, which end at `toMs`, in their order until there are `max`. Empty ranges are left out. */
export async function countRows(
  sql: Tx,
  ranges: readonly PointRange[],
  toMs: number,
  max: number,
): Promise<CountedRows[]> {
  if (ranges.length === 0) return [];
  const rows = await sql<{ n: number; count: number; last: Date }[]>`
    select n, count(*) as count, max(recorded_at) as last from (
      select d.n, p.recorded_at
      from unnest(
        ${arrayLiteral(ranges.map((range) => range.deviceId))}::bigint[],
        ${arrayLiteral(ranges.map((range) => range.fromMs))}::float8[]) with ordinality d (id, since, n)
      cross join lateral (
        select recorded_at from position
        where device_id = d.id and recorded_at >= to_timestamp(d.since / 1000)
          and recorded_at between ${new Date(earliestOf(ranges))} and ${new Date(toMs)}
        order by recorded_at) p
      limit ${max}) c
    group by n order by n`;
  return rows.map(({ n, count, last }) => ({ n: n - 1, count, lastMs: last.getTime() }));
}

/**
 * How many packed points each of these ranges, which end at `toMs`, has. Only rows that are partly outside are unpacked. Throws
 * DamagedPoints.
 */
export async function countPacked(sql: Tx, ranges: readonly PointRange[], toMs: number): Promise<number[]> {
  const counts = ranges.map(() => 0);
  if (ranges.length === 0) return counts;
  const rows = await sql<(SelectedPacked & { n: number; inside: number | null })[]>`
    with p as materialized (
      select d.n, p.*, p.first_at >= to_timestamp(d.since / 1000) and p.last_at <= ${new Date(toMs)} as is_inside
      from unnest(
        ${arrayLiteral(ranges.map((range) => range.deviceId))}::bigint[],
        ${arrayLiteral(ranges.map((range) => range.fromMs))}::float8[]) with ordinality d (id, since, n)
      cross join lateral (
        select ${PACKED_LIST} from packed_points
        where device_id = d.id and last_at >= to_timestamp(d.since / 1000)
          and first_at between ${new Date(weekStartMs(earliestOf(ranges)))} and ${new Date(toMs)}) p)
    select n, sum(count)::float8 as inside, null::timestamptz as first_at, null::timestamptz as last_at,
      null::integer as count, null::integer as codec, null::integer as checksum, null::bytea as points
    from p where is_inside group by n
    union all
    select n, null, first_at, last_at, count, codec, checksum, points from p where not is_inside`;
  for (const row of rows) {
    const n = row.n - 1;
    let count = row.inside;
    if (count === null) {
      const { deviceId, fromMs } = ranges[n] as PointRange;
      const times = unpackRow(packedRowOf(deviceId, row)).column('recordedAtMs');
      count = upTo(times, toMs) - upTo(times, fromMs - 1);
      await nextTurn();
    }
    counts[n] = (counts[n] as number) + count;
  }
  return counts;
}

function earliestOf(ranges: readonly PointRange[]): number {
  return ranges.reduce((earliestMs, { fromMs }) => Math.min(earliestMs, fromMs), Number.MAX_SAFE_INTEGER);
}
