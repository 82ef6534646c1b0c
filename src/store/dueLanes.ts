import type { Sql } from './sql.ts';
import { RawSql } from './sqlText.ts';

export interface DueLane {
  readonly webhookId: number;
  readonly dueInMs: number;
}

/**
 * Every endpoint with something to send and when, or with a lease or an attempt that was left behind: what the
 * schedule should hold. One look into an index for each endpoint.
 */
export async function selectDueLanes(sql: Sql): Promise<DueLane[]> {
  const rows = await sql<{ id: number; due_in_ms: number }[]>`
    with abandoned as (
      select w.id from webhook w where w.leased_until < clock_timestamp()
      union
      select w.id from webhook_delivery d join webhook w on w.id = d.webhook_id
      where d.attempt_token is not null and w.leased_until is null
    )
    select lane.id, case when lane.id in (select id from abandoned) then 0 else ${dueInMs('due.at')} end as due_in_ms
    from ${LANES} left join lateral (
      select d.next_attempt_at as at from webhook_delivery d
      where d.webhook_id = lane.id and d.next_attempt_at is not null and ${SENDABLE}
      order by d.next_attempt_at limit 1) due on true
    where due.at is not null or lane.id in (select id from abandoned)`;
  return rows.map((row) => ({ webhookId: row.id, dueInMs: row.due_in_ms }));
}

/** When an endpoint's next attempt is due: milliseconds from now, not below 0; null when there is none. */
export async function selectDueInMs(sql: Sql, webhookId: number): Promise<number | null> {
  const [row] = await sql<{ due_in_ms: number }[]>`
    select ${dueInMs('d.next_attempt_at')} as due_in_ms
    from webhook_delivery d join ${LANES} on lane.id = d.webhook_id
    where d.webhook_id = ${webhookId} and d.next_attempt_at is not null and ${SENDABLE}
    order by d.next_attempt_at limit 1`;
  return row?.due_in_ms ?? null;
}

/** How much waits, and for how long the oldest has been due. */
export async function selectBacklog(sql: Sql): Promise<{ waiting: number; oldestDueMs: number }> {
  const [row] = await sql<{ waiting: number; oldest_ms: number | null }[]>`
    select count(*)::int as waiting,
      greatest(0, max(extract(epoch from clock_timestamp() - next_attempt_at)) * 1000)::float8 as oldest_ms
    from webhook_delivery where next_attempt_at is not null`;
  return { waiting: row?.waiting ?? 0, oldestDueMs: row?.oldest_ms ?? 0 };
}

/** Milliseconds until `time`, a column, not below 0. */
export function dueInMs(time: string): RawSql {
  return new RawSql(`greatest(0, extract(epoch from ${time} - clock_timestamp()) * 1000)::float8`);
}

/**
 * Whether a delivery `d` of `lane` may be sent when its time has come. A deactivated account holds everything, an
 * inactive endpoint everything but tests; one that is replayed is a replay like any other.
 */
export const SENDABLE = new RawSql(`
  lane.owner_active and (lane.active or (d.event_type = 'ping' and d.status <> 'requeued'))`);

const LANES = new RawSql(`(
  select w.id, w.active, a.active as owner_active from webhook w join account a on a.id = w.account_id) lane`);
