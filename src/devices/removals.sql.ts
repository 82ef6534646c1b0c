import type { Sql, Tx } from '../postgres/sql.ts';
import { arrayLiteral } from '../postgres/sqlText.ts';
import { wholeXid } from './deviceRows.sql.ts';

/** How long it is remembered that a device left a world: longer than any cursor is good for. */
export const REMOVAL_RETENTION_HOURS = 48;

/** A device that left a world, or was deleted. */
export interface RemovalRow {
  readonly worldId: number;
  readonly deviceId: number;
  readonly imei: string;
  /** The transaction by which it left. */
  readonly xid: number;
  readonly atMs: number;
}

interface RawRemoval {
  world_id: number;
  device_id: number;
  imei: string;
  xid: string;
  xmax: number;
  at: Date;
}

/** Where these devices were before. */
export async function selectRemovalsById(sql: Sql, deviceIds: readonly number[]): Promise<RemovalRow[]> {
  const rows = await sql<RawRemoval[]>`
    select ${columns(sql)} from device_removal where device_id = any(${arrayLiteral(deviceIds)}::bigint[])`;
  return rows.map(removalRow);
}

/** Everything that is remembered, oldest first. */
export async function selectRemovals(tx: Tx): Promise<RemovalRow[]> {
  const rows = await tx<RawRemoval[]>`
    select ${columns(tx)} from device_removal
    where at > clock_timestamp() - make_interval(hours => ${REMOVAL_RETENTION_HOURS}) order by at`;
  return rows.map(removalRow);
}

const columns = (sql: Sql | Tx) => sql`
  world_id, device_id, imei, at, xmin::text as xid,
  (select pg_snapshot_xmax(pg_current_snapshot())::text::bigint) as xmax`;

function removalRow({ world_id: worldId, device_id: deviceId, imei, xid, xmax, at }: RawRemoval): RemovalRow {
  return { worldId, deviceId, imei, xid: wholeXid(Number(xid), xmax), atMs: at.getTime() };
}

/** Deletes a chunk of what is too old to be remembered; returns how many. */
export async function pruneRemovals(sql: Sql): Promise<number> {
  const result = await sql`
    delete from device_removal where (world_id, device_id) in (
      select world_id, device_id from device_removal
      where at < clock_timestamp() - make_interval(hours => ${REMOVAL_RETENTION_HOURS})
      order by at limit ${PRUNE_CHUNK})`;
  return result.count;
}

const PRUNE_CHUNK = 5_000;
