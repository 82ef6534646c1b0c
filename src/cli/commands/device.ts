import { finishCommand, insertCommand } from '../../devices/commands.sql.ts';
import type { DevicePlace, ListedDevice } from '../../devices/devices.sql.ts';
import { BEFORE_ALL_DEVICES, selectDevicePage } from '../../devices/devices.sql.ts';
import { TOO_MANY_DEVICES } from '../../devices/importDevices.ts';
import type { CreateDeviceError, DeleteDeviceError } from '../../devices/registerDevice.ts';
import { createDevice, deleteDevice } from '../../devices/registerDevice.ts';
import { fail, ok, type Result } from '../../lib/result.ts';
import {
  defineCommand,
  type FleetCommand,
  flag,
  optional,
  PAGE_ROWS,
  printPages,
  required,
  unknownAccount,
  withAccount,
} from '../command.ts';
import { parseEmail, parseGroups, parseId, parseImei, parseName } from '../optionParsers.ts';
import { deviceImport } from './deviceImport.ts';

const create = defineCommand({
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
        : fail(createErrors(email, imei)[created.error]);
    }),
});

const createErrors = (
  email: string,
  imei: string,
): Readonly<Record<Exclude<CreateDeviceError, 'unknown_account'>, string>> => ({
  no_organization: `${email} belongs to no organization; give it one with account:update --organization`,
  too_many: TOO_MANY_DEVICES,
  taken: `there is a device ${imei} already; change its fields with device:import`,
});

const list = defineCommand({
  name: 'device:list',
  summary: 'Prints every device, one JSON line each.',
  options: { email: optional('E', 'only those that this account sees', parseEmail) },
  notes: [
    'organization says whether an organization owns the device, owner who it is. With --email there is no owner, and',
    'the lines are those that device:import reads.',
  ],
  run: (context, { email }) =>
    withAccount(context, email, (sql, account) => {
      const worldIds = account && [account.worldId, account.organizationWorldId];
      const visible = worldIds?.filter((worldId) => worldId !== null) ?? null;
      return printPages(
        context,
        (last: (ListedDevice & DevicePlace) | null) =>
          selectDevicePage(sql, visible, last ?? BEFORE_ALL_DEVICES, PAGE_ROWS),
        ({ world_id: _, owner, ...fields }) => (visible === null ? { ...fields, owner } : fields),
      );
    }),
});

const remove = defineCommand({
  name: 'device:delete',
  summary: 'Deletes a device permanently, with its points and commands.',
  options: { imei: required('I', 'its IMEI', parseImei) },
  notes: [
    'Its events stay. Its points are rejected from then on, and its IMEI may be registered again, by anybody. If the',
    'command is interrupted, repeat it.',
  ],
  run: (context, { imei }) =>
    context.withSession(async (session) => {
      const deleted = await deleteDevice(session, imei, context.interrupted);
      return deleted.ok ? ok({ imei, points: deleted.value }) : fail(deleteErrors(imei)[deleted.error]);
    }),
});

const deleteErrors = (imei: string): Readonly<Record<DeleteDeviceError, string>> => ({
  unknown_device: `there is no device ${imei}`,
  interrupted: 'interrupted; some points may be deleted. Repeat the command to finish',
});

const TYPES = [
  'position_request',
  'engine_stop',
  'engine_resume',
  'output_control',
  'reboot',
  'configuration',
  'custom',
];

const enqueue = defineCommand({
  name: 'command:enqueue',
  summary: "Adds a pending command to a device's queue.",
  options: {
    imei: required('I', 'the IMEI of the device', parseImei),
    type: required('T', TYPES.join(', '), parseType),
  },
  run: (context, { imei, type }) =>
    context.withSession(async ({ sql }) => {
      const id = await insertCommand(sql, imei, type);
      return id === undefined ? fail(`there is no device ${imei}`) : ok({ id, status: 'pending' });
    }),
});

const sent = finishing('command:sent', 'sent', 'Marks a pending command as sent to its device.');

const cancel = finishing('command:cancel', 'canceled', 'Cancels a pending command.');

function finishing(name: string, status: 'sent' | 'canceled', summary: string): FleetCommand {
  return defineCommand({
    name,
    summary,
    options: { id: required('N', 'the id that command:enqueue printed', parseId) },
    run: (context, { id }) =>
      context.withSession(async ({ sql }) => {
        const before = await finishCommand(sql, id, status);
        if (before === undefined) return fail(`there is no command ${id}`);
        if (before !== 'pending') return fail(`command ${id} is ${before}; only a pending one can change`);
        return ok({ id, status });
      }),
  });
}

export const deviceCommands: readonly FleetCommand[] = [
  ...[create, deviceImport, remove, list],
  ...[enqueue, sent, cancel],
];

function parseType(text: string): Result<string, string> {
  return TYPES.includes(text) ? ok(text) : fail(`is not a command type; choose one of ${TYPES.join(', ')}`);
}
