import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { migrate } from '../../src/postgres/migrate.ts';
import type { Sql } from '../../src/postgres/sql.ts';
import { isUnavailable } from '../../src/postgres/sqlErrors.ts';
import { holdTransaction } from '../support/postgres/holdTransaction.ts';
import { type Files, makeFolder, openEmpty } from '../support/postgres/migrationFolder.ts';

const FIRST = { '0001_vehicles.sql': 'create table vehicle (id int); insert into vehicle values (1);' };
const SECOND = { '0002_names.sql': "alter table vehicle add name text; update vehicle set name = 'a';" };

async function open(t: TestContext): Promise<Sql> {
  const [sql] = await openEmpty(t);
  assert.ok(sql);
  return sql;
}

const quiet = (): void => undefined;

async function appliedNames(sql: Sql): Promise<unknown[]> {
  const rows = await sql`select name from schema_migration order by name`;
  return rows.map((row) => row['name']);
}

describe('migrating a database', () => {
  test('applies the files in order, once, and then only what was added', async (t) => {
    const sql = await open(t);
    const folder = await makeFolder(t, { ...FIRST, 'README.md': 'not a migration' });
    assert.deepEqual(await migrate(sql, quiet, folder), ['0001_vehicles']);
    assert.deepEqual(await migrate(sql, quiet, folder), []);
    await writeFile(join(folder, '0002_names.sql'), SECOND['0002_names.sql']);
    assert.deepEqual(await migrate(sql, quiet, folder), ['0002_names']);
    assert.deepEqual([...(await sql`select id, name from vehicle`)], [{ id: 1, name: 'a' }]);
    assert.deepEqual(await appliedNames(sql), ['0001_vehicles', '0002_names']);
  });

  test('applies the files of this project', async (t) => {
    const sql = await open(t);
    const names = await migrate(sql, quiet);
    assert.equal(names[0], '0001_schema');
    assert.deepEqual(await appliedNames(sql), names);
  });

  test('is done once by several pods that start at the same instant', async (t) => {
    const sqls = await openEmpty(t, 3);
    const slow = { '0003_slow.sql': 'select pg_sleep(0.2); create table slow ();' };
    const folder = await makeFolder(t, { ...FIRST, ...SECOND, ...slow });
    const results = await Promise.all(sqls.map((sql) => migrate(sql, quiet, folder)));
    assert.deepEqual(results.flat().sort(), ['0001_vehicles', '0002_names', '0003_slow']);
    const [sql] = sqls;
    assert.ok(sql);
    assert.deepEqual([...(await sql`select id, name from vehicle`)], [{ id: 1, name: 'a' }]);
  });

  test('leaves nothing of a file that fails, keeps what came before it, and goes on once it is mended', async (t) => {
    const sql = await open(t);
    const broken = { '0002_names.sql': 'create table half_done ();\nselect 1 / 0;' };
    const folder = await makeFolder(t, { ...FIRST, ...broken });
    await assert.rejects(migrate(sql, quiet, folder), /0002_names failed in line 2: division by zero/);
    assert.deepEqual(await appliedNames(sql), ['0001_vehicles']);
    assert.deepEqual([...(await sql`select to_regclass('half_done') as found`)], [{ found: null }]);
    await writeFile(join(folder, '0002_names.sql'), SECOND['0002_names.sql']);
    assert.deepEqual(await migrate(sql, quiet, folder), ['0002_names']);
  });

  test('leaves the lock to the next one after a failure', async (t) => {
    const [first, second] = await openEmpty(t, 2);
    assert.ok(first && second);
    const broken = await makeFolder(t, { '0001_vehicles.sql': 'nonsense' });
    await assert.rejects(migrate(first, quiet, broken), /0001_vehicles failed/);
    const logged: string[] = [];
    await migrate(second, (message) => logged.push(message), await makeFolder(t, FIRST));
    assert.deepEqual(logged, ['migrated'], 'it did not have to wait');
  });

  test('waits for a table that others have locked, and they go on meanwhile', async (t) => {
    const [sql, other] = await openEmpty(t, 2);
    assert.ok(sql && other);
    await migrate(sql, quiet, await makeFolder(t, FIRST));
    const end = await holdTransaction(other, (tx) => tx`select from vehicle`);
    const gaveWay = Promise.withResolvers<void>();
    const logged: string[] = [];
    const log = (message: string): void => {
      logged.push(message);
      gaveWay.resolve();
    };
    const migrated = migrate(sql, log, await makeFolder(t, { ...FIRST, ...SECOND }));
    await gaveWay.promise;
    assert.deepEqual(
      [...(await other`select id from vehicle`)],
      [{ id: 1 }],
      'the lock is held all the time',
    );
    await end();
    assert.deepEqual(await migrated, ['0002_names']);
    assert.deepEqual(logged, [
      'waiting for a table that a migration changes and another transaction has locked',
      'migrated',
    ]);
  });

  test('says that Postgres was lost as any statement does, so that the start waits for it and tries again', async (t) => {
    const sql = await open(t);
    const lost = {
      '0002_names.sql': 'create table half_done (); select pg_terminate_backend(pg_backend_pid());',
    };
    await assert.rejects(migrate(sql, quiet, await makeFolder(t, { ...FIRST, ...lost })), isUnavailable);
    assert.deepEqual(await appliedNames(sql), ['0001_vehicles']);
    assert.deepEqual(await migrate(sql, quiet, await makeFolder(t, { ...FIRST, ...SECOND })), ['0002_names']);
  });

  test('may take longer than a statement of the service, which is again limited afterwards', async (t) => {
    const sql = await open(t);
    const folder = await makeFolder(t, {
      '0001_vehicles.sql': "create table seen as select current_setting('statement_timeout') as value;",
    });
    await migrate(sql, quiet, folder);
    assert.deepEqual([...(await sql`select value from seen`)], [{ value: '0' }]);
    const limits = await Promise.all(
      [1, 2].map(() => sql`select current_setting('statement_timeout') as value`),
    );
    assert.deepEqual(
      limits.map((rows) => rows[0]?.['value']),
      ['30s', '30s'],
    );
  });

  test('refuses a database from before the first release, says what to do, and leaves it as it is', async (t) => {
    const sql = await open(t);
    await migrate(sql, quiet, await makeFolder(t, FIRST));
    await sql`update schema_migration set name = '0001_base'`;
    await assert.rejects(migrate(sql, quiet), /before the first release .* create a new database/);
    assert.deepEqual(await appliedNames(sql), ['0001_base']);
    assert.deepEqual([...(await sql`select to_regclass('account') as found`)], [{ found: null }]);
  });

  test('lets an older version of the service start on the database of a newer one', async (t) => {
    const sql = await open(t);
    await migrate(sql, quiet, await makeFolder(t, { ...FIRST, ...SECOND }));
    const logged: [string, object | undefined][] = [];
    const older = await makeFolder(t, FIRST);
    assert.deepEqual(await migrate(sql, (...line) => logged.push([line[0], line[1]]), older), []);
    assert.deepEqual(logged, [
      ['the database is newer than this version of the service', { unknown: ['0002_names'] }],
    ]);
  });

  test('does not mind other line ends in a file that was applied', async (t) => {
    const sql = await open(t);
    await migrate(sql, quiet, await makeFolder(t, { '0001_vehicles.sql': 'select 1;\nselect 2;\n' }));
    const folder = await makeFolder(t, { '0001_vehicles.sql': 'select 1;\r\nselect 2;\r\n' });
    assert.deepEqual(await migrate(sql, quiet, folder), []);
  });

  const rejected: [string, Files, RegExp][] = [
    [
      'a changed file',
      { '0001_vehicles.sql': 'select 1;', ...SECOND },
      /0001_vehicles was changed after it was applied/,
    ],
    [
      'a file that belongs before an applied one',
      { ...FIRST, '0000_early.sql': 'select 1;', ...SECOND },
      /0000_early .* the later 0002_names/,
    ],
    [
      'two files of one number',
      { ...FIRST, '0002_x.sql': 'select 1;', ...SECOND },
      /same number: 0002_names and 0002_x/,
    ],
    ['a name without a number', { ...FIRST, ...SECOND, 'extra.sql': 'select 1;' }, /extra\.sql is not named/],
  ];
  for (const [name, files, message] of rejected) {
    test(`refuses ${name}, and applies nothing then`, async (t) => {
      const sql = await open(t);
      await migrate(sql, quiet, await makeFolder(t, { ...FIRST, ...SECOND }));
      const folder = await makeFolder(t, { ...files, '0003_more.sql': 'create table more ();' });
      await assert.rejects(migrate(sql, quiet, folder), message);
      assert.deepEqual(await appliedNames(sql), ['0001_vehicles', '0002_names']);
    });
  }
});
