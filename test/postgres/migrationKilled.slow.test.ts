import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { openSql, type Sql } from '../../src/postgres/sql.ts';
import { childEnv } from '../support/childEnv.ts';
import { putFewRows } from '../support/postgres/fewRows.ts';
import type { Death } from '../support/postgres/migrateProcess.ts';
import { createDatabase } from '../support/postgres/postgres.ts';
import { seededRandom } from '../support/seededRandom.ts';
import { PROJECT } from '../support/service.ts';
import { IS_TORTURE } from '../support/torture.ts';
import { waitFor } from '../support/waitFor.ts';

const SEED = Number(process.env['FLEET_SEED'] ?? (IS_TORTURE ? Date.now() % 1_000_000 : 1));
const KILLS = 5;
const POINTS = IS_TORTURE ? 1_000_000 : 10_000;
const KILL_WITHIN_MS = 3_000;

/** Migrations after those of this project, of every kind. */
const LATER = {
  '9001_columns.sql': `
    alter table position add weight integer;
    alter table device add length integer;
    alter table device add constraint named check (name <> '') not valid;
    create table tag (device_id bigint references device, tag text);`,
  '9001_columns.steps.sql': `
    alter table device validate constraint named;
    create index concurrently device_plate on device (plate);
    create index concurrently position_received on position (received_at);
    with batch as (select id from device where id > coalesce($1::bigint, 0) order by id limit 2),
    written as (
      update device d set length = coalesce(d.length, 0) + length(d.imei) from batch where batch.id = d.id)
    select max(id)::text as position from batch;`,
  '9002_more.sql': `
    create function nothing() returns trigger language plpgsql as $$ begin return null; end $$;
    create trigger nothing after insert on tag for each statement execute function nothing();
    alter index device_plate rename to device_by_plate;`,
  '9002_more.steps.sql': `
    drop index concurrently if exists device_by_plate;
    create index concurrently fleet_event_area on fleet_event (area_id) where area_id is not null;`,
};

let folder: string;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'fleet-sql-'));
  await cp(join(PROJECT, 'sql'), folder, { recursive: true });
  for (const [name, text] of Object.entries(LATER)) await writeFile(join(folder, name), text);
});
after(() => rm(folder, { recursive: true }));

/** A database of this version with a few rows. */
async function open(t: TestContext): Promise<{ url: string; sql: Sql }> {
  const { url, drop } = await createDatabase();
  const sql = openSql(url, { maxConnections: 1, name: 'test' });
  t.after(async () => {
    await sql.end();
    await drop();
  });
  await putFewRows(sql);
  return { url, sql };
}

/** Migrates in a process of its own until it ends. Resolves to what it has printed; null: it was killed. */
function migrateAside(
  url: string,
  dieAt?: number,
  death?: Death,
  killAfterMs?: number,
): Promise<string | null> {
  const file = join(PROJECT, 'test/support/postgres/migrateProcess.ts');
  const args = [
    '--import',
    join(PROJECT, 'src/node24.mjs'),
    file,
    url,
    folder,
    ...(dieAt ? [String(dieAt), String(death)] : []),
  ];
  const child = spawn(process.execPath, args, { env: childEnv(), stdio: ['ignore', 'pipe', 'inherit'] });
  let said = '';
  child.stdout.on('data', (data) => {
    said += data;
  });
  if (killAfterMs !== undefined) void sleep(killAfterMs).then(() => child.kill('SIGKILL'));
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) => {
      if (signal === 'SIGKILL') resolve(null);
      else if (code === 0) resolve(said);
      else reject(new Error(`the migration ended with code ${code}`));
    });
  });
}

