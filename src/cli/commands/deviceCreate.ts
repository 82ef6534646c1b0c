import { fail, ok } from '../../base/result.ts';
import { type WriteScope, writeWorlds } from '../../flows/writeWorlds.ts';
import { selectAccount } from '../../store/accounts.ts';
import { insertDevices } from '../../store/devices.ts';
import { lockDeviceCounts } from '../../store/deviceUsage.ts';
import { type CommandOutcome, defineCommand } from '../command.ts';
import { TOO_MANY_DEVICES } from '../deviceQuota.ts';
import { noAccount } from '../noAccount.ts';
import { flag, optional, required } from '../option.ts';
import { parseGroups } from '../parseGroups.ts';
import { parseEmail, parseImei, parseName } from '../parseText.ts';

export const deviceCreate = defineCommand({
  name: 'device:create',
  summary: 'Registers a device; its points are accepted from then on.',
  options: {
    email: required('E', 'the address of the account', parseEmail),
    imei: required('I', 'its IMEI, 14 to 17 digits', parseImei),
    name: optional('N', 'its name', parseName),
    plate: optional('P', 'the license plate', parseName),
    model: optional('M', 'the hardware model', parseName),
    groups: optional('a,b', 'the groups it belongs to', (text) => parseGroups(text.split(','))),
    organization: flag("shared with the account's organization, which owns it then"),
  },
  run: (context, { email, ...draft }) =>
    context.withSession((session) => writeWorlds(session, (scope) => create(scope, email, draft))),
});

async function create(
  { tx, changed }: WriteScope,
  email: string,
  draft: {
    imei: string;
    name: string | undefined;
    plate: string | undefined;
    model: string | undefined;
    groups: readonly string[] | undefined;
    organization: boolean;
  },
): Promise<CommandOutcome> {
  const account = await selectAccount(tx, email, 'share');
  if (account === undefined) return noAccount(email);
  const worldId = draft.organization ? account.organizationWorldId : account.worldId;
  if (worldId === null) {
    return fail(`${email} belongs to no organization; give it one with account:update --organization`);
  }
  const { imei, name = null, plate = null, model = null, groups = [] } = draft;
  const count = (await lockDeviceCounts(tx, [worldId])).get(worldId) ?? 0;
  if (count >= account.maxDevices) return fail(TOO_MANY_DEVICES);
  const [created] = await insertDevices(tx, [{ imei, worldId, name, plate, model, groups }]);
  if (created === undefined)
    return fail(`there is a device ${imei} already; change its fields with device:import`);
  changed({ kind: 'device', worldId, entityIds: [created.id] });
  return ok({ imei });
}
