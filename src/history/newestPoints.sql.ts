import { WEEK_MS, weekStartMs } from '../lib/time.ts';
import { arrayLiteral, type Sql } from '../postgres/sql.ts';
import {
  countOf,
  emptyColumns,
  mergeColumns,
  type PointColumns,
  sliceColumns,
  upTo,
} from './codec/pointColumns.ts';
import type { PackedRow, SelectedPacked, TimeWindow } from './packedPoints.sql.ts';
import { NEVER_PACKED_MS, PACKED_LIST, packedRowOf, unpackRow } from './packedPoints.sql.ts';
import { MOTION } from './points.sql.ts';

/** What the history shows of a point. */
const SHOWN = [...MOTION, 'headings', 'satellites'] as const;

/** Most pages of packed points lie within. To look back as far as the plan allows asks every week of it. */
const LOOK_BACK_MS = WEEK_MS;

/**
 * The newest `limit` points of a device in a window, in pieces: newest first, the points of each oldest first. `nowMs` by the
 * clock of this pod: a page of recent points needs no look at the packed ones. Throws DamagedPoints.
 */
export async function selectHistory(
  sql: Sql,
  worldIds: readonly number[],
  imei: string,
  { fromMs, toMs }: TimeWindow,
  limit: number,
  nowMs: number,
): Promise<PointColumns[]> {
  const packedToMs = nowMs - NEVER_PACKED_MS;
  const pieces: PointColumns[] = [];
  let untilMs = toMs;
  for (const sinceMs of [packedToMs + 1, Math.min(toMs, packedToMs) - LOOK_BACK_MS, fromMs]) {
    const window = { fromMs: Math.max(fromMs, sinceMs), toMs: untilMs };
    const left = limit - countOf(pieces);
    if (left === 0) break;
    if (window.fromMs > window.toMs) continue;
    pieces.push(...(await selectNewest(sql, worldIds, imei, window, left, window.fromMs > packedToMs)));
    untilMs = window.fromMs - 1;
  }
  return pieces;
}

/** What one statement selects: a row of `position`, or one of `packed_points`, of which the other columns are null. */
interface Selected extends SelectedPacked {
  readonly latitude: number | null;
  readonly longitude: number;
  readonly speed_kmh: number;
  readonly heading: number;
  readonly satellites: number;
  readonly recorded_at: Date;
  readonly device_id: number;
}

/** One statement, so a point that is packed at this moment is seen once. */
async function selectNewest(
  sql: Sql,
  worldIds: readonly number[],
  imei: string,
  { fromMs, toMs }: TimeWindow,
  limit: number,
  isRecent: boolean,
): Promise<PointColumns[]> {
  const [from, to] = [new Date(fromMs), new Date(toMs)];
  const device = sql`
    (select id from device where imei = ${imei} and world_id = any(${arrayLiteral(worldIds)}::bigint[]))`;
  const newestRows = sql<Selected[]>`
    select latitude, longitude, speed_kmh, heading, satellites, recorded_at from position
    where device_id = ${device} and recorded_at between ${from} and ${to}
    order by recorded_at desc limit ${limit}`;
  if (isRecent) return [rowsOf(await newestRows.named('history'))];
  // As many packed ones as have `limit` points, and those that the window cuts.
  const selected = await sql<Selected[]>`
    (select r.*, null::bigint as device_id, null::timestamptz as first_at, null::timestamptz as last_at,
      null::integer as count, null::integer as codec, null::integer as checksum, null::bytea as points
    from (${newestRows}) r)
    union all
    (select null, null, null, null, null, null, device_id, ${PACKED_LIST} from (
      select *, sum(case when last_at <= ${to} then count else 0 end)
        over (order by first_at desc rows between unbounded preceding and 1 preceding) as newer
      from packed_points
      where device_id = ${device}
        and first_at between ${new Date(weekStartMs(fromMs))} and ${to} and last_at >= ${from}
      ) p
    where coalesce(newer, 0) < ${limit} order by first_at desc)`.named('packed_history');
  const rowCount = selected.findIndex(({ latitude }) => latitude === null);
  if (rowCount === -1) return [rowsOf(selected)];
  const rows = rowsOf(selected.slice(0, rowCount));
  // No older row was read.
  const sinceMs = rowCount === limit ? (rows.recordedAtMs[0] as number) : fromMs;
  const packed = selected.slice(rowCount).map((row) => packedRowOf(row.device_id, row));
  return newestOf(rows, packed, { fromMs: sinceMs, toMs }, limit);
}

/** Rows, newest first, as columns, oldest first. */
function rowsOf(selected: readonly Selected[]): PointColumns {
  const { length } = selected;
  const columns = emptyColumns(length, SHOWN);
  for (let n = 0; n < length; n++) {
    const row = selected[length - 1 - n] as Selected;
    columns.recordedAtMs[n] = row.recorded_at.getTime();
    columns.lats[n] = row.latitude as number;
    columns.lngs[n] = row.longitude;
    columns.speedsKmh[n] = row.speed_kmh;
    columns.headings[n] = row.heading;
    columns.satellites[n] = row.satellites;
  }
  return columns;
}

/** Merges from the newest on, and unpacks no more than the limit needs. `packed`: newest first. */
function newestOf(
  rows: PointColumns,
  packed: readonly PackedRow[],
  { fromMs, toMs }: TimeWindow,
  limit: number,
): PointColumns[] {
  const pieces: PointColumns[] = [];
  let left = limit;
  const take = (points: PointColumns): void => {
    const newest = sliceColumns(points, Math.max(0, points.count - left), points.count);
    left -= newest.count;
    if (newest.count > 0) pieces.push(newest);
  };
  const rowsWithin = (sinceMs: number, untilMs: number): PointColumns => {
    const start = upTo(rows.recordedAtMs, sinceMs - 1);
    return sliceColumns(rows, start, Math.max(start, upTo(rows.recordedAtMs, untilMs)));
  };
  let endMs = toMs;
  for (const row of packed) {
    take(rowsWithin(row.lastMs + 1, endMs));
    if (left === 0) return pieces;
    const untilMs = Math.min(endMs, row.lastMs);
    const points = unpackRow(row).within({ fromMs, toMs: untilMs }, SHOWN, left);
    // Where it has as many as are left, no row before them is among the newest.
    const sinceMs =
      points.count === left ? (points.recordedAtMs[0] as number) : Math.max(fromMs, row.firstMs);
    take(mergeColumns(points, rowsWithin(sinceMs, untilMs), SHOWN));
    endMs = row.firstMs - 1;
  }
  take(rowsWithin(fromMs, endMs));
  return pieces;
}
