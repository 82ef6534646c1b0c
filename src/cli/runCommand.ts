import { CommanderError, Command as Parser } from 'commander';
import { isUnavailable } from '../postgres/sqlErrors.ts';
import { VERSION } from '../version.ts';
import type { CommandContext, FleetCommand, PreparedCommand } from './command.ts';
import { accountCommands } from './commands/account.ts';
import { areaCommands } from './commands/area.ts';
import { deviceCommands } from './commands/device.ts';
import { keyCommands } from './commands/key.ts';
import { historyPack, migrateCommand } from './commands/maintenance.ts';
import { webhookCommands } from './commands/webhook.ts';
import { simulate } from './simulate/simulate.ts';

const DONE = 0;
const FAILED = 1;
const MISUSED = 2;
const HELP_COLUMNS = 110;

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
    return 'the connection to the database was lost, or it did not answer in time; try again';
  }
  return `unexpected error, please report it: ${error instanceof Error ? error.stack : String(error)}`;
}

/** Every command, in the order of the overview. */
export const COMMANDS: readonly FleetCommand[] = [
  migrateCommand,
  ...accountCommands,
  ...areaCommands,
  ...keyCommands,
  ...deviceCommands,
  historyPack,
  simulate,
  ...webhookCommands,
];
