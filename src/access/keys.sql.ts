import { invariant } from '../lib/errors.ts';
import { arrayLiteral, type Query, type Sql, type Tx } from '../postgres/sql.ts';
import { assignments } from '../postgres/sqlText.ts';
import { type KeyState, limitedWorlds } from './credentials.ts';
import { parseAllowlist } from './ipAddress.ts';
import { parseScopes } from './scopes.ts';

export interface KeyDraft {
  readonly name: string | null;
  /** SHA-256 of the key, hex. */
  readonly fingerprint: string;
  /** Its first six characters. */
  readonly prefix: string;
  readonly scopes: readonly string[];
  readonly allowlist: readonly string[];
  /** When it expires; never when not given. */
  readonly expiresAt?: Date | null;
  /** It sees only devices of these groups; all when not given, or empty. */
  readonly groups?: readonly string[];
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
    insert into api_key (account_id, name, fingerprint, prefix, scopes, allowlist, expires_at, groups)
    values (${accountId}, ${draft.name}, decode(${draft.fingerprint}, 'hex'), ${draft.prefix},
            ${[...draft.scopes]}, ${[...draft.allowlist]}, ${draft.expiresAt ?? null}, ${[...(draft.groups ?? [])]})
    returning id`;
  if (row === undefined) throw new Error('an insert returns its row');
  return row.id;
}

/** Keys that were revoked or have ended are remembered for so long. */
const REVOKED_DAYS = 90;
const PRUNED_AT_A_TIME = 1_000;

/** Deletes keys that were revoked or ended long ago, and lets every pod forget them. Returns how many. */
export async function pruneRevokedKeys(sql: Sql): Promise<number> {
  const { count } = await sql`
    with gone as (
      delete from api_key where id in (
        select id from api_key
        where least(revoked_at, expires_at) < clock_timestamp() - make_interval(days => ${REVOKED_DAYS})
        order by least(revoked_at, expires_at) limit ${PRUNED_AT_A_TIME})
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
  const [row] = await sql<KeyRow[]>`
    select k.id, k.account_id, a.world_id as account_world, o.world_id as organization_world, k.scopes, k.allowlist, k.groups,
           k.revoked_at is not null as revoked, k.expires_at, a.active, p.history_days
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
  const owner = ownerOf(row);
  return {
    ...owner,
    worldIds: limitedWorlds(owner.worldIds, row.groups),
    id: row.id,
    scopes: scopes.value,
    allowlist: allowlist.value,
    revoked: row.revoked,
    ...(row.expires_at !== null && { endsAtMs: row.expires_at.getTime() }),
    ownerActive: row.active,
  };
}

/** The account of a key or a session, as Postgres has it. */
export interface OwnerRow {
  readonly account_id: number;
  readonly account_world: number;
  readonly organization_world: number | null;
  readonly history_days: number;
}

interface KeyRow extends OwnerRow {
  readonly id: number;
  readonly scopes: string[];
  readonly allowlist: string[];
  readonly groups: string[];
  readonly revoked: boolean;
  readonly expires_at: Date | null;
  readonly active: boolean;
}

export function ownerOf(row: OwnerRow): Pick<KeyState, 'accountId' | 'worldIds' | 'historyDays'> {
  const { account_world: own, organization_world: shared } = row;
  return {
    accountId: row.account_id,
    worldIds: shared === null ? [own] : [own, shared],
    historyDays: row.history_days,
  };
}

/** A key as its owner sees it: never the key, nor its fingerprint. */
export interface KeyRecord {
  readonly id: number;
  /** Null on keys made by an administrator without one. */
  readonly name: string | null;
  readonly prefix: string;
  readonly scopes: readonly string[];
  readonly allowlist: readonly string[];
  readonly groups: readonly string[];
  readonly created_at: Date;
  readonly last_used_at: Date | null;
  readonly revoked_at: Date | null;
  readonly expires_at: Date | null;
}

const columns = (sql: Query) => sql`
  k.id, k.name, k.prefix, k.scopes, k.allowlist, k.groups, k.created_at, k.last_used_at, k.revoked_at,
  k.expires_at`;

/** Keys of an account, revoked ones too, by id; `keyId`: only that one, if it is not null. */
export function selectKeys(
  sql: Sql,
  accountId: number,
  keyId: number | null,
  { limit, offset }: { limit: number; offset: number },
): Promise<KeyRecord[]> {
  return sql<KeyRecord[]>`
    select ${columns(sql)} from api_key k
    where account_id = ${accountId} and (${keyId}::bigint is null or id = ${keyId}::bigint)
    order by id limit ${limit} offset ${offset}`;
}

/** A key as the commands list it. */
export interface ListedKey extends KeyRecord {
  readonly email: string;
}

/** The keys behind an id, by id; of one account, or of all (null). */
export function selectKeyPage(
  sql: Sql,
  accountId: number | null,
  afterId: number,
  limit: number,
): Promise<ListedKey[]> {
  return sql<ListedKey[]>`
    select k.id, a.email, k.name, k.prefix, k.scopes, k.allowlist, k.groups, k.created_at, k.last_used_at,
      k.revoked_at, k.expires_at
    from api_key k join account a on a.id = k.account_id
    where k.id > ${afterId} ${accountId === null ? sql`` : sql`and k.account_id = ${accountId}`}
    order by k.id limit ${limit}`;
}

/** Undefined when the account has no such key. */
export async function selectKey(tx: Tx, accountId: number, id: number): Promise<KeyRecord | undefined> {
  const [key] = await tx<KeyRecord[]>`
    select ${columns(tx)} from api_key k where id = ${id} and account_id = ${accountId}`;
  return key;
}

/** Changes the given settings, also of a revoked key, which stays revoked. Undefined when the account has no such key. */
export async function updateKey(
  tx: Tx,
  accountId: number,
  id: number,
  change: Partial<Pick<KeyDraft, 'name' | 'scopes' | 'allowlist'>>,
): Promise<KeyRecord | undefined> {
  if (Object.keys(change).length === 0) return selectKey(tx, accountId, id);
  const [key] = await tx<KeyRecord[]>`
    update api_key k set ${assignments({ ...change })} where id = ${id} and account_id = ${accountId}
    returning ${columns(tx)}`;
  return key;
}

/** How many keys of an account can be used. Locks the account, so that two calls cannot both create the last key. */
export async function countUsableKeys(tx: Tx, accountId: number): Promise<number> {
  await tx`select from account where id = ${accountId} for no key update`;
  const [row] = await tx<{ count: number }[]>`
    select count(*)::int as count from api_key
    where account_id = ${accountId} and revoked_at is null and coalesce(expires_at > clock_timestamp(), true)`;
  return row?.count ?? 0;
}
