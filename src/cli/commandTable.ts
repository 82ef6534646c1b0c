import type { Command } from './command.ts';
import { accountActivate, accountDeactivate } from './commands/accountActive.ts';
import { accountCreate } from './commands/accountCreate.ts';
import { accountUpdate } from './commands/accountUpdate.ts';
import { areaShare, areaUnshare } from './commands/areaShare.ts';
import { commandCancel, commandEnqueue, commandSent } from './commands/commandQueue.ts';
import { deviceCreate } from './commands/deviceCreate.ts';
import { deviceImport } from './commands/deviceImport.ts';
import { keyCreate } from './commands/keyCreate.ts';
import { keyRevoke } from './commands/keyRevoke.ts';
import { migrateCommand } from './commands/migrate.ts';
import { simulate } from './commands/simulate.ts';
import { webhookReceive } from './commands/webhookReceive.ts';

/** Every command, in the order of the overview. */
export const COMMANDS: readonly Command[] = [
  migrateCommand,
  accountCreate,
  accountUpdate,
  accountDeactivate,
  accountActivate,
  areaShare,
  areaUnshare,
  keyCreate,
  keyRevoke,
  deviceCreate,
  deviceImport,
  commandEnqueue,
  commandSent,
  commandCancel,
  simulate,
  webhookReceive,
];
