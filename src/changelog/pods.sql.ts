import type { Sql } from '../postgres/sql.ts';
import type { LogEnd } from './appliedTransactions.memory.ts';

/**
 * A pod answers from memory alone for this long after it was last known to have every write. After that (the pod was
 * stopped, or Postgres is lost) each call first tries to catch up (access/authorizer.ts).
 */
export const FRESH_MS = 3_000;
/**
 * Writers do not wait for a pod that was not seen for this long: it is dead, or cut off from Postgres. It must be longer
 * than one heartbeat and FRESH_MS together.
 */
export const LIVE_SECONDS = 5;
const FORGET_MINUTES = 60;

/** Records that this pod is alive and how far it has applied the change log. Does nothing if this is another server. */
export async function upsertPod(
  sql: Sql,
  podId: string,
  { seen, server: { history } }: LogEnd,
): Promise<void> {
  await sql`
    insert into pod (id, feed_cursor) select ${podId}, ${String(seen)}::pg_snapshot where server_history() = ${history}
    on conflict (id) do update set feed_cursor = excluded.feed_cursor, seen_at = clock_timestamp()`;
}

export async function deletePod(sql: Sql, podId: string): Promise<void> {
  await sql`with probe as (delete from write_probe where pod_id = ${podId}) delete from pod where id = ${podId}`;
}

/** Deletes the rows of pods that ended without deleting them. */
export async function forgetDeadPods(sql: Sql): Promise<void> {
  await sql`
    with dead as (
      delete from pod where seen_at < clock_timestamp() - make_interval(mins => ${FORGET_MINUTES})
    )
    delete from write_probe where at < clock_timestamp() - make_interval(mins => ${FORGET_MINUTES})`;
}

/** How many live pods have not yet applied the transaction `xid`. */
export async function countPodsBehind(sql: Sql, xid: string): Promise<number> {
  const [row] = await sql<{ behind: number }[]>`
    select count(*)::int as behind from pod
    where seen_at > clock_timestamp() - make_interval(secs => ${LIVE_SECONDS})
      and not pg_visible_in_snapshot(${xid}::xid8, feed_cursor)`;
  return row?.behind ?? 0;
}

/** Writes something that is as durable as a point. */
export async function writeProbe(sql: Sql, podId: string): Promise<void> {
  await sql`
    insert into write_probe (pod_id) values (${podId})
    on conflict (pod_id) do update set at = clock_timestamp()`;
}
