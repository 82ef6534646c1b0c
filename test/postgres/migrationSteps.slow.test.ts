import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { migrate } from '../../src/postgres/migrate.ts';
import { readMigrations } from '../../src/postgres/migrationFiles.ts';
import { runSteps, stepsWork } from '../../src/postgres/migrationSteps.ts';
import type { Sql } from '../../src/postgres/sql.ts';
import { isUnavailable } from '../../src/postgres/sqlErrors.ts';
import { holdTransaction } from '../support/postgres/holdTransaction.ts';
import { type Files, makeFolder, openEmpty } from '../support/postgres/migrationFolder.ts';
import { waitFor } from '../support/waitFor.ts';

const FIRST = {
  '0001_tables.sql': `
    create table vehicle (id int primary key, name text);
    create table fix (id int, at int) partition by range (at);
    create table fix_1 partition of fix for values from (0) to (1000);
    create table fix_rest partition of fix default;`,
};
const ROWS = `
  insert into vehicle select n, 'v' || n from generate_series(1, 1000) n;
  insert into fix select n, n from generate_series(1, 2000) n;`;
const COLUMN = { '0002_length.sql': 'alter table vehicle add length int;' };
const INDEX = { '0002_length.steps.sql': 'create index concurrently vehicle_name on vehicle (name);' };
const PARTS = { '0002_length.steps.sql': 'create index concurrently fix_id on fix (id) where id > 0;' };
const BATCHES = {
  '0002_length.steps.sql': `
    with batch as (select id from vehicle where id > coalesce($1::int, 0) order by id limit 300),
    written as (update vehicle v set length = coalesce(v.length, 0) + length(v.name) from batch where batch.id = v.id)
    select max(id)::text as position from batch;`,
};

const quiet = (): void => undefined;

interface Run {
  readonly rest?: (ms: number) => Promise<unknown>;
  readonly stopped?: AbortSignal;
}

/** A database with rows whose migrations are applied, and whose steps are not. */
async function openUpgraded(t: TestContext, files: Files, clients = 2) {
  const sqls = await openEmpty(t, clients);
  const [sql, other] = sqls as [Sql, Sql];
  const folder = await makeFolder(t, FIRST);
  await migrate(sql, quiet, folder);
  await sql.unsafe(ROWS);
  for (const [name, text] of Object.entries({ ...COLUMN, ...files }))
    await writeFile(join(folder, name), text);
  assert.deepEqual(await migrate(sql, quiet, folder), ['0002_length']);
  const waiting: number[] = [];
  const run = async ({ rest = async () => undefined, stopped = new AbortController().signal }: Run = {}) => {
    const ports = { sql, log: quiet, rest, onWaiting: (steps: number) => void waiting.push(steps) };
    return runSteps(await readMigrations(folder), ports, stopped);
  };
  return { sql, other, folder, run, waiting };
}

/** Whether an index is valid; null: there is none. */
async function isValid(sql: Sql, index: string): Promise<boolean | null> {
  const [row] = await sql<{ valid: boolean }[]>`
    select indisvalid as valid from pg_index where indexrelid = to_regclass(${index})`;
  return row?.valid ?? null;
}

async function lockCount(sql: Sql): Promise<number> {
  const rows = await sql`
    select from pg_locks where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())`;
  return rows.count;
}

/** Begins to make an index, which waits for a transaction that is held; `end` ends that one. */
async function beginIndex(t: TestContext) {
  const upgraded = await openUpgraded(t, INDEX);
  const { sql, other, run } = upgraded;
  const end = await holdTransaction(other, (tx) => tx`update vehicle set name = 'w' where id = 1`);
  const stop = new AbortController();
  const running = run({ stopped: stop.signal });
  const backend = async (): Promise<number | undefined> => {
    const [row] = await sql<{ pid: number }[]>`
      select pid from pg_stat_activity
      where datname = current_database() and query like 'create index%' and wait_event_type = 'Lock'`;
    return row?.pid;
  };
  running.catch(() => undefined); // the test looks at it later
  await waitFor(async () => (await backend()) !== undefined);
  return { ...upgraded, end, running, stop: () => stop.abort(), pid: (await backend()) as number };
}

