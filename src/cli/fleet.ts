import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';
import { isatty } from 'node:tty';
import { CommanderError, Command as Parser } from 'commander';
import { readAdminConfig } from '../config.ts';
import { systemClock } from '../lib/clock.ts';
import { isUnavailable } from '../postgres/sqlErrors.ts';
import { VERSION } from '../version.ts';
import type { CommandContext, FleetCommand, PreparedCommand } from './command.ts';
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
import { interruption } from './interruption.ts';
import { withSession } from './session.ts';

const DONE = 0;
const FAILED = 1;
const MISUSED = 2;
const HELP_COLUMNS = 110;

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

const STDIN = 0;

process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  // The reader of a pipe has ended: see print.
  if (error.code !== 'EPIPE') throw error;
});

// Administration: npm run -s fleet -- <command>
process.exitCode = await runCommand(process.argv.slice(2), {
  commands: COMMANDS,
  context: createContext,
  stdout: (text) => process.stdout.write(text),
  stderr: (text) => process.stderr.write(text),
});

function createContext(): CommandContext | string[] {
  const config = readAdminConfig(process.env);
  if (!config.ok) return config.error;
  const say = (line: string) => process.stderr.write(`${line}\n`);
  return {
    config: config.value,
    withSession: (work) => withSession(config.value, say, work),
    print,
    say,
    // A getter: to look at stdin is to open it.
    get stdin() {
      return process.stdin;
    },
    askSecret: isatty(STDIN) ? askSecret : null,
    interrupted: interruption(() => say('ending; once more to end at once')),
    nowMs: systemClock,
  };
}

/** Prints no faster than it is read. */
async function print(value: unknown): Promise<boolean> {
  if (!process.stdout.writable) return false;
  if (!process.stdout.write(`${JSON.stringify(value)}\n`)) {
    await once(process.stdout, 'drain').catch(() => undefined); // what happened shows in `writable`
  }
  return process.stdout.writable;
}

/** Asks in the terminal for one line and does not show it. Empty when the user gives none (Ctrl-C, Ctrl-D). */
async function askSecret(prompt: string): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  // readline switches the terminal's own echo off and writes what is typed to `output`.
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  const line = createInterface({ input: process.stdin, output: nowhere, terminal: true });
  process.stderr.write(prompt); // only now, when nothing typed is shown any more
  line.once('line', resolve);
  line.once('SIGINT', () => resolve(''));
  line.once('close', () => resolve(''));
  try {
    return await promise;
  } finally {
    line.close();
    process.stderr.write('\n');
  }
}

interface RunPorts {
  readonly commands: readonly FleetCommand[];
  /** Called once the arguments are understood. The error lists what is wrong with the environment. */
  context(): CommandContext | string[];
  stdout(text: string): void;
  stderr(text: string): void;
}

/**
 * Runs one command line and returns the exit code: 0 when it is done, 1 when the command failed, 2 when it was not
 * understood; then stdout stays empty and stderr says what to do. Help goes to stdout.
 */
export async function runCommand(argv: readonly string[], ports: RunPorts): Promise<number> {
  let exitCode = DONE;
  const program = createProgram(ports);
  for (const command of ports.commands) {
    const { name } = command;
    const parser = command.addTo(program, async (prepared) => {
      exitCode = await run(prepared, name, ports);
    });
    parser.configureOutput({ outputError: (text, write) => write(prefixed(name, text)) });
    parser.showHelpAfterError(`\nusage: fleet ${name} ${command.usage}\nMore: fleet ${name} --help`);
  }
  try {
    await program.parseAsync(argv, { from: 'user' });
    return exitCode;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? DONE : MISUSED;
    throw error;
  }
}

function createProgram({ stdout, stderr }: RunPorts): Parser {
  return new Parser('fleet')
    .usage('<command> [options]')
    .version(VERSION)
    .helpCommand(true)
    .addHelpText(
      'after',
      '\nRun it as npm run -s fleet -- <command> [options]. Each command prints JSON on stdout.',
    )
    .showHelpAfterError()
    .exitOverride()
    .configureHelp({ subcommandTerm: (command) => command.name() })
    .configureOutput({
      writeOut: stdout,
      writeErr: stderr,
      outputError: (text, write) => write(prefixed('fleet', text)),
      getOutHelpWidth: () => HELP_COLUMNS,
      getErrHelpWidth: () => HELP_COLUMNS,
    });
}

/** Each line of an error under the name of the command. */
function prefixed(name: string, text: string): string {
  return text.replace(/^error: /, '').replace(/^(?=.)/gm, `${name}: `);
}

async function run(command: PreparedCommand, name: string, ports: RunPorts): Promise<number> {
  const context = ports.context();
  if (Array.isArray(context)) {
    ports.stderr(context.map((line) => `${line}\n`).join(''));
    return FAILED;
  }
  try {
    const outcome = await command(context);
    if (!outcome.ok) ports.stderr(`${name}: ${outcome.error}\n`);
    else if (outcome.value !== undefined) await context.print(outcome.value);
    return outcome.ok ? DONE : FAILED;
  } catch (error) {
    ports.stderr(`${name}: ${explain(error)}\n`);
    return FAILED;
  }
}

function explain(error: unknown): string {
  if (isUnavailable(error)) {
    return 'the database was lost or did not answer in time; try again';
  }
  return `unexpected error, please report it: ${error instanceof Error ? error.stack : String(error)}`;
}
