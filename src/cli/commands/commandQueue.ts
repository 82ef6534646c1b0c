import { finishCommand, insertCommand } from '../../devices/commands.sql.ts';
import { fail, ok, type Result } from '../../lib/result.ts';
import { defineCommand, type FleetCommand } from '../command.ts';
import { required } from '../option.ts';
import { parseId, parseImei } from '../optionParsers.ts';

const TYPES = [
  'position_request',
  'engine_stop',
  'engine_resume',
  'output_control',
  'reboot',
  'configuration',
  'custom',
];

export const commandEnqueue = defineCommand({
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

export const commandSent = finishing(
  'command:sent',
  'sent',
  'Marks a pending command as sent to its device.',
);

export const commandCancel = finishing('command:cancel', 'canceled', 'Cancels a pending command.');

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

function parseType(text: string): Result<string, string> {
  return TYPES.includes(text) ? ok(text) : fail(`is no command type; choose one of ${TYPES.join(', ')}`);
}
