import { revokeKey } from '../../access/keys.sql.ts';
import { type WriteScope, writeWorlds } from '../../changelog/writeWorlds.ts';
import { fail, ok } from '../../lib/result.ts';
import { type CommandOutcome, defineCommand } from '../command.ts';
import { required } from '../option.ts';
import { parseId } from '../optionParsers.ts';

export const keyRevoke = defineCommand({
  name: 'key:revoke',
  summary: 'Ends an API key for ever, from its next call on.',
  options: { id: required('N', 'the id that key:create printed', parseId) },
  notes: ['A key that is revoked already keeps its time of revocation.'],
  run: (context, { id }) =>
    context.withSession((session) => writeWorlds(session, (scope) => revoke(scope, id))),
});

async function revoke({ tx, changed }: WriteScope, id: number): Promise<CommandOutcome> {
  const key = await revokeKey(tx, id);
  if (key === undefined) return fail(`there is no key ${id}`);
  changed({ kind: 'key', worldId: key.worldId, entityIds: [id] });
  return ok({ id, revoked_at: key.revokedAt.toISOString() });
}
