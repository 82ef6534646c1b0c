import type { Sql } from '../../postgres/sql.ts';
import { RawSql } from '../../postgres/sqlText.ts';
import type { DueEndpoint } from '../../redis/wakeUps.ts';
import { FIRST_SENDABLE } from './claims.sql.ts';

/** A part of what the delivery schedule should hold. */
export interface DueEndpoints {
  readonly endpoints: readonly DueEndpoint[];
  /** The next part begins after this id; 0 when this was the last part. */
  readonly nextAfterId: number;
  /** How long the oldest sendable delivery of this part has been due. */
  readonly oldestDueMs: number;
}

/**
 * Up to `max` endpoints with ids above `afterId` that have something to send, and when; and every endpoint that its
 * holder left with a lease or an attempt in flight. Jumps from one waiting endpoint to the next in the index of waiting
 * deliveries. So neither idle endpoints nor the length of a backlog cost anything.
 */
export async function selectDueEndpoints(sql: Sql, afterId: number, max: number): Promise<DueEndpoints> {
  const rows = await sql<{ id: number; is_due: boolean; due_in_ms: number; late_ms: number }[]>`
    with recursive waiting (id, n) as (
      select ${afterId}::bigint, 0
      union all
      select next.id, waiting.n + 1 from waiting cross join lateral (
        select d.webhook_id as id from webhook_delivery d
        where d.next_attempt_at is not null and d.webhook_id > waiting.id order by d.webhook_id limit 1) next
      where waiting.n < ${max}
    )
    select waiting.id, first.next_attempt_at is not null as is_due,
      ${DUE_IN_MS} as due_in_ms,
      greatest(0, extract(epoch from clock_timestamp() - first.next_attempt_at) * 1000)::float8 as late_ms
    from waiting left join ${ENDPOINTS} on endpoint.webhook_id = waiting.id
      left join lateral (${FIRST}) first on true
    where waiting.n > 0 order by waiting.n`;
  const due = rows.filter((row) => row.is_due);
  const dueInMsById = new Map(due.map((row) => [row.id, row.due_in_ms]));
  for (const id of await selectAbandoned(sql)) dueInMsById.set(id, 0);
  return {
    endpoints: [...dueInMsById].map(([webhookId, dueInMs]) => ({ webhookId, dueInMs })),
    nextAfterId: rows.length < max ? 0 : (rows.at(-1)?.id ?? 0),
    oldestDueMs: due.reduce((oldest, row) => Math.max(oldest, row.late_ms), 0),
  };
}

/** Endpoints whose holder has died or given up. There are never more of them than were leased. */
async function selectAbandoned(sql: Sql): Promise<number[]> {
  const rows = await sql<{ id: number }[]>`
    select w.id from webhook w where w.leased_until < clock_timestamp()
    union
    select w.id from webhook_delivery d join webhook w on w.id = d.webhook_id
    where d.attempt_token is not null and w.leased_until is null`;
  return rows.map(({ id }) => id);
}

/** When an endpoint's next attempt is due: milliseconds from now, not below 0; null when there is none. */
export async function selectDueInMs(sql: Sql, webhookId: number): Promise<number | null> {
  const [row] = await sql<{ due_in_ms: number }[]>`
    select ${DUE_IN_MS} as due_in_ms
    from ${ENDPOINTS} cross join lateral (${FIRST}) first where endpoint.webhook_id = ${webhookId}`;
  return row?.due_in_ms ?? null;
}

/** How many deliveries wait, counted up to `max`. */
export async function countWaiting(sql: Sql, max: number): Promise<number> {
  const [row] = await sql<{ waiting: number }[]>`
    select count(*)::int as waiting from (
      select from webhook_delivery where next_attempt_at is not null limit ${max}) counted`;
  return row?.waiting ?? 0;
}

const FIRST = new RawSql(FIRST_SENDABLE);

const ENDPOINTS = new RawSql(`(
  select w.id as webhook_id, w.active, a.active as owner_active
  from webhook w join account a on a.id = w.account_id) endpoint`);

/** Milliseconds until the first sendable delivery is due, not below 0. */
const DUE_IN_MS = new RawSql(
  'greatest(0, extract(epoch from first.next_attempt_at - clock_timestamp()) * 1000)::float8',
);
