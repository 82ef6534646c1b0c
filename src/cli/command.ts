import { type Command as Parser, Option as ParserOption } from 'commander';
import { type WriteScope, writeWorlds } from '../changelog/writeWorlds.ts';
import type { AdminConfig } from '../config.ts';
import { fail, ok, type Result } from '../lib/result.ts';
import type { Sql } from '../postgres/sql.ts';
import { type Account, selectAccount } from '../tenants/accounts.sql.ts';
import type { Session } from './session.ts';

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

/** All that a command may use of the world outside. */
export interface CommandContext {
  readonly config: AdminConfig;
  /** Opens a session while `work` runs. Fails when no database is available. */
  withSession<T>(work: (session: Session) => Promise<Result<T, string>>): Promise<Result<T, string>>;
  /**
   * Writes a value on stdout, as one line of JSON; resolves when the next may be written. False when the reader
   * has ended, as behind `| head`.
   */
  print(value: unknown): Promise<boolean>;
  /** One line of progress, on stderr. */
  say(line: string): void;
  readonly stdin: AsyncIterable<Uint8Array>;
  /** Reads a line from the terminal without echo; empty if the user enters none. Null when stdin is not a terminal. */
  readonly askSecret: ((prompt: string) => Promise<string>) | null;
  /** Aborted by Ctrl-C: long work ends as soon as it can and reports what it did. */
  readonly interrupted: AbortSignal;
  nowMs(): number;
}

/** Rows of one read: neither the command nor Postgres holds more of a long list at a time. */
export const PAGE_ROWS = 1_000;

/**
 * Prints every row of a list, one JSON line each, reading page after page. `selectAfter` reads the page behind a row, of
 * at most PAGE_ROWS; null: the first one. `shown` says what is printed of a row.
 */
export async function printPages<Row>(
  { print, interrupted }: CommandContext,
  selectAfter: (row: Row | null) => Promise<readonly Row[]>,
  shown: (row: Row) => unknown = (row) => row,
): Promise<CommandOutcome> {
  let last: Row | null = null;
  for (;;) {
    const page: readonly Row[] = await selectAfter(last);
    for (const row of page) {
      if (interrupted.aborted) return fail('interrupted; the list is not complete');
      if (!(await print(shown(row)))) return ok(undefined);
    }
    last = page.at(-1) ?? null;
    if (page.length < PAGE_ROWS) return ok(undefined);
  }
}

/** Runs `work` with the account of an address, or with null without an address. */
export function withAccount(
  context: CommandContext,
  email: string | undefined,
  work: (sql: Sql, account: Account | null) => Promise<CommandOutcome>,
): Promise<CommandOutcome> {
  return context.withSession(async ({ sql }) => {
    if (email === undefined) return work(sql, null);
    const account = await sql.begin((tx) => selectAccount(tx, email, 'share'));
    return account === undefined ? unknownAccount(email) : work(sql, account);
  });
}

/** Runs `work` in a transaction. When this returns, what it changed holds on every pod. */
export function write(
  context: CommandContext,
  work: (scope: WriteScope) => Promise<CommandOutcome>,
): Promise<CommandOutcome> {
  return context.withSession((session) => writeWorlds(session, work));
}

export function unknownAccount(email: string): Result<never, string> {
  return fail(`there is no account ${email}; add it with account:create`);
}

/** One option, flag or operand of a command, and how its text becomes a value. */
interface Option<T> {
  readonly kind: 'option' | 'flag' | 'operand';
  /** Names the value in the usage line: "E", "a,b"; empty for a flag. */
  readonly placeholder: string;
  readonly isOptional: boolean;
  readonly help: string;
  /** Takes undefined when it was not given. The error completes the sentence "--name …". */
  parse(text: string | undefined): Result<T, string>;
}

type Options = Readonly<Record<string, Option<unknown>>>;

/** The values that a set of options gives, by their names. */
type OptionValues<O> = { readonly [K in keyof O]: O[K] extends Option<infer T> ? T : never };

type ParseText<T> = (text: string) => Result<T, string>;

export function required<T>(placeholder: string, help: string, parse: ParseText<T>): Option<T> {
  return { kind: 'option', placeholder, isOptional: false, help, parse: unlessMissing(parse) };
}

export function optional<T>(placeholder: string, help: string, parse: ParseText<T>): Option<T | undefined> {
  return {
    kind: 'option',
    placeholder,
    isOptional: true,
    help,
    parse: (text) => (text === undefined ? ok(undefined) : parse(text)),
  };
}

export function flag(help: string): Option<boolean> {
  return { kind: 'flag', placeholder: '', isOptional: true, help, parse: (text) => ok(text !== undefined) };
}

/** The one argument without a name. */
export function operand<T>(placeholder: string, help: string, parse: ParseText<T>): Option<T> {
  return { kind: 'operand', placeholder, isOptional: false, help, parse: unlessMissing(parse) };
}

function unlessMissing<T>(parse: ParseText<T>): Option<T>['parse'] {
  return (text) => (text === undefined ? fail('is missing') : parse(text));
}
