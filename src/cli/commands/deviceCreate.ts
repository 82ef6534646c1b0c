import { TOO_MANY_DEVICES } from '../../devices/importDevices.ts';
import { type CreateDeviceError, createDevice } from '../../devices/registerDevice.ts';
import { fail, ok } from '../../lib/result.ts';
import { defineCommand, unknownAccount } from '../command.ts';
import { flag, optional, required } from '../option.ts';
import { parseEmail, parseGroups, parseImei, parseName } from '../optionParsers.ts';

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
    organization: flag("owned by the account's organization, and seen by all its members"),
  },
  run: (context, { email, imei, name = null, plate = null, model = null, groups = [], organization }) =>
    context.withSession(async (session) => {
      const draft = { imei, name, plate, model, groups, isShared: organization };
      const created = await createDevice(session, email, draft);
      if (created.ok) return ok({ imei });
      return created.error === 'unknown_account'
        ? unknownAccount(email)
        : fail(messages(email, imei)[created.error]);
    }),
});

const messages = (
  email: string,
  imei: string,
): Readonly<Record<Exclude<CreateDeviceError, 'unknown_account'>, string>> => ({
  no_organization: `${email} belongs to no organization; give it one with account:update --organization`,
  too_many: TOO_MANY_DEVICES,
  taken: `there is a device ${imei} already; change its fields with device:import`,
});
