import { setTimeout as sleep } from 'node:timers/promises';
import { RepeatedWork } from '../../lib/repeatedWork.ts';
import { arrayLiteral, type Sql, type Tx } from '../../postgres/sql.ts';
import { errorFields } from '../../postgres/sqlErrors.ts';
import { newDeliveryIdStart, ORDINAL_HEX_CHARS, type WebhookType } from '../delivery.ts';

/** An event whose deliveries are made later, with the body that all of them share. */
export interface OutboxEvent {
  readonly eventId: string;
  readonly type: WebhookType;
  readonly body: string;
}

/** What one account receives of a batch of events: each of the events goes to each of the endpoints. */
export interface OutboxRow {
  readonly accountId: number;
  /** Numbers of the events in the batch, from 1, in the order of production. */
  readonly ordinals: readonly number[];
  readonly webhookIds: readonly number[];
}

/** What one call of `fanOut` has made. */
export interface FannedOut {
  /** How many deliveries were made, by endpoint. */
  readonly made: ReadonlyMap<number, number>;
  /** The last account that was processed; the next call begins after it. Null when no accounts follow. */
  readonly upToAccountId: number | null;
  /** How many pairs of an event and an endpoint were taken, counting those to endpoints that are gone or paused. */
  readonly done: number;
}

/** Deliveries that one statement makes, for this many accounts together. Each account has an equal share of them. */
const CHUNK_DELIVERIES = 1_000;
const CHUNK_ACCOUNTS = 20;
/** Outbox rows of one account that one statement looks at. */
const ROWS_MAX = 100;

/** The accounts of those of these endpoints that receive events now. */
export async function selectReceivers(
  tx: Tx,
  webhookIds: readonly number[],
): Promise<ReadonlyMap<number, number>> {
  const rows = await tx<{ id: number; account_id: number }[]>`
    select w.id, w.account_id from webhook w join account a on a.id = w.account_id
    where w.id = any(${arrayLiteral(webhookIds)}::bigint[]) and w.active and w.paused_at is null and a.active
    order by w.id`.named('receivers');
  return new Map(rows.map((row) => [row.id, row.account_id]));
}

/** Stores a batch of events and who receives them, in the transaction that produced them. */
export async function insertOutbox(
  tx: Tx,
  events: readonly OutboxEvent[],
  rows: readonly OutboxRow[],
): Promise<void> {
  if (rows.length === 0) return;
  await tx`
    with batch as (
      insert into webhook_outbox_batch (event_ids, event_types, bodies)
      values (${events.map((e) => e.eventId)}::text[], ${events.map((e) => e.type)}::text[],
              ${events.map((e) => e.body)}::text[])
      returning id
    )
    insert into webhook_outbox (account_id, batch_id, places, webhook_ids, size)
    select r.account_id, batch.id, r.places::integer[], r.webhook_ids::bigint[], r.size
    from batch, unnest(
      ${arrayLiteral(rows.map((row) => row.accountId))}::bigint[],
      ${rows.map((row) => arrayLiteral(row.ordinals))}::text[],
      ${rows.map((row) => arrayLiteral(row.webhookIds))}::text[],
      ${arrayLiteral(rows.map((row) => row.ordinals.length * row.webhookIds.length))}::integer[]
    ) with ordinality as r (account_id, places, webhook_ids, size, n)
    order by r.n`;
}

/** How often the outbox is polled, for events of a pod that was killed before it could wake others. */
export const OUTBOX_POLL_MS = 5_000;
/** After this many chunks, batches of events whose deliveries are all made are deleted. */
const CHUNKS_BETWEEN_DELETIONS = 100;

export interface FanOutPorts {
  readonly sql: Sql;
  /** Called after each chunk with what was made, by endpoint. */
  readonly onQueued: (made: ReadonlyMap<number, number>) => void;
  /** Called with the number of deliveries that are still to be made. */
  readonly onWaiting: (deliveries: number) => void;
  readonly log: { warn(fields: object, message: string): void };
}

/**
 * Makes the deliveries of events in the outbox, which large transactions leave there: a chunk per statement, for the
 * accounts in turns. Any number of pods may do so at once. Postgres keeps their order and makes each delivery once.
 */
export function fanOutWork(ports: FanOutPorts): RepeatedWork {
  return new RepeatedWork(
    (stopped) => emptyOutbox(ports, stopped),
    (error) => ports.log.warn(errorFields(error), 'the outbox cannot be emptied'),
  );
}

async function emptyOutbox({ sql, onQueued, onWaiting }: FanOutPorts, stopped: AbortSignal): Promise<void> {
  const waiting = await countOutbox(sql);
  onWaiting(waiting);
  if (waiting === 0) return;
  let afterAccountId = 0;
  for (let chunk = 1; !stopped.aborted; chunk++) {
    const startedAtMs = performance.now();
    const { made, upToAccountId, done } = await fanOut(sql, afterAccountId);
    if (made.size > 0) onQueued(made);
    if (done === 0 && afterAccountId === 0) break;
    afterAccountId = upToAccountId ?? 0;
    if (chunk % CHUNKS_BETWEEN_DELETIONS === 0) await deleteFinishedBatches(sql);
    // Leaves Postgres to points and callers for as long. Sending deliveries takes longer than making them anyway.
    await sleep(performance.now() - startedAtMs);
  }
  await deleteFinishedBatches(sql);
  onWaiting(await countOutbox(sql));
}

