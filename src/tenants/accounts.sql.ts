import { deleteSessionsOf } from '../access/sessions.sql.ts';
import { invariant } from '../lib/errors.ts';
import { arrayLiteral, type Query, type Sql, type Tx } from '../postgres/sql.ts';

/** What the sessions of an account may do: everything, or read everything. */
export const ROLES = ['member', 'viewer'] as const;
export type Role = (typeof ROLES)[number];

export interface Account {
  readonly id: number;
  readonly email: string;
  readonly name: string;
  readonly plan: string;
  readonly active: boolean;
  readonly role: Role;
  readonly organizationId: number | null;
  readonly organization: string | null;
  readonly worldId: number;
  /** The world of its organization's shared resources. */
  readonly organizationWorldId: number | null;
  /** How many devices its plan allows in a world that it adds devices to. */
  readonly maxDevices: number;
}

/**
 * The account with this email address, locked until the transaction ends: 'share' keeps others from changing it,
 * 'update' is for changing it.
 */
export async function selectAccount(
  tx: Tx,
  email: string,
  lock: 'share' | 'update',
): Promise<Account | undefined> {
  const [account] = await tx<Account[]>`
    select a.id, a.email, a.name, a.plan, a.active, a.role, a.organization_id as "organizationId", a.world_id as "worldId",
      o.name as organization, o.world_id as "organizationWorldId", p.max_devices as "maxDevices"
    from account a join plan p on p.name = a.plan left join organization o on o.id = a.organization_id
    where a.email = ${email}
    ${lock === 'share' ? tx`for share of a` : tx`for no key update of a`}`;
  return account;
}

/** An account as the commands list it. */
export interface ListedAccount {
  readonly id: number;
  readonly email: string;
  readonly name: string;
  readonly organization_id: number | null;
  readonly organization: string | null;
  readonly plan: string;
  readonly active: boolean;
  readonly role: Role;
}

/** The accounts behind an id, by id. */
export function selectAccountPage(sql: Sql, afterId: number, limit: number): Promise<ListedAccount[]> {
  return sql<ListedAccount[]>`
    select a.id, a.email, a.name, a.organization_id, o.name as organization, a.plan, a.active, a.role
    from account a left join organization o on o.id = a.organization_id
    where a.id > ${afterId} order by a.id limit ${limit}`;
}

/** An account's world and that of its organization, if it belongs to one. */
export interface MembershipRow {
  readonly accountId: number;
  readonly worldId: number;
  readonly organizationWorldId: number | null;
  /** Stays that its areas may have, by its plan. */
  readonly maxStays: number;
}

/** The memberships of these accounts, or of all. */
export async function selectMemberships(
  sql: Query,
  accountIds: readonly number[] | null,
): Promise<MembershipRow[]> {
  if (accountIds?.length === 0) return [];
  return sql<MembershipRow[]>`
    select a.id as "accountId", a.world_id as "worldId", o.world_id as "organizationWorldId",
      p.max_stays as "maxStays"
    from account a join plan p on p.name = a.plan left join organization o on o.id = a.organization_id
    ${accountIds === null ? sql`` : sql`where a.id = any(${arrayLiteral(accountIds)}::bigint[])`}`;
}

/** How many stays the areas of accounts may have, by their plans: the first `limit` accounts behind an id. */
export async function selectStayQuotas(
  sql: Query,
  afterId: number,
  limit: number,
): Promise<Pick<MembershipRow, 'accountId' | 'maxStays'>[]> {
  return sql`
    select a.id as "accountId", p.max_stays as "maxStays" from account a join plan p on p.name = a.plan
    where a.id > ${afterId} order by a.id limit ${limit}`;
}

/**
 * Keeps other transactions from adding an account or an organization until this one ends. So what was not there is
 * still not there when it is added. Must be called before any row lock.
 */
export async function lockForNewTenants(tx: Tx): Promise<void> {
  await tx`lock table organization, account in share row exclusive mode`;
}

export interface AccountDraft {
  readonly email: string;
  readonly name: string;
  readonly organizationId: number | null;
  readonly plan: string;
  readonly passwordHash: string | null;
  /** A member when not given. */
  readonly role?: Role;
}

/** The id and the world of a new row. */
interface Tenant {
  readonly id: number;
  readonly worldId: number;
}

/** An account with a world of its own. Its address must be free. */
export async function insertAccount(tx: Tx, draft: AccountDraft): Promise<Tenant> {
  const [row] = await tx<Tenant[]>`
    with own as (insert into world default values returning id)
    insert into account (email, name, organization_id, plan, password_hash, role, world_id)
    select ${draft.email}, ${draft.name}, ${draft.organizationId}, ${draft.plan}, ${draft.passwordHash},
      ${draft.role ?? 'member'}, id
    from own
    returning id, world_id as "worldId"`;
  invariant(row, 'an insert returns its row');
  return row;
}

/**
 * Changes the given values; `undefined` keeps a value. A new password (or the same one set again) and a deactivation end
 * every session of the account.
 */
export async function updateAccount(
  tx: Tx,
  id: number,
  changes: {
    readonly name?: string | undefined;
    readonly plan?: string | undefined;
    readonly active?: boolean | undefined;
    readonly role?: Role | undefined;
    readonly passwordHash?: string | undefined;
    readonly organizationId?: number | null | undefined;
  },
): Promise<void> {
  await tx`
    update account set
      name = coalesce(${changes.name ?? null}, name),
      plan = coalesce(${changes.plan ?? null}, plan),
      active = coalesce(${changes.active ?? null}, active),
      role = coalesce(${changes.role ?? null}, role),
      password_hash = coalesce(${changes.passwordHash ?? null}, password_hash),
      organization_id = case when ${changes.organizationId !== undefined} then ${changes.organizationId ?? null}::bigint
                        else organization_id end
    where id = ${id}`;
  if (changes.passwordHash !== undefined || changes.active === false) await deleteSessionsOf(tx, id);
}

/** The organization of that name, made with a world of its own at its first use. Needs `lockForNewTenants`. */
export async function upsertOrganization(tx: Tx, name: string): Promise<Tenant> {
  const [found] = await tx<Tenant[]>`select id, world_id as "worldId" from organization where name = ${name}`;
  if (found !== undefined) return found;
  const [made] = await tx<Tenant[]>`
    with own as (insert into world default values returning id)
    insert into organization (name, world_id) select ${name}, id from own returning id, world_id as "worldId"`;
  invariant(made, 'an insert returns its row');
  return made;
}

export async function selectPlanNames(tx: Tx): Promise<string[]> {
  const rows = await tx<{ name: string }[]>`select name from plan order by history_days`;
  return rows.map(({ name }) => name);
}
