import { isUnavailable } from '../store/sql.ts';
import type { Command } from './command.ts';
import type { CommandContext } from './context.ts';

export interface RunPorts {
  readonly commands: readonly Command[];
  /** Called once the arguments are understood. The error lists what is wrong with the environment. */
  context(): CommandContext | string[];
  stdout(text: string): void;
  stderr(text: string): void;
}

const DONE = 0;
const FAILED = 1;
const MISUSED = 2;

/**
 * Runs one command line and returns the exit code: 0 with one JSON document on stdout, 1 when the command failed,
 * 2 when it was not understood; then stdout stays empty and stderr says what to do. Help goes to stdout.
 */
export async function runCommand(argv: readonly string[], ports: RunPorts): Promise<number> {
  const [name, ...args] = argv;
  if (name === undefined) {
    ports.stderr(overview(ports.commands));
    return MISUSED;
  }
  if (name === 'help' || name === '--help' || name === '-h') {
    ports.stdout(overview(ports.commands));
    return DONE;
  }
  const command = ports.commands.find((candidate) => candidate.name === name);
  if (command === undefined) {
    ports.stderr(`fleet: there is no command ${JSON.stringify(name)}\n\n${overview(ports.commands)}`);
    return MISUSED;
  }
  if (args.includes('--help') || args.includes('-h')) {
    ports.stdout(`${command.help}\n`);
    return DONE;
  }
  const prepared = command.prepare(args);
  if (prepared.ok) return await run(prepared.value, command, ports);
  ports.stderr(
    `${prepared.error.map((problem) => `${command.name}: ${problem}\n`).join('')}\nusage: ${command.usage}\n` +
      `More: fleet ${command.name} --help\n`,
  );
  return MISUSED;
}

async function run(
  prepared: (context: CommandContext) => Promise<{ ok: true; value: unknown } | { ok: false; error: string }>,
  command: Command,
  ports: RunPorts,
): Promise<number> {
  const context = ports.context();
  if (Array.isArray(context)) {
    ports.stderr(context.map((problem) => `${problem}\n`).join(''));
    return FAILED;
  }
  try {
    const outcome = await prepared(context);
    if (outcome.ok) ports.stdout(`${JSON.stringify(outcome.value)}\n`);
    else ports.stderr(`${command.name}: ${outcome.error}\n`);
    return outcome.ok ? DONE : FAILED;
  } catch (error) {
    ports.stderr(`${command.name}: ${explain(error)}\n`);
    return FAILED;
  }
}

function explain(error: unknown): string {
  if (isUnavailable(error)) {
    return 'the database was lost or did not answer in time; try again';
  }
  return `unexpected error, please report it: ${error instanceof Error ? error.stack : String(error)}`;
}

function overview(commands: readonly Command[]): string {
  const width = Math.max(...commands.map(({ name }) => name.length));
  const lines = commands.map(({ name, summary }) => `  ${name.padEnd(width)}  ${summary}`);
  return [
    'usage: npm run -s fleet -- <command> [options]',
    '',
    ...lines,
    '',
    'Each prints one JSON document. Options of a command: fleet <command> --help',
    '',
  ].join('\n');
}
