import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { openSql, type Sql } from '../../src/postgres/sql.ts';
import {
  BESIDE,
  makeLaterMigrations,
  migrateAside,
  proveUnlocked,
  stateOf,
} from '../support/postgres/killedMigration.ts';
import { putManyRows } from '../support/postgres/manyRows.ts';
import { startOwnPostgres } from '../support/postgres/ownPostgres.ts';
import { releaseBefore, unpackVersion } from '../support/release.ts';
import { IS_TORTURE } from '../support/torture.ts';

/** What a database has: FLEET_MIGRATION_POINTS, else so many with torture and few without. Every tenth point made an event. */
const POINTS = Number(process.env['FLEET_MIGRATION_POINTS'] ?? (IS_TORTURE ? 10_000_000 : 0));
const EVENTS = POINTS / 10;
/** Devices a batch of the later migrations writes. */
const BATCH = 400;
const FIRST_RELEASE = '0001_schema.sql';

const seconds = (sinceMs: number): string => `${((performance.now() - sinceMs) / 1_000).toFixed(0)} s`;

/** The migrations of the release before; without one, those of the first. */
async function migrationsBefore(t: TestContext): Promise<string> {
  const ref = await releaseBefore();
  const folder = await unpackVersion(
    (end) => t.after(end),
    ref ?? 'HEAD',
    ref === null ? `sql/${FIRST_RELEASE}` : 'sql',
  );
  return join(folder, 'sql');
}

/** Small writes and reads beside a migration, as pods make them, until `stop`. A statement that fails is not repeated. */
class Beside {
  readonly failures: string[] = [];
  points = 0;
  longestMs = 0;
  longestLockMs = 0;
  readonly #ends: Promise<unknown>;
  readonly #sqls: readonly Sql[];
  #isOver = false;

  constructor(url: string) {
    const open = (name: string) => openSql(url, { maxConnections: 1, name });
    const [work, look] = [open('beside'), open('lock look')];
    this.#sqls = [work, look];
    this.#ends = Promise.all([this.#repeat(() => this.#work(work)), this.#repeat(() => this.#look(look))]);
  }

  async stop(): Promise<void> {
    if (this.#isOver) return;
    this.#isOver = true;
    await this.#ends;
    for (const sql of this.#sqls) await sql.end();
  }

  async #repeat(work: () => Promise<unknown>): Promise<void> {
    while (!this.#isOver) {
      await work().catch((error) => this.failures.push(String(error)));
      await sleep(10);
    }
  }

  async #work(sql: Sql): Promise<void> {
    const statements = [
      () => sql`
        insert into position values
          (0, timestamptz '2026-03-15 23:00' + ${this.points} * interval '1 ms', 1, 1, 0, 40, 90, 8)`,
      () => sql`
        insert into fleet_event (world_id, device_id, device_imei, type, message, data, occurred_at)
        values (1, 1, '350000000000001', 'alarm', ${BESIDE}, '{}', now())`,
      () => sql`update device_state set revision = revision + 1 where device_id = 1`,
      () => sql`select from position where device_id = 1 order by recorded_at desc limit 10`,
      () => sql`select from fleet_event where world_id = 1 order by occurred_at desc, id desc limit 10`,
      () => sql`select from webhook_delivery limit 1`,
    ];
    for (const [n, statement] of statements.entries()) {
      const startMs = performance.now();
      await statement();
      if (n === 0) this.points++;
      this.longestMs = Math.max(this.longestMs, performance.now() - startMs);
    }
  }

  async #look(sql: Sql): Promise<void> {
    const [row] = await sql<{ ms: number | null }[]>`
      select max(extract(epoch from clock_timestamp() - waitstart) * 1000)::float8 as ms
      from pg_locks l join pg_stat_activity a using (pid) where not granted and application_name = 'beside'`;
    this.longestLockMs = Math.max(this.longestLockMs, row?.ms ?? 0);
  }
}

