import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from 'pg';
import { migrate } from '../../../src/postgres/migrate.ts';
import { readMigrations } from '../../../src/postgres/migrationFiles.ts';
import { runSteps } from '../../../src/postgres/migrationSteps.ts';
import { openSql } from '../../../src/postgres/sql.ts';

/** When the process kills itself: with the n-th statement under way, or when it is answered. */
export type Death = 'under way' | 'answered';

// A process of its own: node migrateProcess.ts <url> <folder> [<n> <death>] applies the migrations of a folder and all steps,
// and prints how many statements that were.
const [url, folder, dieAt, death] = process.argv.slice(2) as [string, string, string?, Death?];
const POLL_MS = 20;
let statements = 0;
const die = (): void => void process.kill(process.pid, 'SIGKILL');
const { query } = Client.prototype;
Client.prototype.query = function (this: Client, ...args: unknown[]) {
  const answer = Reflect.apply(query, this, args);
  if (++statements !== Number(dieAt)) return answer;
  if (death === 'under way') setImmediate(die);
  else (answer as unknown as Promise<unknown>).then(die, die);
  return answer;
} as typeof query;

const quiet = (): void => undefined;
const sql = openSql(url, { maxConnections: 2, name: 'migrating' });
await migrate(sql, quiet, folder);
const ports = { sql, log: quiet, rest: async () => undefined, onWaiting: quiet };
const migrations = await readMigrations(folder);
// Of a process that was killed before, Postgres may not have ended the statement yet.
while ((await runSteps(migrations, ports, new AbortController().signal)) > 0) await sleep(POLL_MS);
await sql.end();
console.log(statements);
