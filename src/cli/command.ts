import { type Command as Parser, Option as ParserOption } from 'commander';
import type { Result } from '../lib/result.ts';
import type { CommandContext } from './context.ts';
import type { Option, Options, OptionValues } from './option.ts';

/** What a command prints on success, as JSON; undefined when it has printed all. The error says what to do next. */
export type CommandOutcome = Result<unknown, string>;

/** A command line that was understood. */
export type PreparedCommand = (context: CommandContext) => Promise<CommandOutcome>;

export interface FleetCommand {
  readonly name: string;
  /** Its options: "--email E [--name N]". */
  readonly usage: string;
  /** Adds the parser of its arguments, which calls `run` when all of them are right. */
  addTo(program: Parser, run: (command: PreparedCommand) => Promise<void>): Parser;
}

interface CommandSpec<O extends Options> {
  readonly name: string;
  readonly summary: string;
  readonly options: O;
  /** Lines below the options in the help. */
  readonly notes?: readonly string[];
  run(context: CommandContext, values: OptionValues<O>): Promise<CommandOutcome>;
}

export function defineCommand<O extends Options>(spec: CommandSpec<O>): FleetCommand {
  const { name, summary, options, notes = [] } = spec;
  const usage = usageOf(options);
  return {
    name,
    usage,
    addTo(program, run) {
      const parser = program.command(name).description(summary).usage(usage);
      parser.addHelpText('after', notes.map((line) => `\n${line}`).join(''));
      for (const [optionName, option] of Object.entries(options)) addOption(parser, optionName, option);
      return parser.action(async () => {
        const values = parseValues(parser, options);
        await run((context) => spec.run(context, values));
      });
    },
  };
}

/** Every text of an option is collected and none is required here: parseValues reports all errors together. */
function addOption(parser: Parser, name: string, { kind, placeholder, help }: Option<unknown>): void {
  const collect = (text: string, earlier: string[] = []) => [...earlier, text];
  if (kind === 'operand') parser.argument(`[${placeholder}]`, help);
  else if (kind === 'flag') parser.option(`--${kebabCase(name)}`, help);
  else parser.addOption(new ParserOption(`--${kebabCase(name)} <${placeholder}>`, help).argParser(collect));
}

/** The value of every option. Ends the parsing with all errors, one a line. */
function parseValues<O extends Options>(parser: Parser, options: O): OptionValues<O> {
  const errors: string[] = [];
  const values: Record<string, unknown> = {};
  for (const [name, option] of Object.entries(options)) {
    const label = option.kind === 'operand' ? option.placeholder : `--${kebabCase(name)}`;
    const texts = textsOf(parser, name, option);
    const value = option.parse(texts[0]);
    if (texts.length > 1) errors.push(`${label} is given more than once`);
    else if (value.ok) values[name] = value.value;
    else errors.push(`${label} ${value.error}`);
  }
  if (errors.length > 0) parser.error(errors.join('\n'));
  // Each value was parsed by the option of its name, which is what OptionValues says.
  return values as OptionValues<O>;
}

function textsOf(parser: Parser, name: string, { kind }: Option<unknown>): string[] {
  if (kind === 'operand') return parser.args;
  const given: unknown = parser.opts()[name];
  if (kind === 'flag') return given === true ? [''] : [];
  return (given as string[] | undefined) ?? [];
}

/** Which options there are and which may be left out: commander itself would write "[options]". */
function usageOf(options: Options): string {
  const words = Object.entries(options).map(([name, { kind, placeholder, isOptional }]) => {
    if (kind === 'operand') return placeholder;
    const word = kind === 'flag' ? `--${kebabCase(name)}` : `--${kebabCase(name)} ${placeholder}`;
    return isOptional ? `[${word}]` : word;
  });
  return words.join(' ');
}

/** `dryRun` → `dry-run`; commander stores the value under the name in camel case. */
function kebabCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}