describe('steps of a migration', () => {
  test('are done at once in a database that was empty', async (t) => {
    const [sql] = (await openEmpty(t)) as [Sql];
    const folder = await makeFolder(t, { ...FIRST, ...COLUMN, ...PARTS });
    assert.deepEqual(await migrate(sql, quiet, folder), ['0001_tables', '0002_length']);
    assert.equal(await isValid(sql, 'fix_id'), true);
    const ports = { sql, log: quiet, rest: async () => undefined, onWaiting: quiet };
    assert.equal(await runSteps(await readMigrations(folder), ports, new AbortController().signal), 0);
  });

  test('are left to the pods in one with data; once done they are not done again', async (t) => {
    const { sql, run, waiting } = await openUpgraded(t, INDEX);
    assert.equal(await isValid(sql, 'vehicle_name'), null);
    assert.equal(await run(), 0);
    assert.equal(await isValid(sql, 'vehicle_name'), true);
    assert.deepEqual(waiting, [1, 0, 0]);
    await sql`drop index vehicle_name`;
    assert.equal(await run(), 0);
    assert.equal(await isValid(sql, 'vehicle_name'), null);
    assert.equal(await lockCount(sql), 0);
  });

  test('are finished before a later migration, which may need them', async (t) => {
    const { sql, folder } = await openUpgraded(t, INDEX);
    await writeFile(join(folder, '0003_name.sql'), 'alter index vehicle_name rename to vehicle_by_name;');
    assert.deepEqual(await migrate(sql, quiet, folder), ['0003_name']);
    assert.equal(await isValid(sql, 'vehicle_by_name'), true);
  });

  test('are done by one process at a time', async (t) => {
    const { run, running, end } = await beginIndex(t);
    assert.equal(await run(), 1, 'the other one has it');
    await end();
    assert.equal(await running, 0);
    assert.equal(await run(), 0);
  });

  test('validate a constraint', async (t) => {
    const step = { '0002_length.steps.sql': 'alter table vehicle validate constraint named' };
    const { sql, run } = await openUpgraded(t, {
      '0002_length.sql': "alter table vehicle add constraint named check (name <> '') not valid;",
      ...step,
    });
    assert.equal(await run(), 0);
    const rows = await sql`select convalidated as valid from pg_constraint where conname = 'named'`;
    assert.deepEqual([...rows], [{ valid: true }]);
  });

  test('that fail say which line it is, and the error', async (t) => {
    const step = {
      '0002_length.steps.sql': '\ncreate unique index concurrently u on vehicle (length(name))',
    };
    const { sql, run, waiting } = await openUpgraded(t, step);
    await assert.rejects(
      run(),
      /step in line 2 of migration 0002_length failed: .*could not create unique index/,
    );
    assert.deepEqual(waiting, [1]);
    assert.equal(await lockCount(sql), 0);
  });
});

describe('a pod', () => {
  test('runs steps when it is started, and after one that fails by itself none until the next start', async (t) => {
    const { sql, folder } = await openUpgraded(t, {
      '0002_length.steps.sql': 'create unique index concurrently u on vehicle (length(name));',
    });
    const failures: unknown[] = [];
    const waiting: number[] = [];
    const ports = {
      sql,
      log: quiet,
      rest: async () => undefined,
      onWaiting: (steps: number) => void waiting.push(steps),
    };
    const begin = () => {
      const work = stepsWork(ports, (error) => failures.push(error), folder);
      t.after(() => work.stop());
      return work;
    };
    const first = begin();
    first.wake();
    await waitFor(() => failures.length > 0);
    await sql`delete from vehicle where id > 1`;
    first.wake();
    await waitFor(() => waiting.length === 2);
    assert.equal(await isValid(sql, 'u'), false);
    assert.deepEqual(waiting, [1, 1]);
    begin().wake();
    await waitFor(() => waiting.at(-1) === 0);
    assert.equal(await isValid(sql, 'u'), true);
    assert.equal(failures.length, 1);
    // The pod that has failed hears of it: its metric does not hold up the next upgrade.
    const told = waiting.length;
    first.wake();
    await waitFor(() => waiting.length > told);
    assert.equal(waiting.at(-1), 0);
  });
});