/** Runs `work` with small writes beside it, and sees that all of them are stored. `work` returns what to print. */
async function besides(
  t: TestContext,
  { url, points }: { readonly url: string; readonly points: number },
  name: string,
  work: (sql: Sql) => Promise<string>,
): Promise<void> {
  const startMs = performance.now();
  const sql = openSql(url, { maxConnections: 1, name: 'test', settings: { statement_timeout: '0' } });
  const beside = new Beside(url);
  try {
    const done = await work(sql);
    const took = seconds(startMs);
    await beside.stop();
    assert.deepEqual(beside.failures, [], 'no write or read beside it fails');
    const [row] = await sql<{ count: number }[]>`select count(*) from position`;
    assert.equal(row?.count, points + beside.points, 'points are neither lost nor doubled');
    t.diagnostic(
      `${name}: ${done}, ${took}; ${beside.points} rounds of small writes and reads beside it, ` +
        `the slowest statement took ${beside.longestMs.toFixed(0)} ms, the longest seen wait for a lock ${beside.longestLockMs.toFixed(0)} ms`,
    );
  } finally {
    await beside.stop();
    await sql.end();
  }
}

test(`a process that migrates ${POINTS / 1e6} M points and ${EVENTS / 1e6} M events is killed at every statement, and the next one goes on`, {
  skip: POINTS === 0 && 'it runs with npm run torture -- migrationKilled, or with FLEET_MIGRATION_POINTS',
}, async (t) => {
  const folder = await makeLaterMigrations(BATCH);
  t.after(() => rm(folder, { recursive: true }));
  const postgres = await startOwnPostgres(t, { migrations: await migrationsBefore(t), isLarge: true });
  const { url } = postgres;
  const startMs = performance.now();
  const filling = openSql(url, { maxConnections: 1, name: 'test' });
  const points = await putManyRows(filling, POINTS, EVENTS);
  const [size] = await filling<{ mb: number }[]>`select pg_database_size(current_database()) >> 20 as mb`;
  await filling.end();
  t.diagnostic(`${points} points filled in, ${seconds(startMs)}: ${size?.mb} MB`);
  await postgres.stop();
  await postgres.copyFiles();
  await postgres.start();

  let expected: unknown;
  await besides(t, { url, points }, 'without a kill', async (sql) => {
    const statements = await migrateAside({ url, folder });
    expected = await stateOf(sql);
    return `${statements} statements`;
  });
  await postgres.putFilesBack();

  // Each process is killed at the first statement at which none was, and leaves the rest to the next one.
  const files = await mkdtemp(join(tmpdir(), 'fleet-kills-'));
  t.after(() => rm(files, { recursive: true }));
  const unless = join(files, 'kills');
  await writeFile(unless, '');
  await besides(t, { url, points }, 'killed at each', async (sql) => {
    let kills = 0;
    let brokenOff = 0;
    while ((await migrateAside({ url, folder }, { unless })) === null) {
      kills++;
      const invalid = await sql`
        select from pg_index join pg_class c on c.oid = indexrelid
        where not indisvalid and relkind = 'i' and not exists (
            select from pg_stat_progress_create_index where index_relid = indexrelid)`;
      if (invalid.count > 0) brokenOff++;
      // Where a statement was under way, the next process comes at once, and finds Postgres at work on it.
      if (kills % 2 === 0) await proveUnlocked(sql);
    }
    await proveUnlocked(sql);
    assert.deepEqual(await stateOf(sql), expected);
    const places = (await readFile(unless, 'utf8')).trimEnd().split('\n');
    assert.equal(places.length, kills, 'each place is one kill');
    assert.ok(brokenOff > 0, 'indexes were left behind invalid');
    const texts = new Set(
      places.map((place) => (JSON.parse(place.slice(place.indexOf('['))) as string[])[2]),
    );
    return `${kills} kills at ${texts.size} different statements, ${brokenOff} of which left an invalid index behind`;
  });
});
