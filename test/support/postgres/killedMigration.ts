import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { cp, mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Sql } from '../../../src/postgres/sql.ts';
import { childEnv } from '../childEnv.ts';
import { PROJECT } from '../service.ts';
import { waitFor } from '../waitFor.ts';
import type { Death } from './migrateProcess.ts';

/** Migrations after those of this project, of every kind. `batch`: how many rows a batch of them writes. */
const laterFiles = (batch: number) => ({
  '9001_columns.sql': `
    alter table position add weight integer;
    alter table position add constraint position_forward check (speed_kmh >= 0) not valid;
    alter table fleet_event add weight integer;
    alter table device add length integer;
    alter table device add constraint named check (name <> '') not valid;
    create table tag (device_id bigint references device, tag text);`,
  '9001_columns.steps.sql': `
    alter table device validate constraint named;
    alter table position validate constraint position_forward;
    create index concurrently device_plate on device (plate);
    create index concurrently position_received on position (received_at);
    with batch as (select id from device where id > coalesce($1::bigint, 0) order by id limit ${batch}),
    written as (
      update device d set length = coalesce(d.length, 0) + length(d.imei) from batch where batch.id = d.id)
    select max(id)::text as position from batch;
    with batch as (select id from fleet_event where id > coalesce($1::bigint, 0) order by id limit ${100 * batch}),
    written as (
      update fleet_event e set weight = coalesce(e.weight, 0) + 1 from batch where batch.id = e.id)
    select max(id)::text as position from batch;`,
  '9002_more.sql': `
    create function nothing() returns trigger language plpgsql as $$ begin return null; end $$;
    create trigger nothing after insert on tag for each statement execute function nothing();
    alter index device_plate rename to device_by_plate;`,
  '9002_more.steps.sql': `
    drop index concurrently if exists device_by_plate;
    create index concurrently fleet_event_moved on fleet_event (area_id) where area_id is not null;`,
});

/** A folder with the migrations of this project and later ones; the caller removes it. */
export async function makeLaterMigrations(batch: number): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'fleet-sql-'));
  await cp(join(PROJECT, 'sql'), folder, { recursive: true });
  for (const [name, text] of Object.entries(laterFiles(batch))) await writeFile(join(folder, name), text);
  return folder;
}

/** When a process that migrates is killed: with one statement, with the first that a file does not name yet, after a time. */
export type Kill = { readonly at: number; readonly death: Death } | { readonly unless: string };

/** Migrates in a process of its own until it ends. Resolves to how many statements that were; null: it was killed. */
export function migrateAside(
  { url, folder }: { readonly url: string; readonly folder: string },
  kill?: Kill,
  killAfterMs?: number,
): Promise<number | null> {
  const file = join(PROJECT, 'test/support/postgres/migrateProcess.ts');
  const args = ['--import', join(PROJECT, 'src/node24.mjs'), file, url, folder, JSON.stringify(kill ?? null)];
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
      else if (code === 0) resolve(Number(said));
      else reject(new Error(`the migration ended with code ${code}`));
    });
  });
}

/** Everything that the catalog says of the schema, and the rows that batches write. */
export async function stateOf(sql: Sql): Promise<unknown> {
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
      (select jsonb_agg(imei || ' ' || length order by id) from device) as devices,
      (select jsonb_object_agg(weight, count) from (
        select coalesce(weight, 0) as weight, count(*) from fleet_event where message <> ${BESIDE} group by 1) x) as events`;
  return row;
}

/** The message of events that are written while a database is migrated: a batch may come before them or not. */
export const BESIDE = 'Beside a migration';

/** Waits until the sessions of processes that were killed have ended, and none has left a lock. */
export async function proveUnlocked(sql: Sql): Promise<void> {
  await waitFor(async () => {
    const rows = await sql`
      select from pg_stat_activity where datname = current_database() and application_name = 'migrating'`;
    return rows.count === 0;
  });
  const locks = await sql`
    select from pg_locks l join pg_database d on d.oid = l.database
    where datname = current_database() and not exists (select from pg_stat_activity a where a.pid = l.pid)`;
  const prepared = await sql`select from pg_prepared_xacts`;
  assert.equal(locks.count + prepared.count, 0);
}
