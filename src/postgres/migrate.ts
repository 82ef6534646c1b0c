import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Sql, Tx } from './sql.ts';
import { sqlState } from './sqlErrors.ts';

/** Logs a message, with details as fields. */
export type Log = (message: string, fields?: object) => void;

interface Migration {
  readonly name: string;
  readonly text: string;
  readonly checksum: string;
}

const FOLDER = fileURLToPath(new URL('../../sql', import.meta.url));
const FILE_NAME = /^(\d{4}_[a-z0-9_]+)\.sql$/;
/** The id of the advisory lock. It must be the same in every version of this service. */
const LOCK_ID = 7_215_081_946;
const LOCK_WAIT = '10min';
const LOCK_NOT_AVAILABLE = '55P03';
/** The first migration of versions before the first release, whose files became one. */
const BEFORE_RELEASE = '0001_base';

/**
 * Updates the schema: applies the files NNNN_name.sql of the folder in order. Each is one transaction with its row in
 * `schema_migration`, under a lock that other processes wait for. A name in the database without a file belongs to a
 * newer version: pods of the older version may still start while the newer one is rolled out.
 *
 * @returns the names (without .sql) that this call has applied.
 * Throws when a file fails, when an applied file has changed, when a file comes before one that is applied already, when
 * the database is from before the first release, and when another process holds the lock for ten minutes. A file is
 * applied completely or not at all.
 */
export async function migrate(sql: Sql, log: Log, folder: string = FOLDER): Promise<string[]> {
  const migrations = await readMigrations(folder);
  const done: string[] = [];
  for (let round = 0; round <= migrations.length; round++) {
    const startMs = performance.now();
    const name = await sql.begin((tx) => applyNext(tx, migrations, log));
    if (name === null) break;
    log('migrated', { name, tookMs: Math.round(performance.now() - startMs) });
    done.push(name);
  }
  return done;
}

/**
 * Applies the first migration that the database does not have, and returns its name; null when there is none. The lock
 * belongs to the transaction, so it works through a connection pooler too and is always released. The applied
 * migrations are read under it each time, because another process may have applied some.
 */
async function applyNext(tx: Tx, migrations: readonly Migration[], log: Log): Promise<string | null> {
  await takeLock(tx, log);
  await tx`
    create table if not exists schema_migration (
      name text primary key,
      applied_at timestamptz not null default now(),
      checksum text not null
    )`;
  const rows = await tx<{ name: string; checksum: string }[]>`
    select name, checksum from schema_migration order by name`;
  if (rows.some(({ name }) => name === BEFORE_RELEASE)) {
    throw new Error(
      'This database was made by a version before the first release and cannot be upgraded: ' +
        'create a new database, and import devices and areas into it.',
    );
  }
  const [next] = planMigrations(migrations, new Map(rows.map((row) => [row.name, row.checksum])));
  if (next) {
    await apply(tx, next);
    return next.name;
  }
  const known = new Set(migrations.map((migration) => migration.name));
  const unknown = rows.map((row) => row.name).filter((name) => !known.has(name));
  if (unknown.length > 0) log('the database is newer than this version of the service', { unknown });
  return null;
}

/** The migrations of a folder, in order. Throws on an invalid file name, and on a number used twice. */
async function readMigrations(folder: string): Promise<Migration[]> {
  const files = (await readdir(folder)).filter((file) => file.endsWith('.sql')).sort();
  const migrations = await Promise.all(files.map((file) => readMigration(folder, file)));
  migrations.forEach((migration, index) => {
    const before = migrations[index - 1];
    if (before?.name.slice(0, 4) === migration.name.slice(0, 4)) {
      throw new Error(`Two migrations have the same number: ${before.name} and ${migration.name}.`);
    }
  });
  return migrations;
}

async function readMigration(folder: string, file: string): Promise<Migration> {
  const name = FILE_NAME.exec(file)?.[1];
  if (!name) throw new Error(`${file} is not named NNNN_name.sql.`);
  const text = await readFile(join(folder, file), 'utf8');
  // git may write other line ends on some systems
  const checksum = createHash('sha256').update(text.replaceAll('\r\n', '\n')).digest('hex');
  return { name, text, checksum };
}

async function takeLock(tx: Tx, log: Log): Promise<void> {
  const rows = await tx<{ taken: boolean }[]>`select pg_try_advisory_xact_lock(${LOCK_ID}::bigint) as taken`;
  if (rows[0]?.taken) return;
  log('waiting for another process that migrates the database');
  try {
    await tx`select set_config('statement_timeout', '0', true)`;
    await tx`select set_config('lock_timeout', ${LOCK_WAIT}, true)`;
    await tx.unsafe(`select pg_advisory_xact_lock(${LOCK_ID})`);
    await tx`set local lock_timeout to default`; // while a migration waits for a lock, others wait behind it
  } catch (error) {
    if (sqlState(error) !== LOCK_NOT_AVAILABLE) throw error;
    throw new Error(`Another process has been migrating the database for ${LOCK_WAIT}.`, { cause: error });
  }
}

/** The migrations still to apply, given the names and checksums of the applied ones. */
function planMigrations(migrations: readonly Migration[], applied: ReadonlyMap<string, string>): Migration[] {
  const last = [...applied.keys()].sort().at(-1) ?? '';
  return migrations.filter((migration) => {
    const checksum = applied.get(migration.name);
    if (checksum === undefined) {
      if (migration.name > last) return true;
      throw new Error(
        `Migration ${migration.name} is missing in the database, which already has the later ${last}. ` +
          'Migrations only go forward: give it a number after that one.',
      );
    }
    if (checksum === migration.checksum) return false;
    throw new Error(
      `Migration ${migration.name} was changed after it was applied to this database. ` +
        'Restore its file and put the change into a new migration.',
    );
  });
}

async function apply(tx: Tx, migration: Migration): Promise<void> {
  try {
    // A migration may take longer than other statements of the service.
    await tx`select set_config('statement_timeout', '0', true)`;
    await tx.unsafe(migration.text);
    await tx`insert into schema_migration (name, checksum) values (${migration.name}, ${migration.checksum})`;
  } catch (error) {
    throw new Error(`Migration ${migration.name} failed: ${error instanceof Error ? error.message : error}`, {
      cause: error,
    });
  }
}
