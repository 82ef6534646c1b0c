import { appendFileSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client, type QueryResult } from 'pg';
import { migrate } from '../../../src/postgres/migrate.ts';
import { readMigrations } from '../../../src/postgres/migrationFiles.ts';
import { runSteps } from '../../../src/postgres/migrationSteps.ts';
import { openSql } from '../../../src/postgres/sql.ts';
import type { Kill } from './killedMigration.ts';

/**
 * When the process kills itself: with a statement under way, which Postgres then does to its end; when it is answered; or once
 * Postgres, too, was made to break it off, as when both are on a machine that fails.
 */
export type Death = 'under way' | 'answered' | 'broken off';

// A process of its own: node migrateProcess.ts <url> <folder> <Kill or null> applies the migrations of a folder and all steps,
// and prints how many statements that were.
const [url, folder, how] = process.argv.slice(2) as [string, string, string];
const kill = JSON.parse(how) as Kill | null;
const POLL_MS = 20;
/** What looks whether a long statement is at work. */
const LOOK = /pg_backend_pid|pg_stat_activity/;
const INDEX = /^create (?:unique )?index concurrently \w+ on (?<table>\w+)/;
const quiet = (): void => undefined;
const sql = openSql(url, { maxConnections: 2, name: 'migrating' });
const choose = await chooser();
let statements = 0;
const die = (): void => void process.kill(process.pid, 'SIGKILL');
const { query } = Client.prototype;
Client.prototype.query = function (this: Client, ...args: unknown[]) {
  const [given] = args as [string | { text: string }];
  const text = typeof given === 'string' ? given : given.text;
  const send = () => Reflect.apply(query, this, args);
  if (LOOK.test(text)) return send();
  statements++;
  const death = choose(text);
  if (death === 'broken off') return breakOff(text, send) as never;
  const answer = send();
  if (death === 'under way') setImmediate(die);
  if (death === 'answered') (answer as unknown as Promise<unknown>).then(die, die);
  return answer;
} as typeof query;

await migrate(sql, quiet, folder);
const ports = { sql, log: quiet, rest: async () => undefined, onWaiting: quiet };
const migrations = await readMigrations(folder);
// Of a process that was killed before, Postgres may not have ended the statement yet.
while ((await runSteps(migrations, ports, new AbortController().signal)) > 0) await sleep(POLL_MS);
await sql.end();
console.log(statements);

/** Makes an index, which is left behind invalid: it waits for a writer of its table, until its session is ended. */
async function breakOff(text: string, send: () => Promise<unknown>): Promise<void> {
  const holder = new Client(url);
  const ask = (question: string): Promise<QueryResult> => Reflect.apply(query, holder, [question]);
  await holder.connect();
  await ask(`begin; lock table ${INDEX.exec(text)?.groups?.['table']} in row exclusive mode`);
  send().catch(quiet);
  const end = `
    select pg_terminate_backend(pid) from pg_stat_progress_create_index join pg_index on indexrelid = index_relid
    where datname = current_database() and not indisvalid`;
  while ((await ask(end)).rowCount === 0) {
    await sleep(POLL_MS);
    // What it says of other sessions stays the same in a transaction, also that nobody makes an index yet.
    await ask('select pg_stat_clear_snapshot()');
  }
  die();
}

/** Decides with which statement to die, and how. */
async function chooser(): Promise<(text: string) => Death | null> {
  if (kill === null) return () => null;
  if ('at' in kill) return () => (statements === kill.at ? kill.death : null);
  // A statement is named by its text and the one before it, and a commit also by how much was done when the process started.
  const died = new Set(readFileSync(kill.unless, 'utf8').split('\n'));
  const [row] = await sql<{ done: number }[]>`
    select (select count(*) from schema_migration) + (select count(*) from migration_step where done_at is not null) as done`;
  let before = '';
  return (text) => {
    const place = JSON.stringify([text === 'commit' ? row?.done : null, before, text]);
    before = text;
    // Broken off first: what Postgres has done to its end is not begun again.
    const ways = [...(INDEX.test(text) ? ['broken off' as const] : []), 'under way', 'answered'] as const;
    const death = ways.find((way) => !died.has(`${way} ${place}`));
    if (death !== undefined) appendFileSync(kill.unless, `${death} ${place}\n`);
    return death ?? null;
  };
}
