import { type DeleteDeviceError, deleteDevice } from '../../devices/registerDevice.ts';
import { fail, ok } from '../../lib/result.ts';
import { defineCommand } from '../command.ts';
import { required } from '../option.ts';
import { parseImei } from '../optionParsers.ts';

export const deviceDelete = defineCommand({
  name: 'device:delete',
  summary: 'Deletes a device for ever, with its points and commands.',
  options: { imei: required('I', 'its IMEI', parseImei) },
  notes: [
    'Its events stay. Its points are rejected from then on, and its IMEI may be registered again, by anybody. If the',
    'command is interrupted, repeat it.',
  ],
  run: (context, { imei }) =>
    context.withSession(async (session) => {
      const deleted = await deleteDevice(session, imei, context.interrupted);
      return deleted.ok ? ok({ imei, points: deleted.value }) : fail(messages(imei)[deleted.error]);
    }),
});

const messages = (imei: string): Readonly<Record<DeleteDeviceError, string>> => ({
  unknown_device: `there is no device ${imei}`,
  interrupted: 'interrupted; some points may be deleted. Repeat the command to finish',
});
