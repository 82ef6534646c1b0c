import { weekStartMs } from '../postgres/partitions.ts';
import type { Sql } from '../postgres/sql.ts';
import { arrayLiteral } from '../postgres/sqlText.ts';
import type { PackedColumns } from './codec/pointColumns.ts';
import { NEVER_PACKED_MS } from './packedLookup.sql.ts';
import {
  PACKED_LIST,
  type PackedRow,
  packedRowOf,
  type SelectedPacked,
  unpackRow,
} from './packedRows.sql.ts';
import { upTo } from './stretches.sql.ts';

/** One stored point as the history shows it. */
export interface HistoryPoint {
  readonly lat: number;
  readonly lng: number;
  readonly speedKmh: number;
  readonly heading: number;
  readonly satellites: number;
  readonly recordedAtMs: number;
}

interface Window {
  readonly fromMs: number;
  readonly toMs: number;
}

/**
 * The newest `limit` points of a device between two instants, both included, newest first. `nowMs` by the clock of this
 * pod: a page of recent points needs no look at the packed ones. Throws DamagedPoints.
 */
export async function selectHistory(
  sql: Sql,
  worldIds: readonly number[],
  imei: string,
  window: Window,
  limit: number,
  nowMs: number,
): Promise<HistoryPoint[]> {
  const rows = await selectNewestRows(sql, worldIds, imei, window, limit);
  const oldest = rows[limit - 1];
  const fromMs = oldest?.recordedAtMs ?? window.fromMs;
  if (fromMs > nowMs - NEVER_PACKED_MS) return rows;
  // Rows first: one that is packed between the two statements is seen twice, never not at all.
  const packed = await selectNewestPacked(sql, worldIds, imei, { ...window, fromMs }, limit);
  return packed.length === 0 ? rows : newestOf(rows, packed, window, limit);
}

async function selectNewestRows(
  sql: Sql,
  worldIds: readonly number[],
  imei: string,
  window: Window,
  limit: number,
): Promise<HistoryPoint[]> {
  const rows = await sql<
    {
      latitude: number;
      longitude: number;
      speed_kmh: number;
      heading: number;
      satellites: number;
      recorded_at: Date;
    }[]
  >`
    select latitude, longitude, speed_kmh, heading, satellites, recorded_at from position
    where device_id = (select id from device where imei = ${imei} and world_id = any(${arrayLiteral(worldIds)}::bigint[]))
      and recorded_at between ${new Date(window.fromMs)} and ${new Date(window.toMs)}
    order by recorded_at desc limit ${limit}`.named('history');
  return rows.map((row) => ({
    lat: row.latitude,
    lng: row.longitude,
    speedKmh: row.speed_kmh,
    heading: row.heading,
    satellites: row.satellites,
    recordedAtMs: row.recorded_at.getTime(),
  }));
}

/**
 * The packed points that reach into a window, newest first: as many as have `limit` points, and those that the window
 * cuts.
 */
async function selectNewestPacked(
  sql: Sql,
  worldIds: readonly number[],
  imei: string,
  { fromMs, toMs }: Window,
  limit: number,
): Promise<PackedRow[]> {
  const rows = await sql<(SelectedPacked & { device_id: number })[]>`
    select device_id, ${PACKED_LIST} from (
      select *, sum(case when last_at <= ${new Date(toMs)} then count else 0 end)
        over (order by first_at desc rows between unbounded preceding and 1 preceding) as newer
      from packed_points
      where device_id = (
          select id from device where imei = ${imei} and world_id = any(${arrayLiteral(worldIds)}::bigint[]))
        and first_at between ${new Date(weekStartMs(fromMs))} and ${new Date(toMs)} and last_at >= ${new Date(fromMs)}
      ) p
    where coalesce(newer, 0) < ${limit} order by first_at desc`.named('packed_history');
  return rows.map((row) => packedRowOf(row.device_id, row));
}

/** Unpacks no more than the limit needs. */
function newestOf(
  rows: readonly HistoryPoint[],
  packed: readonly PackedRow[],
  { fromMs, toMs }: Window,
  limit: number,
): HistoryPoint[] {
  const newest: HistoryPoint[] = [];
  let at = 0;
  const takeRows = (afterMs: number): void => {
    for (; at < rows.length && (rows[at] as HistoryPoint).recordedAtMs > afterMs; at++)
      newest.push(rows[at] as HistoryPoint);
  };
  for (const row of packed) {
    takeRows(row.lastMs);
    if (newest.length >= limit) break;
    const columns = unpackRow(row);
    const times = columns.column('recordedAtMs');
    const first = upTo(times, fromMs - 1);
    for (let n = upTo(times, toMs) - 1; n >= first && newest.length < limit; n--) {
      const recordedAtMs = times[n] as number;
      takeRows(recordedAtMs);
      newest.push(pointOf(columns, n));
      // What was packed was stored first, and stays.
      if (rows[at]?.recordedAtMs === recordedAtMs) at++;
    }
  }
  takeRows(Number.NEGATIVE_INFINITY);
  return newest.slice(0, limit);
}

function pointOf(columns: PackedColumns, n: number): HistoryPoint {
  return {
    lat: columns.column('lats')[n] as number,
    lng: columns.column('lngs')[n] as number,
    speedKmh: columns.column('speedsKmh')[n] as number,
    heading: columns.column('headings')[n] as number,
    satellites: columns.column('satellites')[n] as number,
    recordedAtMs: columns.column('recordedAtMs')[n] as number,
  };
}
