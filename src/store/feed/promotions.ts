import type { Sql } from '../sql/sql.ts';

/**
 * Remembers how far this server had followed the one before it. To be asked by a pod that knew that one: a server that was
 * restarted since knows how far its own recovery went.
 */
export async function insertPromotion(sql: Sql): Promise<void> {
  await sql`
    insert into server_promotion (timeline, replayed_bytes)
    select server_timeline(), pg_wal_lsn_diff(pg_last_wal_replay_lsn(), '0/0')::bigint
    where server_timeline() is not null and pg_last_wal_replay_lsn() is not null
    on conflict (timeline) do nothing`;
}

/** How far servers had come when they were promoted, by timeline. */
export async function selectPromotions(sql: Sql): Promise<Map<number, number>> {
  const rows = await sql<{ timeline: number; replayed_bytes: number }[]>`
    select timeline, replayed_bytes from server_promotion`;
  return new Map(rows.map((row) => [row.timeline, row.replayed_bytes]));
}
