import { scopeMask } from '../access/scopes.ts';
import { type Answer, errorAnswer, listAnswer } from '../http/answer.ts';
import type { Operation } from '../http/openapi/operation.ts';
import { answered, bodyOf } from '../http/openapi/operation.ts';
import { choice, ID, nullable, page, ref, shapeOf, text, time } from '../http/openapi/schema.ts';
import { limitParameter, listParameter, parameterError, readLimit, readList } from '../http/parameters.ts';
import type { ReadPorts } from '../http/route.ts';
import { BOTH_VERSIONS, type Call, type Route } from '../http/route.ts';
import { formatIso } from '../lib/time.ts';
import { COMMAND_STATUSES, type Command, selectCommands } from './commands.sql.ts';
import { EXAMPLE_NOW_MS, imeiError, ONE_DEVICE } from './deviceSchemas.ts';
import type { Fleet } from './fleet.memory.ts';

const EXAMPLE_COMMANDS: readonly Command[] = [
  { id: 18, type: 'position_request', status: 'pending', queuedAtMs: EXAMPLE_NOW_MS, sentAtMs: null },
  {
    id: 17,
    type: 'configuration',
    status: 'sent',
    queuedAtMs: EXAMPLE_NOW_MS - 90_000,
    sentAtMs: EXAMPLE_NOW_MS - 60_000,
  },
];

const COMMANDS_LIMIT = limitParameter(100, 50);

const COMMAND_STATUS = listParameter(
  'status',
  COMMAND_STATUSES,
  'Only commands in one of these states, separated by commas.',
  ['pending', 'sent'],
);

const LIST_COMMANDS: Operation = {
  id: 'listCommands',
  tag: 'Devices',
  summary: 'Read the command queue of a device',
  description: 'Newest first. The queue can only be read: no route sends a command.',
  parameters: [COMMAND_STATUS, COMMANDS_LIMIT],
  answers: [
    answered(200, 'Commands.', page(ref('Command')), {
      queue: bodyOf(listAnswer(EXAMPLE_COMMANDS.map(commandView), { limit: 50, offset: 0 })),
    }),
  ],
  errors: [...ONE_DEVICE, ['BAD_REQUEST', COMMAND_STATUS.errorMessage]],
};

type CommandPorts = ReadPorts & { readonly fleet: Fleet };

/** The command queue of a device, read-only. */
export function commandsRoute(ports: CommandPorts): Route {
  return {
    method: 'GET',
    path: '/devices/:imei/commands',
    scopes: scopeMask('send_commands'),
    isOpenToGroups: true,
    versions: BOTH_VERSIONS,
    shedAs: 'poll',
    describe: LIST_COMMANDS,
    handle: (call) => commands(ports, call),
  };
}

async function commands({ reads, fleet }: CommandPorts, call: Call): Promise<Answer> {
  const { caller, query } = call;
  const imei = call.params['imei'] ?? '';
  const error = imeiError(imei);
  if (error !== null) return error;
  const statuses = readList(query, COMMAND_STATUS);
  if (statuses === 'invalid') return parameterError(COMMAND_STATUS);
  const limit = readLimit(query, COMMANDS_LIMIT);
  if (!fleet.has(caller.worldIds, imei)) return errorAnswer('DEVICE_NOT_FOUND');
  const found = await selectCommands(reads(caller.accountId), caller.worldIds, imei, statuses, limit);
  return listAnswer(found.map(commandView), { limit, offset: 0 });
}

function commandView(command: Command) {
  return {
    id: command.id,
    type: command.type,
    status: command.status,
    queued_at: formatIso(command.queuedAtMs),
    sent_at: command.sentAtMs === null ? null : formatIso(command.sentAtMs),
  };
}

export const COMMAND_SCHEMAS = {
  Command: shapeOf<ReturnType<typeof commandView>>({
    id: ID,
    type: text('Such as `reboot` or `engine_stop`.'),
    status: choice(COMMAND_STATUSES),
    queued_at: time(),
    sent_at: nullable(time('null while it is not yet sent.')),
  }),
};
