import type { Sql } from '../postgres/sql.ts';
import type { ReplayRequest } from './replayRequest.ts';

/** Deliveries of one statement: so few that nobody waits for their locks. */
const CHUNK = 1_000;

/** Where the next chunk begins; by text, since a time is finer than milliseconds. */
export interface ReplayPlace {
  readonly createdAt: string;
  readonly id: string;
}

/**
 * Gives a chunk of the endpoint's deliveries a fresh budget, with attempts due now in the order of their creation. Those
 * with an attempt in flight are passed over, and those that somebody has locked. A delivery that fails again meanwhile lies
 * behind `after` and is not taken twice. `next` is null when no more are left.
 */
export async function requeueChunk(
  sql: Sql,
  webhookId: number,
  { statuses, fromMs, toMs }: ReplayRequest,
  after: ReplayPlace | null,
): Promise<{ requeued: number; next: ReplayPlace | null }> {
  const [row] = await sql<
    { looked: number; requeued: number; created_at: string | null; id: string | null }[]
  >`
    with found as materialized (
      select id, created_at, row_number() over (order by created_at, id) as n from (
        select id, created_at from webhook_delivery
        where webhook_id = ${webhookId} and status = any(${statuses}::text[])
          ${fromMs === null ? sql`` : sql`and created_at >= ${new Date(fromMs)}`}
          ${toMs === null ? sql`` : sql`and created_at < ${new Date(toMs + 1)}`}
          ${after === null ? sql`` : sql`and (created_at, id) > (${after.createdAt}::timestamptz, ${after.id})`}
        order by created_at, id limit ${CHUNK}) f
    ), locked as materialized (
      select d.id, d.created_at, f.n from found f join webhook_delivery d using (id, created_at)
      where d.attempt_token is null and d.status = any(${statuses}::text[])
      for update of d skip locked
    ), requeued as (
      update webhook_delivery d
      set status = 'requeued', spent = 0, next_attempt_at = statement_timestamp() + l.n * interval '1 microsecond'
      from locked l where d.id = l.id and d.created_at = l.created_at
      returning d.id
    )
    select (select count(*)::int from found) as looked, (select count(*)::int from requeued) as requeued,
      (select created_at::text from found order by n desc limit 1) as created_at,
      (select id from found order by n desc limit 1) as id`;
  if (row === undefined || row.created_at === null || row.id === null) return { requeued: 0, next: null };
  const next = row.looked < CHUNK ? null : { createdAt: row.created_at, id: row.id };
  return { requeued: row.requeued, next };
}
