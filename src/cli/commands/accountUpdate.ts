import { type WriteScope, writeWorlds } from '../../changelog/writeWorlds.ts';
import { fail, ok } from '../../lib/result.ts';
import {
  lockForNewTenants,
  selectAccount,
  updateAccount,
  upsertOrganization,
} from '../../tenants/accounts.sql.ts';
import { hashPassword } from '../../tenants/credentials.ts';
import { type CommandOutcome, defineCommand, planError, unknownAccount } from '../command.ts';
import { optional, required } from '../option.ts';
import { parseEmail, parseName, parseOrganization, parsePassword } from '../optionParsers.ts';
import { ASKS_PASSWORD, readPassword } from '../readPassword.ts';

export const accountUpdate = defineCommand({
  name: 'account:update',
  summary: 'Changes what is given and prints the account.',
  options: {
    email: required('E', 'the address of the account', parseEmail),
    organization: optional(
      'O|none',
      'the organization it belongs to from now on, or none',
      parseOrganization,
    ),
    plan: optional('P', 'its plan', parseName),
    name: optional('N', 'its name', parseName),
    password: optional('W', `a new one, which ends open sessions. ${ASKS_PASSWORD}`, parsePassword),
  },
  notes: [
    'What an organization owns stays with it when a member leaves; what is private goes with the member.',
  ],
  async run(context, { email, password: given, ...changes }) {
    const password = await readPassword(context, given);
    if (!password.ok) return password;
    const passwordHash = password.value === undefined ? undefined : await hashPassword(password.value);
    return context.withSession((session) =>
      writeWorlds(session, (scope) => update(scope, email, { ...changes, passwordHash })),
    );
  },
});

async function update(
  { tx, changed }: WriteScope,
  email: string,
  changes: {
    organization: string | null | undefined;
    plan: string | undefined;
    name: string | undefined;
    passwordHash: string | undefined;
  },
): Promise<CommandOutcome> {
  const { organization, plan, name, passwordHash } = changes;
  if (typeof organization === 'string') await lockForNewTenants(tx);
  const before = await selectAccount(tx, email, 'update');
  if (before === undefined) return unknownAccount(email);
  const error = plan === undefined ? null : await planError(tx, plan);
  if (error !== null) return fail(error);
  const organizationId =
    typeof organization === 'string' ? (await upsertOrganization(tx, organization)).id : organization;
  await updateAccount(tx, before.id, { organizationId, plan, name, passwordHash });
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
  });
}
