import { weekStartMs } from '../lib/time.ts';
import { arrayLiteral, type Sql } from '../postgres/sql.ts';
import { emptyColumns, type PointColumns } from './codec/pointColumns.ts';
import type { PackedRow, SelectedPacked, TimeWindow } from './packedPoints.sql.ts';
import { NEVER_PACKED_MS, PACKED_LIST, packedRowOf } from './packedPoints.sql.ts';
import { MOTION, mergedPoints } from './points.sql.ts';

/** One stored point as the history shows it. */
export interface HistoryPoint {
  readonly lat: number;
  readonly lng: number;
  readonly speedKmh: number;
  readonly heading: number;
  readonly satellites: number;
  readonly recordedAtMs: number;
}

/**
 * The newest `limit` points of a device in a window, newest first. `nowMs` by the clock of this pod: a page of recent points
 * needs no look at the packed ones. Throws DamagedPoints.
 */
export async function selectHistory(
  sql: Sql,
  worldIds: readonly number[],
  imei: string,
  window: TimeWindow,
  limit: number,
  nowMs: number,
): Promise<HistoryPoint[]> {
  const rows = await selectNewestRows(sql, worldIds, imei, window, limit);
  const fromMs = rows[limit - 1]?.recordedAtMs ?? window.fromMs;
  if (fromMs > nowMs - NEVER_PACKED_MS) return rows;
  // Rows first: one that is packed between the two statements is seen twice, never not at all.
  const packed = await selectNewestPacked(sql, worldIds, imei, { ...window, fromMs }, limit);
  return packed.length === 0 ? rows : newestOf(columnsOf(rows), packed, { ...window, fromMs }, limit);
}

/** Merges from the newest on, and unpacks no more than the limit needs. `packed`: newest first. */
function newestOf(
  rows: PointColumns,
  packed: readonly PackedRow[],
  { fromMs, toMs }: TimeWindow,
  limit: number,
): HistoryPoint[] {
  const newest: HistoryPoint[] = [];
  const take = (window: TimeWindow, within: readonly PackedRow[]): void => {
    const stored = { n: 0, rows, packed: within, columns: SHOWN, ...window };
    for (const points of [...mergedPoints(stored)].reverse())
      for (let n = points.count - 1; n >= 0 && newest.length < limit; n--) newest.push(pointOf(points, n));
  };
  let endMs = toMs;
  for (const row of packed) {
    take({ fromMs: row.lastMs + 1, toMs: endMs }, []);
    if (newest.length === limit) return newest;
    take({ fromMs: Math.max(fromMs, row.firstMs), toMs: Math.min(endMs, row.lastMs) }, [row]);
    endMs = row.firstMs - 1;
  }
  take({ fromMs, toMs: endMs }, []);
  return newest;
}

const SHOWN = [...MOTION, 'headings', 'satellites'] as const;

async function selectNewestRows(
  sql: Sql,
  worldIds: readonly number[],
  imei: string,
  { fromMs, toMs }: TimeWindow,
  limit: number,
): Promise<HistoryPoint[]> {
  const rows = await sql<(Omit<HistoryPoint, 'recordedAtMs'> & { recordedAt: Date })[]>`
    select latitude as lat, longitude as lng, speed_kmh as "speedKmh", heading, satellites, recorded_at as "recordedAt"
    from position
    where device_id = (select id from device where imei = ${imei} and world_id = any(${arrayLiteral(worldIds)}::bigint[]))
      and recorded_at between ${new Date(fromMs)} and ${new Date(toMs)}
    order by recorded_at desc limit ${limit}`.named('history');
  return rows.map(({ recordedAt, ...point }) => ({ ...point, recordedAtMs: recordedAt.getTime() }));
}

/** The packed points that reach into a window, newest first: as many as have `limit` points, and those that it cuts. */
async function selectNewestPacked(
  sql: Sql,
  worldIds: readonly number[],
  imei: string,
  { fromMs, toMs }: TimeWindow,
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

/** Points, newest first, as columns, oldest first. */
function columnsOf(points: readonly HistoryPoint[]): PointColumns {
  const columns = emptyColumns(points.length, SHOWN);
  for (const [n, point] of points.toReversed().entries()) {
    columns.recordedAtMs[n] = point.recordedAtMs;
    columns.lats[n] = point.lat;
    columns.lngs[n] = point.lng;
    columns.speedsKmh[n] = point.speedKmh;
    columns.headings[n] = point.heading;
    columns.satellites[n] = point.satellites;
  }
  return columns;
}

function pointOf(points: PointColumns, n: number): HistoryPoint {
  return {
    lat: points.lats[n] as number,
    lng: points.lngs[n] as number,
    speedKmh: points.speedsKmh[n] as number,
    heading: points.headings[n] as number,
    satellites: points.satellites[n] as number,
    recordedAtMs: points.recordedAtMs[n] as number,
  };
}
