import { type WriteScope, writeWorlds } from '../../changelog/writeWorlds.ts';
import { fail, ok } from '../../lib/result.ts';
import {
  insertAccount,
  lockForNewTenants,
  selectAccount,
  upsertOrganization,
} from '../../tenants/accounts.sql.ts';
import { hashPassword } from '../../tenants/credentials.ts';
import { type CommandOutcome, defineCommand, planError } from '../command.ts';
import { optional, required } from '../option.ts';
import { parseEmail, parseName, parseOrganization, parsePassword } from '../optionParsers.ts';
import { ASKS_PASSWORD, readPassword } from '../readPassword.ts';

const DEFAULT_PLAN = 'pro';

export const accountCreate = defineCommand({
  name: 'account:create',
  summary: 'Adds an account with a world of its own.',
  options: {
    email: required('E', 'its address; one account each', parseEmail),
    name: required('N', 'its name', parseName),
    organization: optional('O', 'the organization it belongs to; made by its first use', parseOrganization),
    plan: optional('P', `its plan; ${DEFAULT_PLAN} when not given`, parseName),
    password: optional('W', `for sessions of the application. ${ASKS_PASSWORD}`, parsePassword),
  },
  async run(context, values) {
    const password = await readPassword(context, values.password);
    if (!password.ok) return password;
    const passwordHash = password.value === undefined ? null : await hashPassword(password.value);
    return context.withSession((session) =>
      writeWorlds(session, (scope) => create(scope, { ...values, passwordHash })),
    );
  },
});

async function create(
  { tx, changed }: WriteScope,
  draft: {
    email: string;
    name: string;
    organization: string | null | undefined;
    plan: string | undefined;
    passwordHash: string | null;
  },
): Promise<CommandOutcome> {
  await lockForNewTenants(tx);
  const { email, name, passwordHash, plan = DEFAULT_PLAN, organization = null } = draft;
  if ((await selectAccount(tx, email, 'share')) !== undefined) {
    return fail(`there is an account ${email} already; change it with account:update`);
  }
  const error = await planError(tx, plan);
  if (error !== null) return fail(error);
  const organizationId = organization === null ? null : (await upsertOrganization(tx, organization)).id;
  const { id, worldId } = await insertAccount(tx, { email, name, organizationId, plan, passwordHash });
  changed({ kind: 'account', worldId, entityIds: [id] });
  return ok({ id, email, organization_id: organizationId });
}
