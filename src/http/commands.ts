import { scopeMask } from '../access/scopes.ts';
import type { Fleet } from '../memory/fleet.ts';
import { COMMAND_STATUSES, type CommandStatus, selectCommands } from '../store/commands.ts';
import { type Answer, errorAnswer, listAnswer } from './answer.ts';
import { refuseImei } from './imei.ts';
import { LIST_COMMANDS } from './openapi/deviceOperations.ts';
import { readLimit, refuseChoice } from './parameter.ts';
import { COMMAND_STATUS, COMMANDS_LIMIT } from './parameters.ts';
import type { ReadPorts } from './ports.ts';
import { isBlank } from './query.ts';
import { BOTH_VERSIONS, type Call, type Route } from './route.ts';
import { commandView } from './views.ts';

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
  const refusal = refuseImei(imei);
  if (refusal !== null) return refusal;
  const statuses = statusesOf(query['status']);
  if (statuses === null) return refuseChoice(COMMAND_STATUS);
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
