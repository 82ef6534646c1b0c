import type { FleetCommand } from './command.ts';
import { accountActivate, accountDeactivate } from './commands/accountActive.ts';
import { accountCreate } from './commands/accountCreate.ts';
import { accountList } from './commands/accountList.ts';
import { accountUpdate } from './commands/accountUpdate.ts';
import { areaShare, areaUnshare } from './commands/areaShare.ts';
import { areaSync } from './commands/areaSync.ts';
import { commandCancel, commandEnqueue, commandSent } from './commands/commandQueue.ts';
import { deviceCreate } from './commands/deviceCreate.ts';
import { deviceDelete } from './commands/deviceDelete.ts';
import { deviceImport } from './commands/deviceImport.ts';
import { deviceList } from './commands/deviceList.ts';
import { historyPack } from './commands/historyPack.ts';
import { keyCreate } from './commands/keyCreate.ts';
import { keyList } from './commands/keyList.ts';
import { keyRevoke } from './commands/keyRevoke.ts';
import { migrateCommand } from './commands/migrate.ts';
import { simulate } from './commands/simulate.ts';
import { webhookList } from './commands/webhookList.ts';
import { webhookReceive } from './commands/webhookReceive.ts';

/** Every command, in the order of the overview. */
export const COMMANDS: readonly FleetCommand[] = [
  migrateCommand,
  accountCreate,
  accountUpdate,
  accountDeactivate,
  accountActivate,
  accountList,
  areaShare,
  areaUnshare,
  areaSync,
  keyCreate,
  keyRevoke,
  keyList,
  deviceCreate,
  deviceImport,
  deviceDelete,
  deviceList,
  commandEnqueue,
  commandSent,
  commandCancel,
  historyPack,
  simulate,
  webhookReceive,
  webhookList,
];
