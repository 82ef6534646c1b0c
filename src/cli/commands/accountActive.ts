import { type WriteScope, writeWorlds } from '../../changelog/writeWorlds.ts';
import { ok } from '../../lib/result.ts';
import { selectAccount, updateAccount } from '../../tenants/accounts.sql.ts';
import { type CommandOutcome, defineCommand, type FleetCommand, unknownAccount } from '../command.ts';
import { required } from '../option.ts';
import { parseEmail } from '../optionParsers.ts';

export const accountActivate = switchCommand(
  'account:activate',
  true,
  'Lets the keys of an account be used again.',
);

export const accountDeactivate = switchCommand(
  'account:deactivate',
  false,
  'Denies every call of the keys of an account, from the next call on, and ends its sessions.',
);

function switchCommand(name: string, active: boolean, summary: string): FleetCommand {
  return defineCommand({
    name,
    summary,
    options: { email: required('E', 'the address of the account', parseEmail) },
    run: (context, { email }) =>
      context.withSession((session) => writeWorlds(session, (scope) => setActive(scope, email, active))),
  });
}

/** Also writes when nothing changes: repeating the command makes sure that every pod knows of it. */
async function setActive(
  { tx, changed }: WriteScope,
  email: string,
  active: boolean,
): Promise<CommandOutcome> {
  const account = await selectAccount(tx, email, 'update');
  if (account === undefined) return unknownAccount(email);
  await updateAccount(tx, account.id, { active });
  changed({ kind: 'account', worldId: account.worldId, entityIds: [account.id] });
  return ok({ id: account.id, active });
}
