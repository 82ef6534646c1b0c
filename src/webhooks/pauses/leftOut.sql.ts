import type { Direction, EventType } from '../../events/fleetEvent.ts';
import { arrayLiteral, type Sql, type Tx } from '../../postgres/sql.ts';
import { RawSql } from '../../postgres/sqlText.ts';
import type { LeftOut } from '../endpoint.ts';

/** Events of one chunk: their deliveries are made in one short transaction. */
const CHUNK = 500;
/** Events that one call of `countLeftOut` reads. */
const COUNT_MAX = 100_000;
/** Events are read this long after they were recorded. By then their transaction is over. */
const SETTLED_SECONDS = 30;

/** An endpoint that is not paused any more, and the events that it still lacks. Times are as Postgres writes them. */
export interface LeftOutRange {
  readonly webhook_id: number;
  readonly events: readonly string[];
  /** The worlds of its account, whose events it receives. */
  readonly worlds: readonly number[];
  /** The events after these are missing. */
  readonly from_at: string;
  readonly after_id: number;
  readonly to_at: string;
}

export interface LeftOutEvent {
  readonly id: number;
  readonly type: EventType;
  readonly direction: Direction | null;
  readonly device_imei: string;
  readonly data: Readonly<Record<string, unknown>>;
  readonly occurred_at: Date;
  readonly recorded_at: Date;
  /** The same as Postgres writes it, to the microsecond. */
  readonly recorded: string;
}

const WORLDS = new RawSql(`array_remove(array[a.world_id, (
  select o.world_id from organization o where o.id = a.organization_id)], null)::float8[]`);

/**
 * The next endpoint behind `afterWebhookId` that lacks events and may get them, locked. Not while the outbox of its account
 * has events of that time: their deliveries are made from there.
 */
export async function lockNextLeftOut(tx: Tx, afterWebhookId: number): Promise<LeftOutRange | undefined> {
  const [range] = await tx<LeftOutRange[]>`
    select l.webhook_id, w.events, ${WORLDS} as worlds, l.from_at::text, l.after_id, l.to_at::text
    from webhook_left_out l join webhook w on w.id = l.webhook_id join account a on a.id = w.account_id
    where l.to_at is not null and l.webhook_id > ${afterWebhookId}
      and w.active and w.paused_at is null and a.active
      and not exists (
        select from webhook_outbox o
        where o.account_id = w.account_id and (o.created_at is null or o.created_at <= l.to_at))
    order by l.webhook_id limit 1 for update of l skip locked`;
  return range;
}

/** The next events of a range, in the order in which they were recorded. `isLast`: no others will come. */
export async function selectLeftOutEvents(
  tx: Tx,
  range: LeftOutRange,
): Promise<{ events: readonly LeftOutEvent[]; isLast: boolean }> {
  const events = await tx<LeftOutEvent[]>`
    select e.id, e.type, e.direction, e.device_imei, e.data, e.occurred_at, e.recorded_at,
      e.recorded_at::text as recorded
    from unnest(${arrayLiteral(range.worlds)}::bigint[]) as world (id) cross join lateral (
      select * from fleet_event f
      where f.world_id = world.id
        and (f.recorded_at, f.id) > (${range.from_at}::timestamptz, ${range.after_id}::bigint)
        and f.recorded_at <= least(${range.to_at}::timestamptz,
          statement_timestamp() - make_interval(secs => ${SETTLED_SECONDS}))
      order by f.recorded_at, f.id limit ${CHUNK}) e
    order by e.recorded_at, e.id limit ${CHUNK}`;
  const [end] = await tx<{ is_over: boolean }[]>`
    select ${range.to_at}::timestamptz < statement_timestamp() - make_interval(secs => ${SETTLED_SECONDS}) as is_over`;
  return { events, isLast: events.length < CHUNK && end?.is_over === true };
}

/** Clocks of a server and of its replica differ by less. */
const CLOCKS_HOURS = 1;

/**
 * What ids of webhook events were made from since a time, the newest first: another text since each time that the database
 * may have lost some (enter_server).
 */
export async function selectEventScopes(tx: Tx, { from_at }: LeftOutRange): Promise<string[]> {
  const rows = await tx<{ event_scope: string }[]>`
    select event_scope from server_start
    where ordinal >= coalesce((
      select max(ordinal) from server_start
      where noted_at < ${from_at}::timestamptz - make_interval(hours => ${CLOCKS_HOURS})), 0)
    group by event_scope order by max(ordinal) desc`;
  return rows.map((row) => row.event_scope);
}

/** Which of these events (by the ids that webhooks know) have a delivery to this endpoint. */
export async function selectDelivered(
  tx: Tx,
  webhookId: number,
  eventIds: readonly string[],
): Promise<ReadonlySet<string>> {
  if (eventIds.length === 0) return new Set();
  const rows = await tx<{ event_id: string }[]>`
    select event_id from webhook_delivery where webhook_id = ${webhookId} and event_id = any(${[...eventIds]}::text[])`;
  return new Set(rows.map((row) => row.event_id));
}

/** Notes that the deliveries up to `last` are made; null: all of them. */
export async function advanceLeftOut(tx: Tx, webhookId: number, last: LeftOutEvent | null): Promise<void> {
  if (last === null) await tx`delete from webhook_left_out where webhook_id = ${webhookId}`;
  else
    await tx`
      update webhook_left_out set from_at = ${last.recorded}::timestamptz, after_id = ${last.id}
      where webhook_id = ${webhookId}`;
}

/**
 * Counts the first hundred thousand events since the pause that are not made yet. It does not check whether an event of the
 * last minute before the pause has a delivery, so it may count a few of those too.
 */
export async function countLeftOut(sql: Sql, accountId: number, webhookId: number): Promise<LeftOut> {
  const rows = await sql<{ hour: Date; events: number; read: number }[]>`
    with missing as materialized (
      select l.from_at, l.after_id, coalesce(l.to_at, statement_timestamp()) as to_at, w.events, ${WORLDS} as worlds
      from webhook_left_out l join webhook w on w.id = l.webhook_id join account a on a.id = w.account_id
      where l.webhook_id = ${webhookId} and w.account_id = ${accountId}
    ), event as (
      select e.* from missing cross join lateral unnest(missing.worlds::bigint[]) as world (id) cross join lateral (
        select f.recorded_at,
          missing.events && array['*', case when f.type <> 'geofence' then f.type
            when f.direction = 'exit' then 'geofence_exit' else 'geofence_enter' end] as is_wanted
        from fleet_event f
        where f.world_id = world.id
          and (f.recorded_at, f.id) > (missing.from_at, missing.after_id) and f.recorded_at <= missing.to_at
        order by f.recorded_at limit ${COUNT_MAX}) e
      order by e.recorded_at limit ${COUNT_MAX}
    )
    select date_trunc('hour', recorded_at, 'UTC') as hour, count(*) filter (where is_wanted)::int as events,
      count(*)::int as read
    from event group by 1 order by 1`;
  const hours = rows.filter(({ events }) => events > 0);
  return {
    events: hours.reduce((sum, { events }) => sum + events, 0),
    is_complete: rows.reduce((sum, { read }) => sum + read, 0) < COUNT_MAX,
    hours: hours.map(({ hour, events }) => ({ from: hour, events })),
  };
}
