import type { Sql, Tx } from '../../postgres/sql.ts';
import { arrayLiteral } from '../../postgres/sqlText.ts';
import type { Backlog, WaitingQuota } from './pause.ts';

/** An account with its quota, and the world whose version rises when one of its endpoints is paused. */
export interface QuotaOwner {
  readonly accountId: number;
  readonly worldId: number;
  readonly quota: WaitingQuota;
}

/** The accounts of these endpoints, each once. */
export async function selectQuotaOwners(sql: Sql, webhookIds: readonly number[]): Promise<QuotaOwner[]> {
  const rows = await sql<{ id: number; world_id: number; per_account: number; per_endpoint: number }[]>`
    select a.id, a.world_id, p.max_waiting_deliveries as per_account, p.max_waiting_per_webhook as per_endpoint
    from account a join plan p on p.name = a.plan
    where a.id in (select account_id from webhook where id = any(${arrayLiteral(webhookIds)}::bigint[]))
    order by a.id`;
  return rows.map((row) => ({
    accountId: row.id,
    worldId: row.world_id,
    quota: { perAccount: row.per_account, perEndpoint: row.per_endpoint },
  }));
}

/**
 * What waits for each endpoint of an account. Reads an index entry for each waiting delivery, of one endpoint at most one
 * more than its quota: about a third of a second for a million.
 */
export async function countBacklogs(sql: Sql, { accountId, quota }: QuotaOwner): Promise<Backlog[]> {
  const rows = await sql<{ id: number; is_paused: boolean; waiting: number; to_be_made: number }[]>`
    with outbox as (
      select e.webhook_id, sum((o.size - o.done) / cardinality(o.webhook_ids)) as events
      from webhook_outbox o cross join lateral unnest(o.webhook_ids) as e (webhook_id)
      where o.account_id = ${accountId} group by e.webhook_id
    )
    select w.id, w.paused_at is not null as is_paused, coalesce(outbox.events, 0)::float8 as to_be_made, (
      select count(*)::int from (
        select from webhook_delivery d
        where d.webhook_id = w.id and d.next_attempt_at is not null limit ${quota.perEndpoint + 1}) counted
    ) as waiting
    from webhook w left join outbox on outbox.webhook_id = w.id
    where w.account_id = ${accountId}`;
  return rows.map((row) => ({
    webhookId: row.id,
    isPaused: row.is_paused,
    waiting: row.waiting,
    toBeMade: row.to_be_made,
  }));
}

/** How many deliveries wait for one endpoint, counted up to `max`. */
export async function countWaitingOf(sql: Sql | Tx, webhookId: number, max: number): Promise<number> {
  const [row] = await sql<{ waiting: number }[]>`
    select count(*)::int as waiting from (
      select from webhook_delivery
      where webhook_id = ${webhookId} and next_attempt_at is not null limit ${max}) counted`;
  return row?.waiting ?? 0;
}
