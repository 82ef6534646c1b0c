import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** A statement of a file, without the comments before it, and the line that it begins in. */
export interface FileStatement {
  readonly text: string;
  readonly line: number;
}

/** A file NNNN_name.sql, and its steps of NNNN_name.steps.sql if there is one. */
export interface Migration {
  readonly name: string;
  readonly statements: readonly FileStatement[];
  readonly checksum: string;
  readonly steps: readonly Step[];
}

/** A statement that is not in the transaction of its migration. Each can be repeated after it was broken off. */
export type Step = FileStatement &
  (IndexStep | { readonly kind: 'batches' } | { readonly kind: 'statement' });

/** `create index concurrently`, with one space between its words. `definition`: what follows the table. */
export interface IndexStep {
  readonly kind: 'index';
  readonly unique: boolean;
  readonly name: string;
  readonly table: string;
  readonly definition: string;
}

export const MIGRATIONS_FOLDER = fileURLToPath(new URL('../../sql', import.meta.url));
const FILE_NAME = /^(\d{4}_[a-z0-9_]+)\.sql$/;
const STEPS_END = '.steps.sql';
const INDEX =
  /^create (?<unique>unique )?index concurrently (?<name>[a-z0-9_]+) on (?<table>[a-z0-9_]+)\s+(?<definition>\S.*)$/is;
/** An index of a partition has the name of both, which Postgres cuts at 63 bytes. */
const INDEX_NAME_MAX = 36;
const STATEMENTS = [
  /^alter table [a-z0-9_]+ validate constraint [a-z0-9_]+$/i,
  /^drop index concurrently if exists [a-z0-9_]+$/i,
];

/** The migrations of a folder, in order. Throws on an invalid file name or step, and on a number used twice. */
export async function readMigrations(folder: string): Promise<Migration[]> {
  const all = (await readdir(folder)).filter((file) => file.endsWith('.sql')).sort();
  const files = all.filter((file) => !file.endsWith(STEPS_END));
  const migrations = await Promise.all(files.map((file) => readMigration(folder, file, all)));
  migrations.forEach((migration, index) => {
    const before = migrations[index - 1];
    if (before?.name.slice(0, 4) === migration.name.slice(0, 4)) {
      throw new Error(`Two migrations have the same number: ${before.name} and ${migration.name}.`);
    }
  });
  const names = new Set(migrations.map(({ name }) => name));
  const alone = all.find((file) => file.endsWith(STEPS_END) && !names.has(file.slice(0, -STEPS_END.length)));
  if (alone !== undefined) throw new Error(`${alone} has steps of a migration that does not exist.`);
  return migrations;
}

async function readMigration(folder: string, file: string, all: readonly string[]): Promise<Migration> {
  const name = FILE_NAME.exec(file)?.[1];
  if (!name) throw new Error(`${file} is not named NNNN_name.sql.`);
  const text = await readFile(join(folder, file), 'utf8');
  // git may write other line ends on some systems
  const checksum = createHash('sha256').update(text.replaceAll('\r\n', '\n')).digest('hex');
  const stepsFile = `${name}${STEPS_END}`;
  const stepsText = all.includes(stepsFile) ? await readFile(join(folder, stepsFile), 'utf8') : '';
  const steps = splitStatements(stepsText).map((statement) => parseStep(statement, stepsFile));
  return { name, statements: splitStatements(text), checksum, steps };
}

/** Throws on a statement that could not be repeated, or would hold up the service. */
function parseStep(statement: FileStatement, file: string): Step {
  const { unique, name = '', table = '', definition = '' } = INDEX.exec(statement.text)?.groups ?? {};
  if (name !== '' && name.length <= INDEX_NAME_MAX)
    return { ...statement, kind: 'index', unique: unique !== undefined, name, table, definition };
  if (STATEMENTS.some((form) => form.test(statement.text))) return { ...statement, kind: 'statement' };
  if (/^with\s/i.test(statement.text) && statement.text.includes('$1'))
    return { ...statement, kind: 'batches' };
  throw new Error(
    `${file}, line ${statement.line}: a step is create index concurrently with a name of at most ${INDEX_NAME_MAX} ` +
      'characters, alter table … validate constraint, drop index concurrently if exists, or with … $1 for batches of rows.',
  );
}

/** What ends a token of `splitStatements`, if that is not what it begins with. */
const ENDS: Readonly<Record<string, string>> = { '--': '\n', '/*': '*/' };
const BLANK = /^(?:\s+|--[^\n]*|\/\*.*?\*\/)/s;

/**
 * The statements of a file of SQL, in order. Not known here: a quote that a backslash hides (E'\''), a comment inside a
 * comment, and a body without quotes (begin atomic).
 */
export function splitStatements(file: string): FileStatement[] {
  const statements: FileStatement[] = [];
  let line = 1;
  let start = 0;
  const end = (at: number): void => {
    let rest = file.slice(start, at);
    for (let blank = BLANK.exec(rest); blank !== null; blank = BLANK.exec(rest)) {
      line += countLines(blank[0]);
      rest = rest.slice(blank[0].length);
    }
    if (rest !== '') statements.push({ text: rest.trimEnd(), line });
    line += countLines(rest);
    start = at + 1;
  };
  // A semicolon, or the beginning of what may hold one that ends no statement: a comment, a string, a name, a body.
  const token = /;|--|\/\*|'|"|\$(?:[a-z_]\w*)?\$/gi;
  for (let found = token.exec(file); found !== null; found = token.exec(file)) {
    const [text] = found;
    if (text === ';') {
      end(found.index);
      continue;
    }
    const close = ENDS[text] ?? text;
    const closedAt = file.indexOf(close, token.lastIndex);
    if (closedAt === -1) break;
    token.lastIndex = closedAt + close.length;
  }
  end(file.length);
  return statements;
}

function countLines(text: string): number {
  return text.split('\n').length - 1;
}
