import type { Sql } from '../postgres/sql.ts';

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

/** Accounts of one call, and revisions that are deleted of each. */
const ACCOUNTS_AT_A_TIME = 20;
const REVISIONS_AT_A_TIME = 2_000;

/**
 * Deletes the oldest past shapes of accounts that have more vertices of them than their plan gives for present shapes.
 * Returns how many: when there are more, the rest is for the next call.
 */
export async function trimPastShapes(sql: Sql): Promise<number> {
  const accounts = await sql<{ id: number; excess: number }[]>`
    select u.account_id as id, u.past_vertices - p.max_area_vertices as excess
    from area_usage u join account a on a.id = u.account_id join plan p on p.name = a.plan
    where u.past_vertices > p.max_area_vertices order by random() limit ${ACCOUNTS_AT_A_TIME}`;
  let trimmed = 0;
  for (const { id, excess } of accounts) {
    const { count } = await sql`
      with oldest as (
        select r.area_id, r.revision, r.valid_to, octet_length(r.points) / 16 as vertices
        from area a join area_revision r on r.area_id = a.id
        where a.account_id = ${id} and r.valid_to is not null
        order by r.valid_to, r.area_id, r.revision limit ${REVISIONS_AT_A_TIME}
      ), counted as (
        select area_id, revision,
          sum(vertices) over (order by valid_to, area_id, revision) - vertices as before
        from oldest
      )
      delete from area_revision where (area_id, revision) in (
        select area_id, revision from counted where before < ${excess})`;
    trimmed += count;
  }
  return trimmed;
}
