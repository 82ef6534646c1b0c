import type { Sql } from '../sql/sql.ts';

const PRUNE_CHUNK = 5_000;

/**
 * Deletes a chunk of what areas, devices and memberships were like up to `beforeMs`, when no stored point can be as old;
 * returns how many rows.
 */
export async function prunePast(sql: Sql, beforeMs: number): Promise<number> {
  const before = new Date(beforeMs);
  const revisions = await sql`
    delete from area_revision where (area_id, revision) in (
      select area_id, revision from area_revision where valid_to < ${before} order by valid_to limit ${PRUNE_CHUNK})`;
  const moves = await sql`
    delete from device_move where id in (
      select id from device_move where until < ${before} order by until limit ${PRUNE_CHUNK})`;
  const memberships = await sql`
    delete from membership_end where id in (
      select id from membership_end where until < ${before} order by until limit ${PRUNE_CHUNK})`;
  return revisions.count + moves.count + memberships.count;
}
