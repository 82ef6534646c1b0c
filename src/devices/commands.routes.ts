import { scopeMask } from '../access/scopes.ts';
import { type Answer, errorAnswer, listAnswer } from '../http/answer.ts';
import { parameterError, readLimit } from '../http/parameter.ts';
import { COMMAND_STATUS, COMMANDS_LIMIT } from '../http/parameters.ts';
import type { ReadPorts } from '../http/ports.ts';
import { isBlank } from '../http/query.ts';
import { BOTH_VERSIONS, type Call, type Route } from '../http/route.ts';
import { COMMAND_STATUSES, type CommandStatus, selectCommands } from './commands.sql.ts';
import { LIST_COMMANDS } from './deviceOperations.ts';
import { commandView } from './deviceViews.ts';
import type { Fleet } from './fleet.memory.ts';
import { imeiError } from './imeiParameter.ts';

interface CommandPorts extends ReadPorts {
  readonly fleet: Fleet;
}

/** The command queue of a device, read-only. */
export function commandsRoute(ports: CommandPorts): Route {
  return {
    method: 'GET',
    path: '/devices/:imei/commands',
    scopes: scopeMask('send_commands'),
    versions: BOTH_VERSIONS,
    describe: LIST_COMMANDS,
    handle: (call) => commands(ports, call),
  };
}

async function commands({ reads, fleet }: CommandPorts, call: Call): Promise<Answer> {
  const { caller, query } = call;
  const imei = call.params['imei'] ?? '';
  const error = imeiError(imei);
  if (error !== null) return error;
  const statuses = statusesOf(query['status']);
  if (statuses === null) return parameterError(COMMAND_STATUS);
  const limit = readLimit(query, COMMANDS_LIMIT);
  if (fleet.device(caller.worldIds, imei) === undefined) return errorAnswer('DEVICE_NOT_FOUND');
  const found = await selectCommands(reads(caller.accountId), caller.worldIds, imei, statuses, limit);
  return listAnswer(found.map(commandView), { limit, offset: 0 });
}

function statusesOf(text: string | undefined): readonly CommandStatus[] | null {
  if (text === undefined || isBlank(text)) return COMMAND_STATUS.fallback;
  const statuses: CommandStatus[] = [];
  for (const part of text.split(',')) {
    const status = COMMAND_STATUSES.find((known) => known === part.trim());
    if (status === undefined) return null;
    statuses.push(status);
  }
  return statuses;
}
