import { type ShareAreaError, shareArea } from '../../areas/saveArea.ts';
import { fail, ok } from '../../lib/result.ts';
import { defineCommand, type FleetCommand, required } from '../command.ts';
import { parseId } from '../optionParsers.ts';
import { areaSync } from './areaSync.ts';

function shareCommand(name: string, shared: boolean, summary: string): FleetCommand {
  return defineCommand({
    name,
    summary,
    options: { id: required('N', 'the id of the area', parseId) },
    notes: ['Its external_id stays in the namespace of the account that created it.'],
    run: (context, { id }) =>
      context.withSession(async (session) => {
        const outcome = await shareArea(session, id, shared);
        return outcome.ok ? ok({ id, shared }) : fail(messages(id)[outcome.error]);
      }),
  });
}

const messages = (id: number): Readonly<Record<ShareAreaError, string>> => ({
  unknown_area: `there is no area ${id}`,
  no_organization: `the account of area ${id} belongs to no organization`,
});

const share = shareCommand(
  'area:share',
  true,
  'Makes an area belong to its organization: every member sees it.',
);

const unshare = shareCommand('area:unshare', false, 'Makes an area private to its account again.');

export const areaCommands: readonly FleetCommand[] = [share, unshare, areaSync];
