import { setTimeout as sleep } from 'node:timers/promises';
import { type FileStatement, MIGRATIONS_FOLDER, type Migration, readMigrations } from './migrationFiles.ts';
import {
  finishSteps,
  isLocked,
  LOCK_NOT_AVAILABLE,
  LOCK_PAUSE_MS,
  LOCK_TRIES,
  LOCK_TRY,
  selectWaiting,
} from './migrationSteps.ts';
import type { Sql, Tx } from './sql.ts';
import { isUnavailable, sqlState } from './sqlErrors.ts';

/** Logs a message, with details as fields. */
export type Log = (message: string, fields?: object) => void;

/** The id of the advisory lock. It must be the same in every version of this service. */
const LOCK_ID = 7_215_081_946;
const LOCK_WAIT = '10min';
/** The first migration of versions before the first release, whose files became one. */
const BEFORE_RELEASE = '0001_base';

/**
 * Updates the schema: applies the files NNNN_name.sql of the folder in order. Each is one transaction with its row in
 * `schema_migration`, under a lock that other processes wait for. A name in the database without a file belongs to a
 * newer version: pods of the older version may still start while the newer one is rolled out. The steps of a migration are
 * left to the pods that run, unless the database was empty or a later migration is to be applied.
 *
 * @returns the names (without .sql) that this call has applied.
 * Throws when a file fails, when an applied file has changed, when a file comes before one that is applied already, when
 * the database is from before the first release, and when another process holds the lock, or the lock of a table, for
 * ten minutes. A file is applied completely or not at all.
 */
export async function migrate(sql: Sql, log: Log, folder: string = MIGRATIONS_FOLDER): Promise<string[]> {
  const migrations = await readMigrations(folder);
  const done: string[] = [];
  for (let round = 0; round <= 2 * migrations.length; round++) {
    const startMs = performance.now();
    const name = await applyNext(sql, migrations, done, log);
    if (name === null) break;
    if (name === STEPS_FIRST) {
      await finishSteps(migrations, sql, log);
      continue;
    }
    log('migrated', { name, tookMs: Math.round(performance.now() - startMs) });
    done.push(name);
  }
  return done;
}

const STEPS_FIRST = 'steps first';

/**
 * Applies the first migration that the database does not have, and returns its name; null when there is none. While others
 * hold the lock of a table that it needs, it tries again and again. `done`: what this process has applied before.
 */
async function applyNext(
  sql: Sql,
  migrations: readonly Migration[],
  done: readonly string[],
  log: Log,
): Promise<string | null> {
  for (let tries = 1; ; tries++) {
    try {
      return await sql.begin(async (tx) => {
        await takeLock(tx, log);
        // With the lock, so that of several processes that wait for the same table only one tries at a time.
        if (tries > 1) await sleep(LOCK_PAUSE_MS);
        return applyNextIn(tx, migrations, done, log);
      });
    } catch (error) {
      if (!isLocked(error)) throw error;
      if (tries === LOCK_TRIES)
        throw new Error('A table that a migration changes has been locked for ten minutes.', {
          cause: error,
        });
      if (tries === 1) log('waiting for a table that a migration changes and another transaction has locked');
    }
  }
}

/**
 * The lock belongs to the transaction, so it works through a connection pooler too and is always released. The applied
 * migrations are read under it each time, because another process may have applied some.
 */
async function applyNextIn(
  tx: Tx,
  migrations: readonly Migration[],
  done: readonly string[],
  log: Log,
): Promise<string | null> {
  await tx`
    create table if not exists schema_migration (
      name text primary key,
      applied_at timestamptz not null default now(),
      checksum text not null
    )`;
  await tx`
    create table if not exists migration_step (
      migration text not null,
      step integer not null,
      position text,
      done_at timestamptz,
      primary key (migration, step)
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
    if ((await selectWaiting(tx, migrations)).length > 0) return STEPS_FIRST;
    await apply(tx, next);
    if (rows.every(({ name }) => done.includes(name))) await applySteps(tx, next);
    return next.name;
  }
  const known = new Set(migrations.map((migration) => migration.name));
  const unknown = rows.map((row) => row.name).filter((name) => !known.has(name));
  if (unknown.length > 0) log('the database is newer than this version of the service', { unknown });
  return null;
}

async function takeLock(tx: Tx, log: Log): Promise<void> {
  const rows = await tx<{ taken: boolean }[]>`select pg_try_advisory_xact_lock(${LOCK_ID}::bigint) as taken`;
  if (rows[0]?.taken) return;
  log('waiting for another process that migrates the database');
  try {
    await tx`select set_config('statement_timeout', '0', true)`;
    await tx`select set_config('lock_timeout', ${LOCK_WAIT}, true)`;
    await tx.unsafe(`select pg_advisory_xact_lock(${LOCK_ID})`);
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
  // A migration may take longer than other statements of the service.
  await tx`select set_config('statement_timeout', '0', true), set_config('lock_timeout', ${LOCK_TRY}, true)`;
  for (const statement of migration.statements) await run(tx, migration, statement);
  await tx`insert into schema_migration (name, checksum) values (${migration.name}, ${migration.checksum})`;
}

/** In an empty database the steps run in the same transaction: without rows none takes long. */
async function applySteps(tx: Tx, migration: Migration): Promise<void> {
  for (const [n, step] of migration.steps.entries()) {
    if (step.kind !== 'batches')
      await run(tx, migration, { ...step, text: step.text.replace(/\bconcurrently\s/i, '') });
    await tx`insert into migration_step (migration, step, done_at) values (${migration.name}, ${n + 1}, now())`;
  }
}

async function run(tx: Tx, { name }: Migration, { text, line }: FileStatement): Promise<void> {
  try {
    await tx.unsafe(text);
  } catch (error) {
    if (isUnavailable(error)) throw error;
    const reason = error instanceof Error ? error.message : error;
    throw new Error(`Migration ${name} failed in line ${line}: ${reason}`, { cause: error });
  }
}
