import { CHANGE_CHANNEL } from '../changelog/changes.sql.ts';
import type { Query, Sql, Tx } from '../postgres/sql.ts';
import type { KeyState } from './credentials.ts';
import { type OwnerRow, ownerOf } from './keys.sql.ts';
import { type ScopeMask, sessionScopes } from './scopes.ts';

/** How long a session lives, counted from the login. */
const LIFETIME_HOURS = 12;
/** Sessions of one account at a time. A further login ends the oldest. */
const MAX_PER_ACCOUNT = 50;

/**
 * Opens a session and returns when it ends (epoch milliseconds) and what it may do. Undefined when the account has been
 * deactivated or its password changed since `passwordHash` was read. The row of the account is locked. So a change of
 * the account comes either before, and no session is opened, or after, and then it finds this session and ends it.
 */
export async function insertSession(
  tx: Tx,
  accountId: number,
  passwordHash: string,
  fingerprint: string,
): Promise<{ readonly endsAtMs: number; readonly scopes: ScopeMask } | undefined> {
  const [row] = await tx<{ expires_at: Date; is_viewer: boolean }[]>`
    with owner as (
      select id, role = 'viewer' as is_viewer from account
      where id = ${accountId} and active and password_hash = ${passwordHash} for no key update
    )
    insert into session (account_id, fingerprint, expires_at)
    select id, decode(${fingerprint}, 'hex'), clock_timestamp() + make_interval(hours => ${LIFETIME_HOURS}) from owner
    returning expires_at, (select is_viewer from owner)`;
  if (row === undefined) return undefined;
  await tx`
    with ended as (
      delete from session where id in (
        select id from session where account_id = ${accountId} order by id desc offset ${MAX_PER_ACCOUNT})
      returning id
    ), ${announced(tx)}`;
  return { endsAtMs: row.expires_at.getTime(), scopes: sessionScopes(row.is_viewer) };
}

/**
 * The caller of the live session with this fingerprint (SHA-256 of its token, hex), whose account is active. It may do
 * whatever a key can be allowed, and manages keys as well; that of a viewer may read all this.
 */
export async function selectSession(sql: Sql, fingerprint: string): Promise<KeyState | undefined> {
  const [row] = await sql<(OwnerRow & { id: number; expires_at: Date; is_viewer: boolean })[]>`
    select s.id, s.account_id, s.expires_at, a.role = 'viewer' as is_viewer, a.world_id as account_world,
      o.world_id as organization_world, p.history_days
    from session s
    join account a on a.id = s.account_id and a.active
    join plan p on p.name = a.plan
    left join organization o on o.id = a.organization_id
    where s.fingerprint = decode(${fingerprint}, 'hex') and s.expires_at > clock_timestamp()`.named(
    'session',
  );
  return (
    row && {
      ...ownerOf(row),
      id: -row.id,
      endsAtMs: row.expires_at.getTime(),
      scopes: sessionScopes(row.is_viewer),
      allowlist: null,
      revoked: false,
      ownerActive: true,
    }
  );
}

export async function deleteSession(sql: Sql, id: number): Promise<void> {
  await sql`with ended as (delete from session where id = ${id} returning id), ${announced(sql)}`;
}

/**
 * Notes the sessions of the CTE `ended` in the change log, as keys with their callers' ids, so that every pod ends their
 * streams. No version is raised: whether a session lives is asked of Postgres at each call.
 */
function announced(sql: Query) {
  return sql`
    announced as (insert into change (kind, entity_id) select 'key', -id from ended)
    select pg_notify(${CHANGE_CHANNEL}, '') from ended`;
}

/** Ends every session of an account. Its change is to be recorded in the same transaction. */
export async function deleteSessionsOf(tx: Tx, accountId: number): Promise<void> {
  await tx`delete from session where account_id = ${accountId}`;
}

/** Deletes expired sessions. Returns how many. */
export async function pruneSessions(sql: Sql): Promise<number> {
  const removed = await sql`delete from session where expires_at < clock_timestamp()`;
  return removed.count;
}
