import { deleteSessionsOf } from '../access/sessions.sql.ts';
import type { Tx } from '../postgres/sql.ts';

export interface Account {
  readonly id: number;
  readonly email: string;
  readonly name: string;
  readonly plan: string;
  readonly active: boolean;
  readonly organizationId: number | null;
  readonly organization: string | null;
  readonly worldId: number;
  /** The world of its organization's shared resources. */
  readonly organizationWorldId: number | null;
  /** How many devices its plan allows in a world that it adds devices to. */
  readonly maxDevices: number;
}

export interface Organization {
  readonly id: number;
  readonly worldId: number;
}

export interface AccountDraft {
  readonly email: string;
  readonly name: string;
  readonly organizationId: number | null;
  readonly plan: string;
  readonly passwordHash: string | null;
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
  const [row] = await tx<
    {
      id: number;
      email: string;
      name: string;
      plan: string;
      active: boolean;
      organization_id: number | null;
      organization: string | null;
      world_id: number;
      organization_world_id: number | null;
      max_devices: number;
    }[]
  >`
    select a.id, a.email, a.name, a.plan, a.active, a.organization_id, a.world_id,
           o.name as organization, o.world_id as organization_world_id, p.max_devices
    from account a join plan p on p.name = a.plan left join organization o on o.id = a.organization_id
    where a.email = ${email}
    ${lock === 'share' ? tx`for share of a` : tx`for no key update of a`}`;
  if (row === undefined) return undefined;
  return {
    id: row.id,
    email: row.email,
    name: row.name,
    plan: row.plan,
    active: row.active,
    organizationId: row.organization_id,
    organization: row.organization,
    worldId: row.world_id,
    organizationWorldId: row.organization_world_id,
    maxDevices: row.max_devices,
  };
}

/**
 * Keeps other transactions from adding an account or an organization until this one ends. So what was not there is
 * still not there when it is added. Must be called before any row lock.
 */
export async function lockForNewTenants(tx: Tx): Promise<void> {
  await tx`lock table organization, account in share row exclusive mode`;
}

/** An account with a world of its own. Its address must be free. */
export async function insertAccount(tx: Tx, draft: AccountDraft): Promise<{ id: number; worldId: number }> {
  const [row] = await tx<{ id: number; world_id: number }[]>`
    with own as (insert into world default values returning id)
    insert into account (email, name, organization_id, plan, password_hash, world_id)
    select ${draft.email}, ${draft.name}, ${draft.organizationId}, ${draft.plan}, ${draft.passwordHash}, id from own
    returning id, world_id`;
  if (row === undefined) throw new Error('an insert returns its row');
  return { id: row.id, worldId: row.world_id };
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
    readonly passwordHash?: string | undefined;
    readonly organizationId?: number | null | undefined;
  },
): Promise<void> {
  await tx`
    update account set
      name = coalesce(${changes.name ?? null}, name),
      plan = coalesce(${changes.plan ?? null}, plan),
      active = coalesce(${changes.active ?? null}, active),
      password_hash = coalesce(${changes.passwordHash ?? null}, password_hash),
      organization_id = case when ${changes.organizationId !== undefined} then ${changes.organizationId ?? null}::bigint
                        else organization_id end
    where id = ${id}`;
  if (changes.passwordHash !== undefined || changes.active === false) await deleteSessionsOf(tx, id);
}

/** The organization of that name, made with a world of its own at its first use. Needs `lockForNewTenants`. */
export async function upsertOrganization(tx: Tx, name: string): Promise<Organization> {
  const [found] = await tx<{ id: number; world_id: number }[]>`
    select id, world_id from organization where name = ${name}`;
  if (found !== undefined) return { id: found.id, worldId: found.world_id };
  const [made] = await tx<{ id: number; world_id: number }[]>`
    with own as (insert into world default values returning id)
    insert into organization (name, world_id) select ${name}, id from own
    returning id, world_id`;
  if (made === undefined) throw new Error('an insert returns its row');
  return { id: made.id, worldId: made.world_id };
}

export async function selectPlanNames(tx: Tx): Promise<string[]> {
  const rows = await tx<{ name: string }[]>`select name from plan order by history_days`;
  return rows.map(({ name }) => name);
}
