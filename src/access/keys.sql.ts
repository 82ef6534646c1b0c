import { invariant } from '../lib/invariant.ts';
import type { Sql, Tx } from '../postgres/sql.ts';
import { arrayLiteral } from '../postgres/sqlText.ts';
import { parseAllowlist } from './ipAddress.ts';
import type { KeyState } from './keyring.memory.ts';
import { parseScopes } from './scopes.ts';

export interface KeyDraft {
  readonly name: string | null;
  /** SHA-256 of the key, hex. */
  readonly fingerprint: string;
  /** Its first six characters. */
  readonly prefix: string;
  readonly scopes: readonly string[];
  readonly allowlist: readonly string[];
}

export interface RevokedKey {
  readonly id: number;
  readonly revokedAt: Date;
  /** The world of its account. */
  readonly worldId: number;
}

/** Stores a key of an account and returns its id. The key itself is not stored. */
export async function insertKey(tx: Tx, accountId: number, draft: KeyDraft): Promise<number> {
  const [row] = await tx<{ id: number }[]>`
    insert into api_key (account_id, name, fingerprint, prefix, scopes, allowlist)
    values (${accountId}, ${draft.name}, decode(${draft.fingerprint}, 'hex'), ${draft.prefix},
            ${[...draft.scopes]}, ${[...draft.allowlist]})
    returning id`;
  if (row === undefined) throw new Error('an insert returns its row');
  return row.id;
}

/** Revoked keys are remembered for so long. */
const REVOKED_DAYS = 90;
const PRUNED_AT_A_TIME = 1_000;

/** Deletes keys that were revoked long ago, and lets every pod forget them. Returns how many. */
export async function pruneRevokedKeys(sql: Sql): Promise<number> {
  const { count } = await sql`
    with gone as (
      delete from api_key where id in (
        select id from api_key where revoked_at < clock_timestamp() - make_interval(days => ${REVOKED_DAYS})
        order by revoked_at limit ${PRUNED_AT_A_TIME})
      returning id
    )
    insert into change (kind, entity_id) select 'key', id from gone`;
  return count;
}

/** Revokes a key. A revoked key keeps its time. Undefined when the key does not exist. */
export async function revokeKey(tx: Tx, id: number): Promise<RevokedKey | undefined> {
  const [row] = await tx<{ revoked_at: Date; world_id: number }[]>`
    update api_key k set revoked_at = coalesce(k.revoked_at, clock_timestamp())
    from account a where a.id = k.account_id and k.id = ${id}
    returning k.revoked_at, a.world_id`;
  return row && { id, revokedAt: row.revoked_at, worldId: row.world_id };
}

/**
 * Records that these keys have just been used. Skips locked rows: the other transaction records the same, or the next
 * use will be recorded.
 */
export async function updateLastUsed(sql: Sql, ids: readonly number[]): Promise<void> {
  await sql`
    with free as (
      select id from api_key where id = any(${arrayLiteral(ids)}::bigint[]) for no key update skip locked
    )
    update api_key k set last_used_at = clock_timestamp() from free where k.id = free.id`;
}

/** The key with this fingerprint (SHA-256, hex), with its owner's state and worlds; undefined when there is none. */
export async function selectKeyState(sql: Sql, fingerprint: string): Promise<KeyState | undefined> {
  const [row] = await sql<
    {
      id: number;
      account_id: number;
      account_world: number;
      organization_world: number | null;
      scopes: string[];
      allowlist: string[];
      revoked: boolean;
      active: boolean;
      history_days: number;
    }[]
  >`
    select k.id, k.account_id, a.world_id as account_world, o.world_id as organization_world, k.scopes, k.allowlist,
           k.revoked_at is not null as revoked, a.active, p.history_days
    from api_key k
    join account a on a.id = k.account_id
    join plan p on p.name = a.plan
    left join organization o on o.id = a.organization_id
    where k.fingerprint = decode(${fingerprint}, 'hex')`.named('key_state');
  if (row === undefined) return undefined;
  const scopes = parseScopes(row.scopes);
  const allowlist = parseAllowlist(row.allowlist);
  invariant(
    scopes.ok && allowlist.ok,
    `key ${row.id} is stored with scopes or an allowlist that cannot be read`,
  );
  return {
    id: row.id,
    accountId: row.account_id,
    worldIds:
      row.organization_world === null ? [row.account_world] : [row.account_world, row.organization_world],
    scopes: scopes.value,
    allowlist: allowlist.value,
    revoked: row.revoked,
    ownerActive: row.active,
    historyDays: row.history_days,
  };
}
