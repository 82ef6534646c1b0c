import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Overloaded } from '../../src/lib/fairSemaphore.ts';
import { openConnections, SqlShares } from '../../src/postgres/connections.ts';
import { PostgresHosts } from '../../src/postgres/hosts.ts';
import { ServerKnowledge } from '../../src/postgres/serverEntry.ts';
import { openPool, openSql, type Sql } from '../../src/postgres/sql.ts';
import { sqlState } from '../../src/postgres/sqlErrors.ts';
import { createDatabase } from '../support/postgres/postgres.ts';
import { waitFor } from '../support/waitFor.ts';

const NAME = 'test shares';
const SHARES = { perKey: 2, waitingPerKey: 4, waiting: 10 };
const open = (statementLimitMs = 30_000) =>
  openPool(new PostgresHosts(url), { name: NAME, maxConnections: 3, statementLimitMs });

let url: string;
let sql: Sql;

before(async () => {
  ({ url } = await createDatabase());
  sql = openSql(url, { maxConnections: 2, name: 'test' });
  await sql`create table thing (id int)`;
});
after(() => sql.end());

/** Nobody can read the table until the returned function is called. */
async function lockThings(): Promise<() => Promise<unknown>> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const locked = Promise.withResolvers<void>();
  const held = sql.begin(async (tx) => {
    await tx`lock table thing in access exclusive mode`;
    locked.resolve();
    await promise;
  });
  await locked.promise;
  return () => {
    resolve();
    return held;
  };
}

const connections = async (): Promise<number> =>
  (await sql`select 1 from pg_stat_activity where application_name = ${NAME}`).length;

describe('connections that are shared', () => {
  test('are never all taken by one key, whose surplus holds none', async () => {
    const pool = open();
    const shares = new SqlShares<string>(pool, SHARES);
    const unlock = await lockThings();
    const stuck = Array.from({ length: 4 }, () => shares.of('large')`select 1 from thing`);
    const all = Promise.all(stuck);
    await waitFor(async () => (await connections()) === 2);
    for (let n = 0; n < 5; n++) assert.equal((await shares.of('other')`select 1`).length, 1);
    assert.equal(await shares.of('third').begin(async (tx) => (await tx`select 1`).length), 1);
    assert.equal(await connections(), 3, 'two of the one that is stuck, one for all others');
    await unlock();
    assert.equal((await all).length, 4);
    await pool.end();
  });

  test('refuse what is too much for one key, and not what others ask', async () => {
    const pool = open();
    const shares = new SqlShares<string>(pool, SHARES);
    const unlock = await lockThings();
    const large = shares.of('large');
    const stuck = Promise.all(Array.from({ length: 6 }, () => large.begin((tx) => tx`select 1 from thing`)));
    await assert.rejects(() => large`select 1`, Overloaded);
    await assert.rejects(() => large.begin((tx) => tx`select 1`), Overloaded);
    assert.equal((await shares.of('other')`select 1`).length, 1);
    await unlock();
    await stuck;
    assert.equal((await large`select 1`).length, 1, 'its share is free again');
    await pool.end();
  });

  test('give a place back after a failure, and end a statement at its limit', async () => {
    const codes: string[] = [];
    const pool = open(500);
    const shares = new SqlShares<string>(pool, { ...SHARES, perKey: 1, onError: (code) => codes.push(code) });
    const asked = shares.of('large');
    for (let n = 0; n < 3; n++) {
      await assert.rejects(
        () => asked`select pg_sleep(30)`,
        (error) => sqlState(error) === '57014',
      );
    }
    await assert.rejects(
      asked.begin(() => Promise.reject(new Error('changed my mind'))),
      /changed my mind/,
    );
    assert.equal((await asked`select 1`).length, 1);
    assert.deepEqual(
      codes,
      ['57014', '57014', '57014'],
      'what Postgres has refused is told, and nothing else',
    );
    await pool.end();
  });
});

test('connections that callers and senders wait for are opened before they come', async () => {
  const all = openConnections(new PostgresHosts(url), new ServerKnowledge());
  await all.open({ reads: true, ingest: true });
  const opened = await sql<{ name: string; count: number }[]>`
    select application_name as name, count(*)::int as count from pg_stat_activity
    where datname = current_database() and application_name like 'fleet %' group by 1 order by 1`;
  assert.deepEqual(
    opened.map(({ name, count }) => [name, count]),
    [
      ['fleet ingest', 6],
      ['fleet reads', 6],
    ],
  );
  assert.deepEqual(
    all.use().filter(({ idle }) => idle > 0),
    [
      { task: 'ingest', max: 6, used: 0, idle: 6, waiting: 0 },
      { task: 'reads', max: 6, used: 0, idle: 6, waiting: 0 },
    ],
  );
  await all.end();
});

test('connections tell how they are used, what waits, and which errors there were', async () => {
  const codes: string[] = [];
  const all = openConnections(new PostgresHosts(url), new ServerKnowledge(), (code) => codes.push(code));
  const unlock = await lockThings();
  const stuck = [
    ...Array.from({ length: 4 }, () => all.reads.of(7)`select 1 from thing`),
    ...Array.from({ length: 5 }, () => all.access`select 1 from thing`),
  ];
  const waiting = Promise.all(stuck);
  await waitFor(async () => (await blocked()) === 5);
  const used = new Map(all.use().map(({ task, used, waiting }) => [task, [used, waiting]]));
  assert.deepEqual(used.get('reads'), [2, 2]);
  assert.deepEqual(used.get('access'), [3, 2]);
  assert.deepEqual(used.get('writes'), [0, 0]);
  await unlock();
  await waiting;
  await assert.rejects(async () => all.service`select 1 / 0`);
  await assert.rejects(all.writes.of(7).begin(async (tx) => tx`select nothing`));
  assert.deepEqual(codes, ['22012', '42703']);
  await all.end();
  const nowhere = openConnections(
    new PostgresHosts('postgres://x@127.0.0.1:1/x'),
    new ServerKnowledge(),
    (code) => codes.push(code),
  );
  await assert.rejects(async () => nowhere.service`select 1`);
  assert.deepEqual(codes.slice(2), ['unreachable']);
  await nowhere.end();
});

/** Sessions of the service that wait for a lock. */
async function blocked(): Promise<number> {
  const waiting = await sql`
    select 1 from pg_stat_activity where application_name like 'fleet %' and wait_event_type = 'Lock'
      and datname = current_database()`;
  return waiting.length;
}