describe('an index', () => {
  test('of a table with partitions is made in each, also in one that comes meanwhile', async (t) => {
    const { sql, run } = await openUpgraded(t, PARTS);
    // It is there when the step begins the second partition.
    await sql.unsafe('create index fix_id on only fix (id) where id > 0');
    await sql.unsafe('create table fix_new (like fix including all)');
    await sql.unsafe('alter table fix attach partition fix_new for values from (5000) to (6000)');
    assert.equal(await isValid(sql, 'fix_id'), false);
    assert.equal(await run(), 0);
    assert.equal(await isValid(sql, 'fix_id'), true);
    const rows = await sql`select from pg_inherits where inhparent = 'fix_id'::regclass`;
    assert.equal(rows.count, 3);
  });

  test('that was broken off is made anew', async (t) => {
    const { sql, other, running, run, end, pid } = await beginIndex(t);
    await other`select pg_terminate_backend(${pid}::int)`;
    await assert.rejects(running, isUnavailable);
    assert.equal(await isValid(sql, 'vehicle_name'), false);
    await end();
    assert.equal(await run(), 0);
    assert.equal(await isValid(sql, 'vehicle_name'), true);
  });

  test('whose process stops is finished by Postgres, and the next process finds it so', async (t) => {
    const { sql, running, run, end, stop } = await beginIndex(t);
    stop();
    assert.equal(await running, 1);
    assert.equal(await run(), 1, 'the session of the stopped process still has the lock');
    await end();
    await waitFor(async () => (await run()) === 0);
    assert.equal(await isValid(sql, 'vehicle_name'), true);
    assert.equal(await lockCount(sql), 0);
  });
});

describe('rows', () => {
  test('are written in batches with rests, each once, and go on where they were broken off', async (t) => {
    const { sql, run } = await openUpgraded(t, BATCHES);
    let rests = 0;
    const rest = async (): Promise<void> => {
      if (++rests === 2) throw new Error('broken off');
    };
    await assert.rejects(run({ rest }), /broken off/);
    const written = async () => (await sql`select from vehicle where length is not null`).count;
    assert.equal(await written(), 600);
    assert.equal(await run(), 0);
    assert.equal(await written(), 1000);
    const rows = await sql`select from vehicle where length <> length(name)`;
    assert.equal(rows.count, 0, 'none is written twice');
  });
});

describe('a folder is refused', () => {
  const refused: [string, Files, RegExp][] = [
    [
      'with a step that stops writers',
      { '0002_length.steps.sql': 'select 1; create index i on vehicle (name)' },
      /line 1: a step is/,
    ],
    [
      'with a step that may have taken effect half',
      { '0002_length.steps.sql': '\nupdate vehicle set length = 1' },
      /line 2: a step is/,
    ],
    [
      'with an index whose name is too long',
      { '0002_length.steps.sql': `create index concurrently ${'i'.repeat(37)} on vehicle (name)` },
      /36 characters/,
    ],
    [
      'with steps of no migration',
      { '0003_x.steps.sql': 'drop index concurrently if exists i' },
      /0003_x.steps.sql has steps of a migration that does not exist/,
    ],
  ];
  for (const [name, files, message] of refused)
    test(name, async (t) => {
      await assert.rejects(readMigrations(await makeFolder(t, { ...FIRST, ...COLUMN, ...files })), message);
    });
});
