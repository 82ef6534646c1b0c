import { parseArgs } from 'node:util';
import { fail, ok, type Result } from '../base/result.ts';
import type { CommandContext } from './context.ts';
import type { Option, OptionValues } from './option.ts';

/** What a command prints on success: one JSON document. The error is a text that says what to do next. */
export type CommandOutcome = Result<unknown, string>;

/** A command as the table knows it: its options are parsed before anything is opened. */
export interface Command {
  readonly name: string;
  readonly summary: string;
  readonly usage: string;
  /** Usage, what it does, and a line for each option. */
  readonly help: string;
  /** Parses the arguments after the command's name; the error lists all problems with them. */
  prepare(args: readonly string[]): Result<(context: CommandContext) => Promise<CommandOutcome>, string[]>;
}

interface CommandSpec<O extends Readonly<Record<string, Option<unknown>>>> {
  readonly name: string;
  readonly summary: string;
  readonly options: O;
  /** Lines below the options in the help. */
  readonly notes?: readonly string[];
  run(context: CommandContext, values: OptionValues<O>): Promise<CommandOutcome>;
}

export function defineCommand<O extends Readonly<Record<string, Option<unknown>>>>(
  spec: CommandSpec<O>,
): Command {
  const usage = ['fleet', spec.name, ...mapOptions(spec.options, (name, option) => option.usage(name))].join(
    ' ',
  );
  return {
    name: spec.name,
    summary: spec.summary,
    usage,
    help: helpText(spec, usage),
    prepare(args) {
      const values = readValues(spec.options, args);
      return values.ok ? ok((context) => spec.run(context, values.value)) : values;
    },
  };
}

function readValues<O extends Readonly<Record<string, Option<unknown>>>>(
  options: O,
  args: readonly string[],
): Result<OptionValues<O>, string[]> {
  const given = splitArgs(options, args);
  if (!given.ok) return given;
  const problems: string[] = [];
  const values: Record<string, unknown> = {};
  for (const [name, option] of Object.entries(options)) {
    const shown = option.kind === 'operand' ? option.placeholder : `--${name}`;
    const texts = given.value[name] ?? [];
    const read = texts.length > 1 ? fail('is given more than once') : option.read(texts[0]);
    if (read.ok) values[name] = read.value;
    else problems.push(`${shown} ${read.error}`);
  }
  // Each value was read by the option of its name, which is what OptionValues says.
  return problems.length > 0 ? fail(problems) : ok(values as OptionValues<O>);
}

/** The texts given for each option. node:util reports the first argument that fits no option. */
function splitArgs(
  options: Readonly<Record<string, Option<unknown>>>,
  args: readonly string[],
): Result<Record<string, string[]>, string[]> {
  const named = Object.entries(options).filter(([, option]) => option.kind !== 'operand');
  const operand = Object.entries(options).find(([, option]) => option.kind === 'operand')?.[0];
  try {
    const { values, positionals } = parseArgs({
      args: [...args],
      strict: true,
      allowPositionals: operand !== undefined,
      options: Object.fromEntries(
        named.map(([name, { kind }]) => [
          name,
          { type: kind === 'flag' ? 'boolean' : 'string', multiple: true },
        ]),
      ),
    });
    const texts = Object.entries(values).map(([name, list]) => [name, [list].flat().map(String)] as const);
    return ok({ ...Object.fromEntries(texts), ...(operand !== undefined && { [operand]: positionals }) });
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    if (error instanceof Error && code.startsWith('ERR_PARSE_ARGS')) return fail([error.message]);
    throw error;
  }
}

function helpText(spec: CommandSpec<Readonly<Record<string, Option<unknown>>>>, usage: string): string {
  const lines = mapOptions(spec.options, (name, option) => {
    const label =
      option.kind === 'operand' ? option.placeholder : `--${[name, option.placeholder].join(' ').trim()}`;
    return `  ${label.padEnd(LABEL_WIDTH)} ${option.help}`;
  });
  const notes = spec.notes === undefined ? [] : ['', ...spec.notes];
  return [`usage: ${usage}`, '', spec.summary, ...(lines.length > 0 ? ['', ...lines] : []), ...notes].join(
    '\n',
  );
}

const LABEL_WIDTH = 20;

function mapOptions<T>(
  options: Readonly<Record<string, Option<unknown>>>,
  map: (name: string, option: Option<unknown>) => T,
): T[] {
  return Object.entries(options).map(([name, option]) => map(name, option));
}
