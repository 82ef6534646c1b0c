import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, type TestContext, test } from 'node:test';
import { Redis } from 'ioredis';
import { selectLogEnd } from '../../src/changelog/database.sql.ts';
import { deletePod, upsertPod } from '../../src/changelog/pods.sql.ts';
import type { Env } from '../../src/config.ts';
import { MIGRATIONS_FOLDER, readMigrations } from '../../src/postgres/migrationFiles.ts';
import { openSql, type Sql } from '../../src/postgres/sql.ts';
import { redisKeys } from '../../src/redis/redisConnection.ts';
import { createDatabase } from '../support/postgres/postgres.ts';
import { skipWithoutRedis, startRedis } from '../support/redis.ts';
import { waitFor } from '../support/waitFor.ts';
import { type FleetRun, runFleet } from './runFleet.ts';

let url: string;
let sql: Sql;
before(async () => {
  url = (await createDatabase()).url;
  sql = openSql(url, { maxConnections: 1, name: 'test' }); // one: a late beat must not follow the removal of its pod
});
after(() => sql.end());

const cursor = () => sql.begin(selectLogEnd);

/** A pod that says all the time that it lives, and follows the feed only when the test says so. */
async function startStandingPod(t: TestContext): Promise<{ follow(): Promise<void> }> {
  const pod = randomUUID();
  let at = await cursor();
  await upsertPod(sql, pod, at);
  const beats = setInterval(() => void upsertPod(sql, pod, at), 200);
  t.after(async () => {
    clearInterval(beats);
    await deletePod(sql, pod);
  });
  return {
    async follow() {
      at = await cursor();
      await upsertPod(sql, pod, at);
    },
  };
}

/** Adds an account beside a pod that follows only once the account is there; the command must have waited for it. */
async function createBesidePod(t: TestContext, email: string, env: Env = {}): Promise<FleetRun> {
  const pod = await startStandingPod(t);
  let isDone = false;
  const run = runFleet(url, `account:create --email ${email} --name A`, { env }).finally(() => {
    isDone = true;
  });
  await waitFor(async () => (await sql`select 1 from account where email = ${email}`).length === 1);
  assert.equal(isDone, false);
  await pod.follow();
  return run;
}

describe('a write beside running pods', () => {
  test('is done only when they have followed it', async (t) => {
    const { code, stderr } = await createBesidePod(t, 'followed@x');
    assert.deepEqual([code, stderr], [0, '']);
  });

  test('does not wait for ever for one that does not follow', async (t) => {
    await startStandingPod(t);
    const { code, stderr } = await runFleet(url, 'account:create --email alone@x --name A');
    assert.equal(code, 0);
    assert.match(stderr, /done, but a running service has not noticed it yet; it will/);
  });
});

describe('with Redis', { skip: skipWithoutRedis() }, () => {
  test('the version of the world is published, and nobody needs to wait', async (t) => {
    const redis = await startRedis(t);
    await startStandingPod(t);
    const env = { REDIS_URL: redis.url };
    const line = 'account:create --email published@x --name A';
    const { code, stderr } = await runFleet(url, line, { env });
    assert.deepEqual([code, stderr], [0, '']);
    const [row] = await sql<{ world: number; version: number; instance: string }[]>`
      select w.id as world, w.version, i.id as instance
      from account a join world w on w.id = a.world_id, instance i where a.email = 'published@x'`;
    assert.ok(row);
    const client = new Redis(redis.url);
    t.after(() => client.disconnect());
    assert.equal(await client.get(`${redisKeys(row.instance).world}${row.world}`), String(row.version));
  });

  test('that does not answer, the pods are waited for as without it', async (t) => {
    const redis = await startRedis(t);
    await redis.stop();
    const { code, stderr } = await createBesidePod(t, 'unpublished@x', { REDIS_URL: redis.url });
    assert.equal(code, 0);
    assert.match(stderr, /^Redis \(REDIS_URL\) does not answer; .*\n$/);
  });
});

describe('a database that cannot be used', () => {
  test('is reported without its password and without a stack trace', async () => {
    for (const [broken, message] of [
      [
        'postgres://fleet:hidden-word@127.0.0.1:1/postgres',
        /the database of DATABASE_URL cannot be used: .*ECONNREFUSED/,
      ],
      [
        new URL('/not_there', url).href,
        /the database of DATABASE_URL cannot be used: database "not_there" does not exist/,
      ],
    ] as const) {
      const { code, stdout, stderr } = await runFleet(broken, 'migrate');
      assert.deepEqual([code, stdout], [1, '']);
      assert.match(stderr, message);
      assert.doesNotMatch(stderr, /hidden-word|\n {4}at /);
    }
  });

  test('by its address is reported before anything is tried', async () => {
    const { code, stderr } = await runFleet('mysql://db', 'migrate');
    assert.deepEqual(
      [code, stderr],
      [1, 'DATABASE_URL must be a URL that starts with postgres:// or postgresql://\n'],
    );
  });
});

describe('migrate', () => {
  test('says what it has applied: everything to an empty database, then nothing', async () => {
    const { url: empty } = await createDatabase(undefined, { empty: true });
    const applied = (await readMigrations(MIGRATIONS_FOLDER)).map(({ name }) => name);
    assert.deepEqual((await runFleet(empty, 'migrate')).json, { applied });
    assert.deepEqual((await runFleet(empty, 'migrate')).json, { applied: [] });
  });

  test('refuses a database from before the first release, and says what to do', async (t) => {
    const { url: old } = await createDatabase(t);
    const own = openSql(old, { maxConnections: 1, name: 'test' });
    await own`update schema_migration set name = '0001_base' where name = '0001_schema'`;
    await own.end();
    const { code, stdout, stderr } = await runFleet(old, 'migrate');
    assert.deepEqual([code, stdout], [1, '']);
    assert.match(
      stderr,
      /^migrate: the database of DATABASE_URL cannot be used: .* create a new database, and import .*\.\n$/,
    );
  });
});