/** Everything that the catalog says of the schema, and the rows that batches write. */
async function stateOf(sql: Sql): Promise<unknown> {
  const [row] = await sql`
    select
      (select jsonb_agg(x order by x.name) from (
        select c.oid::regclass::text as name, relkind, relispartition, jsonb_object_agg(a.attname,
          format_type(a.atttypid, a.atttypmod) || a.attnotnull || a.attnum) as columns
        from pg_class c join pg_attribute a on a.attrelid = c.oid and attnum > 0 and not attisdropped
        where relnamespace = 'public'::regnamespace group by c.oid) x) as relations,
      (select jsonb_agg(x order by x.definition) from (
        select pg_get_indexdef(indexrelid) as definition, indisvalid, (select inhparent::regclass::text from pg_inherits
          where inhrelid = indexrelid) as parent
        from pg_index join pg_class c on c.oid = indexrelid where relnamespace = 'public'::regnamespace) x) as indexes,
      (select jsonb_agg(x order by x.name, x.owner) from (
        select conname as name, conrelid::regclass::text as owner, pg_get_constraintdef(oid) as definition, convalidated
        from pg_constraint where connamespace = 'public'::regnamespace) x) as constraints,
      (select jsonb_agg(proname || md5(prosrc) order by proname, prosrc) from pg_proc
        where pronamespace = 'public'::regnamespace) as functions,
      (select jsonb_agg(tgrelid::regclass || tgname order by tgrelid::regclass::text, tgname) from pg_trigger
        where not tgisinternal) as triggers,
      (select jsonb_agg(name order by name) from schema_migration) as migrations,
      (select jsonb_agg(migration || ' ' || step order by migration, step) from migration_step
        where done_at is not null) as steps,
      (select jsonb_agg(imei || ' ' || length order by id) from device) as devices`;
  return row;
}

/** Waits until the sessions of processes that were killed have ended, and none has left a lock. */
async function proveUnlocked(sql: Sql): Promise<void> {
  await waitFor(async () => {
    const rows =
      await sql`select from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`;
    return rows.count === 0;
  });
  const locks = await sql`
    select from pg_locks l join pg_database d on d.oid = l.database
    where datname = current_database() and pid <> pg_backend_pid()`;
  const prepared = await sql`select from pg_prepared_xacts`;
  assert.equal(locks.count + prepared.count, 0);
}

describe('a process that migrates is killed', () => {
  test(`at ${IS_TORTURE ? 'every statement' : `${KILLS} statements`}, and the next one goes on (seed ${SEED})`, async (t) => {
    const calm = await open(t);
    const statements = Number(await migrateAside(calm.url));
    const expected = await stateOf(calm.sql);
    assert.ok(statements > 50, `${statements} statements`);
    const all = Array.from({ length: statements }, (_, n) => n + 1).flatMap((at) => [
      { at, death: 'under way' as const },
      { at, death: 'answered' as const },
    ]);
    const random = seededRandom(SEED);
    const some = Array.from(
      { length: KILLS },
      () => all[Math.floor(random() * all.length)] as (typeof all)[0],
    );
    for (const { at, death } of IS_TORTURE ? all : some) {
      const { url, sql } = await open(t);
      const where = `statement ${at} of ${statements}, ${death}`;
      assert.equal(await migrateAside(url, at, death), null, where);
      assert.notEqual(await migrateAside(url), null, where);
      assert.deepEqual(await stateOf(sql), expected, where);
      await proveUnlocked(sql);
    }
  });

  test(`again and again at any moment with ${POINTS} points, and it ends (seed ${SEED})`, async (t) => {
    const calm = await open(t);
    await migrateAside(calm.url);
    const expected = await stateOf(calm.sql);
    const { url, sql } = await open(t);
    await sql.unsafe(`
      set statement_timeout = 0;
      insert into position select 1000 + n / 10000, timestamptz '2026-03-09' + n % 10000 * interval '1 minute', 1, 1, 0, 0, 0, 0
      from generate_series(1, ${POINTS}) n`);
    const random = seededRandom(SEED);
    let kills = 0;
    // Each has longer than the one before, so that one of them comes to the end.
    for (let limitMs = KILL_WITHIN_MS; ; limitMs *= 1.2) {
      if ((await migrateAside(url, undefined, undefined, limitMs * random())) !== null) break;
      kills++;
    }
    t.diagnostic(`${kills} kills`);
    assert.deepEqual(await stateOf(sql), expected);
    await proveUnlocked(sql);
  });
});