/**
 * Makes the next deliveries of the accounts after `afterAccountId`, about as many for each, and notes in the same
 * statement that they are made. So each delivery is made once, whenever the process ends. It is one statement, not a
 * transaction of several: a process that stalls holds no lock.
 *
 * The deliveries of one account are made in the order of the outbox, also when two pods do this at once. Rows are
 * locked in that order, and a pod that waited for the lock continues with what the other has left.
 *
 * Whether an endpoint receives an event was decided when the event happened. An endpoint that became inactive since then
 * gets the delivery and sends it later. An endpoint that is gone gets none, and neither does one that was paused.
 *
 * | CTE     | rows                                                                                             |
 * |---------|--------------------------------------------------------------------------------------------------|
 * | waiting | the next accounts with something in the outbox                                                   |
 * | share   | how many deliveries each of them gets                                                            |
 * | first   | the first outbox rows of each, with the number of deliveries before them                         |
 * | locked  | those that begin within the share, locked                                                        |
 * | counted | the same after the lock: another pod may have advanced `done` before it                          |
 * | part    | how far to go in each row (`up_to`)                                                              |
 * | event   | the events of these parts                                                                        |
 * | pair    | each event with each of its endpoints, numbered                                                  |
 * | made    | the deliveries, which counted_made counts by endpoint                                            |
 * | advanced, ended | the outbox rows, updated or deleted                                                      |
 *
 * The ids of the deliveries rise in their order.
 */
export async function fanOut(sql: Sql, afterAccountId: number): Promise<FannedOut> {
  const [row] = await sql<
    { webhook_ids: number[] | null; counts: number[] | null; up_to: number | null; done: number }[]
  >`
    with recursive waiting (account_id, n) as (
      (select account_id, 1 from webhook_outbox where account_id > ${afterAccountId} order by account_id limit 1)
      union all
      select next.account_id, waiting.n + 1 from waiting cross join lateral (
        select account_id from webhook_outbox o where o.account_id > waiting.account_id order by account_id limit 1) next
      where waiting.n < ${CHUNK_ACCOUNTS}
    ), share as (
      select ${CHUNK_DELIVERIES} / greatest(count(*), 1) as deliveries from waiting
    ), first as (
      select o.id, sum(o.size - o.done) over (partition by o.account_id order by o.id) - (o.size - o.done) as before
      from waiting cross join lateral (
        select * from webhook_outbox where account_id = waiting.account_id order by id limit ${ROWS_MAX}) o
    ), locked as materialized (
      select * from webhook_outbox
      where id = any(array(select first.id from first, share where first.before < share.deliveries))
      order by id for update
    ), counted as (
      select l.*, cardinality(l.webhook_ids) as width,
        sum(l.size - l.done) over (partition by l.account_id order by l.id) - (l.size - l.done) as before
      from locked l
    ), part as materialized (
      select c.*, least(c.size, c.done + share.deliveries - c.before)::integer as up_to
      from counted c, share where c.before < share.deliveries
    ), event as materialized (
      select part.*, place.n, e.event_id, e.event_type, e.body
      from part
      join webhook_outbox_batch b on b.id = part.batch_id
      cross join lateral unnest(b.event_ids, b.event_types, b.bodies)
        with ordinality as e (event_id, event_type, body, n)
      cross join lateral (select array_position(part.places, e.n::integer)) as place (n)
      where (place.n - 1) * part.width < part.up_to and place.n * part.width > part.done
    ), pair as materialized (
      select event.event_id, event.event_type, event.body, w.id as webhook_id,
        row_number() over (order by event.id, event.n, w.n) - 1 as n
      from event cross join lateral unnest(event.webhook_ids) with ordinality as w (id, n)
      where (event.n - 1) * event.width + w.n > event.done and (event.n - 1) * event.width + w.n <= event.up_to
    ), made as (
      insert into webhook_delivery (id, webhook_id, account_id, event_id, event_type, body, created_at)
      select ${newDeliveryIdStart()} || lpad(to_hex(pair.n), ${ORDINAL_HEX_CHARS}, '0'),
        w.id, w.account_id, pair.event_id, pair.event_type, pair.body, statement_timestamp()
      from pair join webhook w on w.id = pair.webhook_id and w.paused_at is null
      order by pair.n for key share of w
      returning webhook_id
    ), counted_made as (
      select webhook_id, count(*) as n from made group by webhook_id
    ), advanced as (
      update webhook_outbox o set done = part.up_to from part where o.id = part.id and part.up_to < part.size
    ), ended as (
      delete from webhook_outbox o using part where o.id = part.id and part.up_to = part.size
    )
    select (select array_agg(webhook_id order by webhook_id)::float8[] from counted_made) as webhook_ids,
      (select array_agg(n order by webhook_id)::float8[] from counted_made) as counts,
      (select max(account_id) from waiting having count(*) = ${CHUNK_ACCOUNTS}) as up_to,
      coalesce((select sum(up_to - done) from part), 0)::integer as done`.named('fan_out');
  return {
    made: new Map(row?.webhook_ids?.map((webhookId, n) => [webhookId, row.counts?.[n] ?? 0])),
    upToAccountId: row?.up_to ?? null,
    done: row?.done ?? 0,
  };
}

/** Deletes batches of events whose deliveries have all been made. */
export async function deleteFinishedBatches(sql: Sql): Promise<void> {
  await sql`
    delete from webhook_outbox_batch b where not exists (select from webhook_outbox o where o.batch_id = b.id)`;
}

/** How many deliveries are still to be made, counting those to endpoints that are gone. */
export async function countOutbox(sql: Sql): Promise<number> {
  const [row] = await sql<{ waiting: number }[]>`
    select coalesce(sum(size - done), 0)::float8 as waiting from webhook_outbox`;
  return row?.waiting ?? 0;
}
