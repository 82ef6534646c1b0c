import type { Snapshot } from '../changelog/appliedTransactions.memory.ts';
import { type ServerRow, serverColumns, serverOfRow } from '../changelog/database.sql.ts';
import type { Server } from '../changelog/serverStarts.ts';
import { wholeXid } from '../devices/deviceRows.sql.ts';
import { COLUMN_NAMES, type PointColumns, sliceColumns } from '../history/codec/pointColumns.ts';
import { FOLLOWED_MS } from '../history/packing.sql.ts';
import { positionColumns } from '../history/points.sql.ts';
import { invariant } from '../lib/errors.ts';
import { HOUR_MS } from '../lib/time.ts';
import { CopiedRow } from '../postgres/copyRows.ts';
import type { Sql, Tx } from '../postgres/sql.ts';
import { instant, integers, RawSql } from '../postgres/sqlText.ts';
import type { PointsPlace } from './cursors.ts';

/** Rows of points with the transactions that stored them. */
export interface FoundPoints {
  readonly points: PointColumns;
  /** Of each row, the place of its device in the list that was asked for. */
  readonly devices: readonly number[];
  readonly xids: readonly number[];
}

/** A device whose points are read from the newest, or from a time, backwards. */
export interface WalkedDevice {
  readonly id: number;
  readonly beforeMs: number | null;
}

/** The latest instant that ISO 8601 can write with four digits. */
const END_OF_TIME_MS = 253_402_300_799_999;

const { list: COLUMNS, rowsUpTo } = positionColumns(COLUMN_NAMES);

/**
 * The rows of each device from the newest backwards, `rowsOfEach` at most. `xmax`: of a snapshot that sees all that is wanted.
 * A device that is in none of the worlds has none.
 */
export async function selectNewestRows(
  sql: Tx,
  worldIds: readonly number[],
  devices: readonly WalkedDevice[],
  rowsOfEach: number,
  xmax: number,
): Promise<FoundPoints> {
  const query = sql`
    with asked as materialized (
      select n, a.id, a.before from unnest(
        '{${integers(devices.map(({ id }) => id))}}'::bigint[],
        array[${instants(devices.map(({ beforeMs }) => beforeMs ?? END_OF_TIME_MS))}])
        with ordinality a (id, before, n)
      join device d on d.id = a.id and d.world_id in (${integers(worldIds)})
      order by n)
    select n, p.* from asked cross join lateral (
      select xmin, ${COLUMNS} from position
      where device_id = asked.id and recorded_at < asked.before
      order by recorded_at desc limit ${integers([rowsOfEach])}) p`;
  return foundBy(sql, query, devices.length * rowsOfEach, (row) => wholeXid(row.xid(), xmax));
}

/**
 * The late points of each device that one snapshot sees and another does not, by transaction and time, `limit` at most in all.
 * `after`: of the first device only those behind.
 */
export async function selectLatePoints(
  sql: Tx,
  worldIds: readonly number[],
  deviceIds: readonly number[],
  seen: Snapshot,
  upTo: Snapshot,
  after: PointsPlace['late'],
  limit: number,
): Promise<FoundPoints> {
  const begin = after ?? { xid: seen.xmin, recordedAtMs: 0 };
  const most = integers([limit]);
  const query = sql`
    with asked as materialized (
      select n, a.id from unnest('{${integers(deviceIds)}}'::bigint[]) with ordinality a (id, n)
      join device d on d.id = a.id and d.world_id in (${integers(worldIds)})
      order by n)
    select n, l.* from asked cross join lateral (
      select f.xid, p.* from (
        select xid, recorded_at from late_point
        where device_id = asked.id and xid >= ${xid8(seen.xmin)}
          and (asked.n > 1 or (xid, recorded_at) > (${xid8(begin.xid)}, ${instant(begin.recordedAtMs)}))
          and not pg_visible_in_snapshot(xid, ${snapshot(seen)}) and pg_visible_in_snapshot(xid, ${snapshot(upTo)})
        order by xid, recorded_at limit ${most}) f
      cross join lateral (
        select ${COLUMNS} from position where device_id = asked.id and recorded_at = f.recorded_at limit 1) p
      order by f.xid, f.recorded_at) l
    limit ${most}`;
  return foundBy(sql, query, limit, (row) => row.int8());
}

const xid8 = (xid: number) => new RawSql(`'${integers([xid]).text}'::xid8`);
const snapshot = (of: Snapshot) => new RawSql(`'${of}'::pg_snapshot`);
const instants = (times: readonly number[]) => new RawSql(times.map((ms) => instant(ms).text).join());

async function foundBy(
  sql: Tx,
  query: Parameters<Tx['copy']>[0],
  rowsMax: number,
  readXid: (row: CopiedRow) => number,
): Promise<FoundPoints> {
  const rows = rowsUpTo(rowsMax);
  const devices: number[] = [];
  const xids: number[] = [];
  const row = new CopiedRow();
  await sql.copy(query, (bytes) => {
    row.feed(bytes);
    while (row.next()) {
      devices.push(row.int8() - 1);
      xids.push(readXid(row));
      rows.read(row, row.timestampMs());
    }
  });
  return { points: sliceColumns(rows.points, 0, rows.count), devices, xids };
}

/**
 * Sees to it that points of these worlds stay rows for as long as a cursor of the next hours may be used (packHistory.ts).
 * That is written once in some hours.
 */
export async function followWorlds(reads: Sql, writes: Sql, worldIds: readonly number[]): Promise<void> {
  const [row] = await reads<{ count: number }[]>`
    select count(*)::int as count from followed_world
    where world_id in (${integers(worldIds)}) and until > clock_timestamp() + ${RENEWED_MS} * interval '1 millisecond'`;
  if (row?.count === worldIds.length) return;
  await writes`
    insert into followed_world (world_id, until)
    select id, clock_timestamp() + ${FOLLOWED_MS} * interval '1 millisecond' from world where id in (${integers(worldIds)})
    on conflict (world_id) do update set until = excluded.until`;
}

/** Longer than a cursor lives, as FOLLOWED_MS is. */
const RENEWED_MS = 40 * HOUR_MS;

/** The server that answers now, of which all that `seen` sees is wanted. */
export async function selectServer(sql: Tx, seen: Snapshot): Promise<Server> {
  const [row] = await sql<ServerRow[]>`select ${serverColumns(sql)}`;
  invariant(row, 'a select without a table returns a row');
  return serverOfRow(row, seen);
}
