import { fail, ok } from '../../lib/result.ts';
import type { Tx } from '../../postgres/sql.ts';
import {
  insertAccount,
  type ListedAccount,
  lockForNewTenants,
  ROLES,
  selectAccount,
  selectAccountPage,
  selectPlanNames,
  updateAccount,
  upsertOrganization,
} from '../../tenants/accounts.sql.ts';
import { hashPassword } from '../../tenants/credentials.ts';
import {
  type CommandContext,
  defineCommand,
  type FleetCommand,
  optional,
  PAGE_ROWS,
  printPages,
  required,
  unknownAccount,
  write,
} from '../command.ts';
import { ASKS_PASSWORD, readPassword } from '../input.ts';
import { parseEmail, parseName, parseOrganization, parsePassword, parseRole } from '../optionParsers.ts';

const DEFAULT_PLAN = 'pro';
const EMAIL = required('E', 'the address of the account', parseEmail);

const create = defineCommand({
  name: 'account:create',
  summary: 'Creates an account.',
  options: {
    email: required('E', 'its address; one account each', parseEmail),
    name: required('N', 'its name', parseName),
    organization: optional('O', 'the organization it belongs to; made by its first use', parseOrganization),
    plan: optional('P', `its plan; ${DEFAULT_PLAN} when not given`, parseName),
    role: optional(ROLES.join('|'), 'viewer: its sessions read only; member when not given', parseRole),
    password: optional('W', `for sessions of the application. ${ASKS_PASSWORD}`, parsePassword),
  },
  async run(context, { email, name, organization = null, plan = DEFAULT_PLAN, role = 'member', password }) {
    const hash = await passwordHash(context, password);
    if (!hash.ok) return hash;
    return write(context, async ({ tx, changed }) => {
      await lockForNewTenants(tx);
      if ((await selectAccount(tx, email, 'share')) !== undefined) {
        return fail(`there is an account ${email} already; change it with account:update`);
      }
      const error = await planError(tx, plan);
      if (error !== null) return fail(error);
      const organizationId = organization === null ? null : (await upsertOrganization(tx, organization)).id;
      const draft = { email, name, organizationId, plan, role, passwordHash: hash.value ?? null };
      const { id, worldId } = await insertAccount(tx, draft);
      changed({ kind: 'account', worldId, entityIds: [id] });
      return ok({ id, email, organization_id: organizationId });
    });
  },
});

const update = defineCommand({
  name: 'account:update',
  summary: 'Changes the given fields of an account and prints it.',
  options: {
    email: EMAIL,
    organization: optional(
      'O|none',
      'the organization it belongs to from now on, or none',
      parseOrganization,
    ),
    plan: optional('P', 'its plan', parseName),
    role: optional(ROLES.join('|'), 'what its sessions may do from their next call on', parseRole),
    name: optional('N', 'its name', parseName),
    password: optional('W', `a new one, which ends open sessions. ${ASKS_PASSWORD}`, parsePassword),
  },
  notes: [
    'What an organization owns stays with it when a member leaves; what is private goes with the member.',
    'The keys of an account are not changed when it becomes a viewer: revoke those that can write.',
  ],
  async run(context, { email, organization, plan, role, name, password }) {
    const hash = await passwordHash(context, password);
    if (!hash.ok) return hash;
    return write(context, async ({ tx, changed }) => {
      if (typeof organization === 'string') await lockForNewTenants(tx);
      const before = await selectAccount(tx, email, 'update');
      if (before === undefined) return unknownAccount(email);
      const error = plan === undefined ? null : await planError(tx, plan);
      if (error !== null) return fail(error);
      const organizationId =
        typeof organization === 'string' ? (await upsertOrganization(tx, organization)).id : organization;
      await updateAccount(tx, before.id, { organizationId, plan, role, name, passwordHash: hash.value });
      changed({ kind: 'account', worldId: before.worldId, entityIds: [before.id] });
      const account = (await selectAccount(tx, email, 'update')) ?? before;
      return ok({
        id: account.id,
        email: account.email,
        name: account.name,
        organization_id: account.organizationId,
        organization: account.organization,
        plan: account.plan,
        active: account.active,
        role: account.role,
      });
    });
  },
});

/** Also writes when nothing changes: repeating the command makes sure that every pod knows of it. */
function switchCommand(name: string, active: boolean, summary: string): FleetCommand {
  return defineCommand({
    name,
    summary,
    options: { email: EMAIL },
    run: (context, { email }) =>
      write(context, async ({ tx, changed }) => {
        const account = await selectAccount(tx, email, 'update');
        if (account === undefined) return unknownAccount(email);
        await updateAccount(tx, account.id, { active });
        changed({ kind: 'account', worldId: account.worldId, entityIds: [account.id] });
        return ok({ id: account.id, active });
      }),
  });
}

const deactivate = switchCommand(
  'account:deactivate',
  false,
  'Denies every call of the keys of an account, from the next call on, and ends its sessions.',
);
const activate = switchCommand('account:activate', true, 'Lets the keys of an account be used again.');

const list = defineCommand({
  name: 'account:list',
  summary: 'Prints every account, one JSON line each.',
  options: {},
  run: (context) =>
    context.withSession(({ sql }) =>
      printPages(context, (last: ListedAccount | null) => selectAccountPage(sql, last?.id ?? 0, PAGE_ROWS)),
    ),
});

export const accountCommands: readonly FleetCommand[] = [create, update, deactivate, activate, list];

/** The hash of the password of an option; undefined when none is given. */
async function passwordHash(context: CommandContext, given: string | undefined) {
  const password = await readPassword(context, given);
  if (!password.ok) return password;
  return ok(password.value === undefined ? undefined : await hashPassword(password.value));
}

/** Why there can be no account on this plan; null when there can. */
async function planError(tx: Tx, plan: string): Promise<string | null> {
  const names = await selectPlanNames(tx);
  return names.includes(plan)
    ? null
    : `there is no plan ${JSON.stringify(plan)}; choose one of ${names.join(', ')}`;
}
