import { fail, ok } from '../../base/result.ts';
import { type WriteScope, writeWorlds } from '../../flows/writeWorlds.ts';
import { lockAreaHomes, moveArea } from '../../store/areaHomes.ts';
import { type Command, type CommandOutcome, defineCommand } from '../command.ts';
import { required } from '../option.ts';
import { parseId } from '../parseText.ts';

export const areaShare = shareCommand(
  'area:share',
  true,
  'Makes an area belong to its organization: every member sees it.',
);

export const areaUnshare = shareCommand('area:unshare', false, 'Makes an area private to its account again.');

function shareCommand(name: string, shared: boolean, summary: string): Command {
  return defineCommand({
    name,
    summary,
    options: { id: required('N', 'the id of the area', parseId) },
    notes: ['Its external_id stays in the namespace of the account that made it.'],
    run: (context, { id }) =>
      context.withSession((session) => writeWorlds(session, (scope) => share(scope, id, shared))),
  });
}

/** Both worlds change: one gains the area, the other loses it. Also when it is so already. */
async function share({ tx, changed }: WriteScope, id: number, shared: boolean): Promise<CommandOutcome> {
  const homes = await lockAreaHomes(tx, id);
  if (homes === undefined) return fail(`there is no area ${id}`);
  const worldId = shared ? homes.organizationWorldId : homes.accountWorldId;
  if (worldId === null) return fail(`the account of area ${id} belongs to no organization`);
  await moveArea(tx, id, worldId);
  for (const changedWorldId of new Set([homes.worldId, worldId])) {
    changed({ kind: 'area', worldId: changedWorldId, entityIds: [id] });
  }
  return ok({ id, shared });
}
