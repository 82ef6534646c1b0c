import { hashPassword } from '../../access/password.ts';
import { fail, ok } from '../../base/result.ts';
import { type WriteScope, writeWorlds } from '../../flows/writeWorlds.ts';
import { lockForNewTenants, selectAccount, updateAccount, upsertOrganization } from '../../store/accounts.ts';
import { type CommandOutcome, defineCommand } from '../command.ts';
import { noAccount } from '../noAccount.ts';
import { optional, required } from '../option.ts';
import { parseEmail, parseName, parseOrganization, parsePassword } from '../parseText.ts';
import { refusePlan } from '../refusePlan.ts';

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
    password: optional('W', 'for sessions of the application; ends those that are open', parsePassword),
  },
  notes: [
    'What an organization owns stays with it when a member leaves; what is private goes with the member.',
  ],
  run: (context, { email, password, ...changes }) =>
    context.withSession(async (session) => {
      const passwordHash = password === undefined ? undefined : await hashPassword(password);
      return writeWorlds(session, (scope) => update(scope, email, { ...changes, passwordHash }));
    }),
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
  if (before === undefined) return noAccount(email);
  const refusal = plan === undefined ? null : await refusePlan(tx, plan);
  if (refusal !== null) return fail(refusal);
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
