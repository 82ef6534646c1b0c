import { type OwnerRow, ownerOf } from '../access/keys.sql.ts';
import { arrayLiteral, type Sql, type Tx } from '../postgres/sql.ts';
import { type HiddenPlace, SHARE_LIMITS, type ShareDraft, type ShareState, type ShownPart } from './share.ts';

/** A share as its owner sees it: never its token, nor the fingerprint of it. */
export interface ShareRecord {
  readonly id: number;
  readonly name: string | null;
  readonly devices: readonly string[];
  readonly created_at: Date;
  readonly expires_at: Date;
  readonly ended_at: Date | null;
  /** Why it ended before its time. */
  readonly end_reason: 'deleted' | 'arrived' | null;
  readonly until_area_id: number | null;
  readonly delay_seconds: number;
  readonly hide: readonly HiddenPlace[];
  readonly show: readonly ShownPart[];
}

/** Ended shares that are kept of an account at most, beside those of the last days. */
const ENDED_MAX = 1_000;

/**
 * Stores a share of devices by their ids. Undefined when the account has as many that have not ended as it may; its row is
 * locked, so two calls cannot both make the last one. The oldest ended ones beyond a number are deleted.
 */
export async function insertShare(
  tx: Tx,
  accountId: number,
  draft: ShareDraft,
  deviceIds: readonly number[],
  fingerprint: string,
): Promise<ShareRecord | undefined> {
  await tx`select from account where id = ${accountId} for no key update`;
  const [row] = await tx<{ count: number }[]>`
    select count(*)::int as count from share
    where account_id = ${accountId} and ended_at is null and expires_at > clock_timestamp()`;
  if ((row?.count ?? 0) >= SHARE_LIMITS.perOwner) return undefined;
  await tx`
    delete from share where id in (
      select id from share where account_id = ${accountId} and least(ended_at, expires_at) <= clock_timestamp()
      order by id desc offset ${ENDED_MAX})`;
  const [made] = await tx<{ id: number }[]>`
    insert into share (account_id, fingerprint, name, device_ids, until_area_id, delay_seconds, hide, show, expires_at)
    values (${accountId}, decode(${fingerprint}, 'hex'), ${draft.name}, ${arrayLiteral(deviceIds)}::bigint[],
            ${draft.untilAreaId}, ${draft.delaySeconds}, ${JSON.stringify(draft.hide)}::jsonb, ${[...draft.show]},
            ${draft.expiresAt})
    returning id`;
  if (made === undefined) throw new Error('an insert returns its row');
  const [share] = await selectShares(tx, accountId, { limit: 1, offset: 0 }, made.id);
  return share;
}

/** Shares of an account, the newest first; of one id where it is given. */
export function selectShares(
  sql: Sql | Tx,
  accountId: number,
  { limit, offset }: { limit: number; offset: number },
  id: number | null = null,
): Promise<ShareRecord[]> {
  return sql<ShareRecord[]>`
    select s.id, s.name, s.created_at, s.expires_at, s.ended_at, s.end_reason, s.until_area_id, s.delay_seconds,
           s.hide, s.show,
           array(select d.imei from unnest(s.device_ids) with ordinality as named (id, n) join device d using (id)
                 order by named.n) as devices
    from share s where s.account_id = ${accountId} ${id === null ? sql`` : sql`and s.id = ${id}`}
    order by s.id desc limit ${limit} offset ${offset}`;
}

/** Ends a share by hand; one that has ended keeps its end. False when the account has no such share. */
export async function endShare(tx: Tx, accountId: number, id: number): Promise<boolean> {
  const { count } = await tx`
    update share set
      end_reason = case when ended_at is null then 'deleted' else end_reason end,
      ended_at = coalesce(ended_at, clock_timestamp())
    where id = ${id} and account_id = ${accountId}`;
  return count > 0;
}

/** The entry of a device into an area. */
export interface Arrival {
  readonly areaId: number;
  readonly deviceId: number;
}

/**
 * Ends the shares that last until one of their vehicles enters an area, in the transaction of its point, and lets every pod
 * know. They are locked in the order of their ids, so two transactions cannot wait for each other. `arrivals`: all of the
 * transaction, at least one.
 */
export async function endArrivedShares(tx: Tx, arrivals: readonly Arrival[]): Promise<void> {
  await tx`
    with arrived as (
      select s.id from share s
      where s.until_area_id = any(${arrayLiteral(arrivals.map(({ areaId }) => areaId))}::bigint[])
        and s.ended_at is null and exists (
          select from unnest(${arrayLiteral(arrivals.map(({ areaId }) => areaId))}::bigint[],
                             ${arrayLiteral(arrivals.map(({ deviceId }) => deviceId))}::bigint[]) as a (area_id, device_id)
          where a.area_id = s.until_area_id and a.device_id = any(s.device_ids))
      order by s.id for update
    ), ended as (
      update share s set ended_at = clock_timestamp(), end_reason = 'arrived' from arrived
      where s.id = arrived.id returning s.id
    )
    insert into change (kind, entity_id) select 'share', id from ended`.named('arrived_shares');
}

/** The share with this fingerprint (SHA-256 of its token, hex), ended or not; undefined when there is none. */
export async function selectShareState(sql: Sql, fingerprint: string): Promise<ShareState | undefined> {
  const [row] = await sql<(OwnerRow & StateRow)[]>`
    select s.id, s.account_id, s.name, to_json(s.device_ids) as device_ids, s.delay_seconds, s.hide, s.show,
           s.expires_at,
           s.ended_at is not null or not a.active as has_ended, a.world_id as account_world,
           o.world_id as organization_world, p.history_days
    from share s
    join account a on a.id = s.account_id
    join plan p on p.name = a.plan
    left join organization o on o.id = a.organization_id
    where s.fingerprint = decode(${fingerprint}, 'hex')`.named('share_state');
  if (row === undefined) return undefined;
  const { accountId, worldIds } = ownerOf(row);
  return {
    id: row.id,
    ...{ accountId, worldIds, fingerprint },
    name: row.name,
    deviceIds: row.device_ids,
    delayMs: row.delay_seconds * 1_000,
    hide: row.hide,
    show: new Set(row.show),
    expiresAtMs: row.expires_at.getTime(),
    hasEnded: row.has_ended,
  };
}

interface StateRow {
  readonly id: number;
  readonly name: string | null;
  readonly device_ids: number[];
  readonly delay_seconds: number;
  readonly hide: HiddenPlace[];
  readonly show: ShownPart[];
  readonly expires_at: Date;
  readonly has_ended: boolean;
}

/** Shares are remembered for so long after their end: until then their links say that they have ended. */
const ENDED_DAYS = 30;
const PRUNED_AT_A_TIME = 1_000;

/** Deletes shares that ended long ago, and lets every pod forget them. Returns how many. */
export async function pruneShares(sql: Sql): Promise<number> {
  const { count } = await sql`
    with gone as (
      delete from share where id in (
        select id from share
        where least(ended_at, expires_at) < clock_timestamp() - make_interval(days => ${ENDED_DAYS})
        order by least(ended_at, expires_at) limit ${PRUNED_AT_A_TIME})
      returning id
    )
    insert into change (kind, entity_id) select 'share', id from gone`;
  return count;
}
