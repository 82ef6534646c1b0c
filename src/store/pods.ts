import type { FeedStand } from './changes.ts';
import type { Sql } from './sql.ts';

/**
 * A pod that was not seen for this long is not waited for by writers: it is dead, or cut off from Postgres. It must
 * be longer than a pod answers from memory without asking Postgres again (Admittance) and one heartbeat together.
 */
export const LIVE_SECONDS = 5;
const FORGET_MINUTES = 60;

/** Says that this pod runs and has applied every change up to there. On another server it has not. */
export async function upsertPod(sql: Sql, podId: string, { cursor, history }: FeedStand): Promise<void> {
  await sql`
    insert into pod (id, feed_cursor) select ${podId}, ${cursor}::pg_snapshot where server_history() = ${history}
    on conflict (id) do update set feed_cursor = excluded.feed_cursor, seen_at = clock_timestamp()`;
}

export async function deletePod(sql: Sql, podId: string): Promise<void> {
  await sql`delete from pod where id = ${podId}`;
}

/** Pods that died without a word leave a row behind; this removes the old ones. */
export async function forgetDeadPods(sql: Sql): Promise<void> {
  await sql`delete from pod where seen_at < clock_timestamp() - make_interval(mins => ${FORGET_MINUTES})`;
}

/** How many live pods have not yet applied the transaction `xid`. */
export async function countPodsBehind(sql: Sql, xid: string): Promise<number> {
  const [row] = await sql<{ behind: number }[]>`
    select count(*)::int as behind from pod
    where seen_at > clock_timestamp() - make_interval(secs => ${LIVE_SECONDS})
      and not pg_visible_in_snapshot(${xid}::xid8, feed_cursor)`;
  return row?.behind ?? 0;
}
