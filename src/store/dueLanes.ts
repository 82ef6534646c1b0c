import type { DueLane } from '../delivery/dueLane.ts';
import type { Sql } from './sql.ts';
import { RawSql } from './sqlText.ts';

/** A part of what the schedule should hold. */
export interface DueLanes {
  readonly lanes: readonly DueLane[];
  /** Where the next part begins; 0 when this was the last one. */
  readonly nextAfterId: number;
  /** For how long the oldest of this part that may be sent has been due. */
  readonly oldestDueMs: number;
}

/**
 * Endpoints behind `afterId` with something to send and when, at most `max`; and every one with a lease or an attempt
 * that was left behind. Goes from one waiting endpoint to the next in the index of what waits: neither endpoints with
 * nothing to send nor the length of a backlog cost anything.
 */
export async function selectDueLanes(sql: Sql, afterId: number, max: number): Promise<DueLanes> {
  const rows = await sql<{ id: number; is_due: boolean; due_in_ms: number; late_ms: number }[]>`
    with recursive waiting (id, n) as (
      select ${afterId}::bigint, 0
      union all
      select next.id, waiting.n + 1 from waiting cross join lateral (
        select d.webhook_id as id from webhook_delivery d
        where d.next_attempt_at is not null and d.webhook_id > waiting.id order by d.webhook_id limit 1) next
      where waiting.n < ${max}
    )
    select waiting.id, due.at is not null as is_due, ${dueInMs('due.at')} as due_in_ms,
      greatest(0, extract(epoch from clock_timestamp() - due.at) * 1000)::float8 as late_ms
    from waiting left join ${LANES} on lane.id = waiting.id
      left join lateral (select first.next_attempt_at as at from (${firstSendable('lane')}) first) due on true
    where waiting.n > 0 order by waiting.n`;
  const due = rows.filter((row) => row.is_due);
  const dueInMsById = new Map(due.map((row) => [row.id, row.due_in_ms]));
  for (const id of await selectAbandonedLanes(sql)) dueInMsById.set(id, 0);
  return {
    lanes: [...dueInMsById].map(([webhookId, dueInMs]) => ({ webhookId, dueInMs })),
    nextAfterId: rows.length < max ? 0 : (rows.at(-1)?.id ?? 0),
    oldestDueMs: due.reduce((oldest, row) => Math.max(oldest, row.late_ms), 0),
  };
}

/** Lanes whose holder has died or given up: due at once. There are no more of them than were open. */
async function selectAbandonedLanes(sql: Sql): Promise<number[]> {
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
    select ${dueInMs('first.next_attempt_at')} as due_in_ms
    from ${LANES} cross join lateral (${firstSendable('lane')}) first where lane.id = ${webhookId}`;
  return row?.due_in_ms ?? null;
}

/** How many deliveries wait, counted up to `max`. */
export async function countWaiting(sql: Sql, max: number): Promise<number> {
  const [row] = await sql<{ waiting: number }[]>`
    select count(*)::int as waiting from (
      select from webhook_delivery where next_attempt_at is not null limit ${max}) counted`;
  return row?.waiting ?? 0;
}

/** Milliseconds until `time`, a column, not below 0. */
export function dueInMs(time: string): RawSql {
  return new RawSql(`greatest(0, extract(epoch from ${time} - clock_timestamp()) * 1000)::float8`);
}

/** Deliveries of an inactive endpoint, latest due first, among which a test is looked for. */
const HELD_MAX = 200;

/**
 * The delivery of `lane` (id, active, owner_active) that is sent next, due or not: id, created_at and next_attempt_at,
 * at most one row. A deactivated account holds everything, an inactive endpoint everything but tests; one that is
 * replayed is a replay like any other. Asked so that it is the first entry of an index, however much waits or is held.
 */
export function firstSendable(lane: string): RawSql {
  return new RawSql(`
    (select d.id, d.created_at, d.next_attempt_at from webhook_delivery d
      where ${lane}.owner_active and ${lane}.active and d.webhook_id = ${lane}.id and d.next_attempt_at is not null
      order by d.next_attempt_at limit 1)
    union all
    (select held.id, held.created_at, held.next_attempt_at from (
        select d.id, d.created_at, d.next_attempt_at, d.event_type, d.status from webhook_delivery d
        where ${lane}.owner_active and not ${lane}.active and d.webhook_id = ${lane}.id
          and d.next_attempt_at is not null
        order by d.next_attempt_at desc limit ${HELD_MAX}) held
      where held.event_type = 'ping' and held.status <> 'requeued'
      order by held.next_attempt_at limit 1)`);
}

const LANES = new RawSql(`(
  select w.id, w.active, a.active as owner_active from webhook w join account a on a.id = w.account_id) lane`);
