import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { openSql, type Sql } from '../../src/postgres/sql.ts';
import { putFewRows } from '../support/postgres/fewRows.ts';
import { faultsOf, TABLE_SIZES } from '../support/postgres/migrationFaults.ts';
import { createDatabase } from '../support/postgres/postgres.ts';

const FOLDER = join(import.meta.dirname, '../../sql');
const BASE = '0001_schema.sql';

/** All of its migrations are applied, and each table that can be large has a few rows. */
let sql: Sql;
let drop: () => Promise<void>;
before(async () => {
  const database = await createDatabase();
  drop = database.drop;
  sql = openSql(database.url, { maxConnections: 1, name: 'test' });
  await putFewRows(sql);
});
after(async () => {
  await sql.end();
  await drop();
});

/** What is said of a migration, which is rolled back. */
async function trial(file: string): Promise<string[]> {
  let faults: string[] = [];
  const rolledBack = sql.begin(async (tx) => {
    faults = await faultsOf(tx, file);
    throw new Error('tried');
  });
  await assert.rejects(rolledBack, /tried/);
  return faults;
}

describe('tables', () => {
  test('are each listed as large or small in sql/table_sizes.json', async () => {
    const rows = await sql<{ name: string }[]>`
      select relname as name from pg_class
      where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition`;
    const names = rows.map(({ name }) => name).sort();
    assert.deepEqual([...TABLE_SIZES.large, ...TABLE_SIZES.small].sort(), names);
  });

  test('that can be large have rows where migrations are tried', async () => {
    for (const table of TABLE_SIZES.large)
      assert.ok((await sql.unsafe(`select from ${table} limit 1`)).count > 0, table);
  });
});

describe('a migration holds up the service for no longer than a change of the catalog takes', () => {
  test('each one of this project', async (t) => {
    const empty = await createDatabase(t, { empty: true });
    const base = openSql(empty.url, { maxConnections: 1, name: 'test' });
    t.after(() => base.end());
    await base.unsafe(readFileSync(join(FOLDER, BASE), 'utf8'));
    await putFewRows(base);
    const files = readdirSync(FOLDER).filter((file) => file.endsWith('.sql') && file > BASE);
    for (const file of files.sort()) {
      const text = readFileSync(join(FOLDER, file), 'utf8');
      assert.deepEqual(await base.begin((tx) => faultsOf(tx, text)), [], file);
    }
  });

  test('passes: not null, which a valid constraint already proves', async (t) => {
    await sql`alter table command add constraint typed check (type is not null)`;
    t.after(() => sql`alter table command drop constraint typed`);
    await sql`alter table command alter type drop not null`;
    assert.deepEqual(await trial('alter table command alter type set not null;'), []);
  });

  const good: [string, string][] = [
    [
      'a new table',
      'create table thing (id bigint primary key references device); create index on thing (id);',
    ],
    [
      'a new column',
      "alter table position add weight integer; alter table device add color text not null default '';",
    ],
    [
      'a constraint that is not valid yet',
      "alter table device add constraint c check (name <> '') not valid;",
    ],
    [
      'a foreign key that is not valid yet',
      'alter table row_box add foreign key (device_id) references device not valid;',
    ],
    ['an index that its partitions do not have yet', 'create index on only fleet_event (device_id);'],
    [
      'a trigger, a function, a default',
      `
      create function f() returns trigger language plpgsql as $$ begin return null; end $$;
      create trigger t after insert on webhook_delivery for each statement execute function f();
      alter table command alter type set default 'reboot';`,
    ],
    ['a longer text, and a larger number of digits', 'alter table command alter type type varchar;'],
    ['a column that goes', 'alter table fleet_event drop column message;'],
    [
      'rows of small tables, and small tables written anew',
      `
      update plan set max_areas = 1; alter table account add at timestamptz default clock_timestamp();
      create index on account (plan);`,
    ],
    [
      'large tables that are read before anything is held',
      `
      create temporary table n as select count(*) from position; alter table position add weight integer;`,
    ],
  ];
  for (const [name, file] of good)
    test(`passes: ${name}`, async () => {
      assert.deepEqual(await trial(file), []);
    });

  const bad: [string, string, RegExp][] = [
    [
      'a column whose values differ',
      'alter table device add at timestamptz default clock_timestamp();',
      /line 1 writes device anew/,
    ],
    [
      'the same in a table with partitions',
      'alter table position add at float default random();',
      /writes position anew/,
    ],
    ['another type', 'alter table row_box alter south type real;', /writes row_box anew/],
    ['a type that is only checked', 'alter table command alter type type varchar(20);', /command/],
    ['an order of the rows', 'cluster device using device_pkey;', /writes device anew/],
    [
      'an index',
      'select 1;\ncreate index on device (name);',
      /line 2 reads device and holds device meanwhile.*concurrently/,
    ],
    [
      'an index of partitions',
      'create index on webhook_delivery (event_id);',
      /reads webhook_delivery and holds webhook_delivery/,
    ],
    ['a unique constraint', 'alter table device add unique (plate);', /reads device and holds device/],
    [
      'not null',
      'alter table device alter world_id drop not null; alter table device alter world_id set not null;',
      /reads device and holds device/,
    ],
    [
      'a constraint',
      "alter table area add constraint c check (name <> '');",
      /reads area and holds area.*not valid/,
    ],
    [
      'a foreign key',
      'alter table row_box add foreign key (device_id) references device;',
      /reads device,row_box and holds device,row_box/,
    ],
    [
      'a constraint validated under the lock of its addition',
      `
      alter table area add constraint c check (name <> '') not valid;
      alter table area validate constraint c;`,
      /line 3 reads area and holds area/,
    ],
    [
      'rows of a large table',
      'delete from late_point;',
      /writes rows of late_point in one transaction.*batches/,
    ],
    [
      'a large table read while a small one is held',
      'alter table plan add n bigint; update plan set n = (select count(*) from position);',
      /reads position and holds plan/,
    ],
    ['a table emptied', 'truncate row_box;', /writes row_box anew/],
    [
      'an index beside the service, which cannot be in a transaction',
      'create index concurrently on device (name);',
      /line 1 cannot be in a transaction.*steps/,
    ],
    ['a table packed', 'vacuum full device;', /cannot be in a transaction/],
  ];
  for (const [name, file, fault] of bad)
    test(`refuses: ${name}`, async () => {
      assert.match((await trial(file)).join('\n'), fault);
    });
});
