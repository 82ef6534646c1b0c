import assert from 'node:assert/strict';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { after, before, describe, type TestContext, test } from 'node:test';
import { DeadlineExceeded } from '../../src/lib/time.ts';
import { listen } from '../../src/postgres/connections.ts';
import { PostgresHosts } from '../../src/postgres/hosts.ts';
import { arrayLiteral, openSql, type Sql, type Tx } from '../../src/postgres/sql.ts';
import { isUnavailable } from '../../src/postgres/sqlErrors.ts';
import { findFreePort } from '../support/ports.ts';
import { createDatabase } from '../support/postgres/postgres.ts';
import { runs } from '../support/torture.ts';
import { waitFor } from '../support/waitFor.ts';

let url: string;
let drop: () => Promise<void>;
let sql: Sql;
/** Not of the pool that is harmed. */
let other: Sql;
before(async () => {
  ({ url, drop } = await createDatabase());
  sql = openSql(url, { maxConnections: 2, name: 'test' });
  other = openSql(url, { maxConnections: 1, name: 'test other' });
  await sql`create table thing (id int primary key)`;
});
after(async () => {
  await Promise.all([sql.end(), other.end()]);
  await drop();
});

async function backendOf(tx: Tx): Promise<number> {
  const [row] = await tx<{ pid: number }[]>`select pg_backend_pid() as pid`;
  return row?.pid ?? 0;
}

const cut = (pid: number) => other`select pg_terminate_backend(${pid}::int)`;
const isGone = async (pid: number) =>
  (await other`select 1 from pg_stat_activity where pid = ${pid}`).length === 0;
const things = async () =>
  (await other<{ id: number }[]>`select id from thing order by id`).map(({ id }) => id);

test('a session has no transaction, and is closed with its settings and locks', async () => {
  const pid = await sql.session(async (own) => {
    await own`select set_config('lock_timeout', '1234ms', false), pg_advisory_lock(1)`;
    const [row] = await own`select current_setting('lock_timeout') as value`;
    assert.deepEqual(row, { value: '1234ms' });
    await own.unsafe('vacuum thing');
    return backendOf(own);
  });
  await waitFor(() => isGone(pid));
  assert.equal((await sql`select 1`).count, 1, 'the pool goes on');
});

test('Postgres asks soon whether a pod that says nothing is still there', async () => {
  const names = [
    'tcp_keepalives_idle',
    'tcp_keepalives_interval',
    'tcp_keepalives_count',
    'tcp_user_timeout',
  ];
  const rows =
    await sql`select current_setting(name) as value from unnest(${arrayLiteral(names)}::text[]) as name`;
  assert.deepEqual(
    rows.map(({ value }) => value),
    ['30', '10', '3', '90000'],
  );
});

describe('a connection is lost in the middle of a transaction', () => {
  const losses: [name: string, work: (tx: Tx, pid: number) => Promise<unknown>][] = [
    [
      'while a statement runs',
      async (tx, pid) => {
        const [slow] = await Promise.allSettled([tx`select pg_sleep(30)`, cut(pid)]);
        if (slow.status === 'rejected') throw slow.reason;
      },
    ],
    [
      'between two statements',
      async (tx, pid) => {
        await cut(pid);
        await waitFor(() => isGone(pid));
        await tx`insert into thing values (2)`;
      },
    ],
    [
      'before the commit',
      async (_tx, pid) => {
        await cut(pid);
        await waitFor(() => isGone(pid));
      },
    ],
    [
      'and the work goes on as if it were not',
      async (tx, pid) => {
        await cut(pid);
        await waitFor(() => isGone(pid));
        for (let n = 3; n < 6; n++) await tx`insert into thing values (${n}::int)`.catch(() => undefined);
      },
    ],
  ];
  for (const [name, work] of losses) {
    test(`${name}: it is refused as unavailable, nothing of it stays, and the pool goes on`, async () => {
      for (let round = 0; round < runs(2); round++) {
        await assert.rejects(
          sql.begin(async (tx) => {
            await tx`insert into thing values (1)`;
            await work(tx, await backendOf(tx));
          }),
          isUnavailable,
        );
        assert.deepEqual(await things(), []);
        assert.deepEqual([...(await sql`select 1 as one`)], [{ one: 1 }]);
      }
    });
  }

  test('while another one waits for its connection: nothing of it runs inside that one', async (t) => {
    const one = openSql(url, { maxConnections: 1, name: 'test one' });
    t.after(() => one.end());
    const lost = one.begin(async (tx) => {
      await tx`insert into thing values (1)`;
      const pid = await backendOf(tx);
      await cut(pid);
      await waitFor(() => isGone(pid));
      await tx`insert into thing values (2)`;
    });
    const next = one.begin(async (tx) => {
      for (const id of [11, 12]) await tx`insert into thing values (${id}::int)`;
    });
    await assert.rejects(lost, isUnavailable);
    await next;
    assert.deepEqual(await things(), [11, 12]);
    await other`delete from thing`;
  });

  test('in the very moment in which it is made: it is refused as unavailable', async (t) => {
    const port = await serveFarewells(t);
    const pool = openSql(`postgres://u:p@127.0.0.1:${port}/d`, { maxConnections: 1, name: 'test' });
    t.after(() => pool.end());
    for (let round = 0; round < 3; round++) {
      await assert.rejects(async () => pool`select 1`, isUnavailable);
      await assert.rejects(
        pool.begin(async (tx) => tx`select 1`),
        isUnavailable,
      );
    }
  });

  test('with a farewell before it closes: nobody gets it after that', async (t) => {
    const server = await serveFarewellLater(t);
    const pool = openSql(server.url, { maxConnections: 1, name: 'test' });
    t.after(() => pool.end());
    for (let round = 1; round <= 3; round++) {
      await assert.rejects(async () => pool`select 1`, isUnavailable);
      assert.equal(server.connections(), round);
    }
  });

  test('while nobody uses it: the next statement goes out on another', async () => {
    const pids = await Promise.all([0, 1].map(() => sql.begin(async (tx) => backendOf(tx))));
    for (const pid of pids) await cut(pid);
    for (const pid of pids) await waitFor(() => isGone(pid));
    await waitFor(async () => {
      try {
        return (await sql`select 1`).length === 1;
      } catch (error) {
        assert.ok(isUnavailable(error));
        return false;
      }
    });
  });
});

describe('a transaction', () => {
  test('is rolled back when its work fails, and says why', async () => {
    const reason = new Error('no');
    const failing = sql.begin(async (tx) => {
      await tx`insert into thing values (1)`;
      throw reason;
    });
    await assert.rejects(failing, reason);
    assert.deepEqual(await things(), []);
  });

  test('is not taken for done when a failed statement was passed over', async () => {
    const careless = sql.begin(async (tx) => {
      await tx`insert into thing values (1)`;
      await tx`select 1 / 0`.catch(() => undefined);
    });
    await assert.rejects(careless, /rolled back/);
    assert.deepEqual(await things(), []);
  });

  test('that waits for another in a circle is ended, and may be tried again', async () => {
    await other`insert into thing values (7), (8)`;
    const bothHold = [Promise.withResolvers<void>(), Promise.withResolvers<void>()] as const;
    const lockBoth = (own: 0 | 1) =>
      sql.begin(async (tx) => {
        await tx`select 1 from thing where id = ${7 + own} for update`;
        bothHold[own].resolve();
        await bothHold[own === 0 ? 1 : 0].promise;
        await tx`select 1 from thing where id = ${8 - own} for update`;
      });
    const outcomes = await Promise.allSettled([lockBoth(0), lockBoth(1)]);
    const errors = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason] : []));
    assert.deepEqual(errors.map(isUnavailable), [true]);
    await other`delete from thing`;
  });
});

describe('Postgres is said to be unavailable', () => {
  test('when nobody listens, when the host is unknown, when time is up', async (t: TestContext) => {
    for (const [host, port] of [
      ['127.0.0.1', await findFreePort()],
      ['no-such-host.invalid', 5432],
    ] as const) {
      const nowhere = openSql(`postgres://u:p@${host}:${port}/d`, { maxConnections: 1, name: 'test' });
      t.after(() => nowhere.end());
      await assert.rejects(async () => nowhere`select 1`, isUnavailable);
      await assert.rejects(
        nowhere.begin(async (tx) => tx`select 1`),
        isUnavailable,
      );
    }
    assert.ok(isUnavailable(new DeadlineExceeded('late')));
  });

  test('when a statement or a lock took too long', async () => {
    const overdue = sql.begin(async (tx) => {
      await tx`set local statement_timeout = 1`;
      await tx`select pg_sleep(1)`;
    });
    await assert.rejects(overdue, isUnavailable);
  });

  test('but not when the question was wrong', async () => {
    await assert.rejects(
      async () => sql`select nothing`,
      (error) => !isUnavailable(error),
    );
    for (const value of [
      null,
      undefined,
      'ECONNREFUSED',
      new Error('ECONNREFUSED'),
      { code: 'ECONNREFUSED' },
    ]) {
      assert.equal(isUnavailable(value), false);
    }
  });
});

test('who listens hears every ring again after the connection was lost', async () => {
  let rings = 0;
  const stop = listen(new PostgresHosts(url), 'channel', () => {
    rings++;
  });
  const listener = async () => {
    const rows = await other<{ pid: number }[]>`
      select pid from pg_stat_activity where datname = current_database() and query = 'listen "channel"'`;
    return rows[0]?.pid;
  };
  await waitFor(() => rings === 1); // the connection is there
  for (let round = 0; round < 2; round++) {
    const before = rings;
    await other`notify channel`;
    await waitFor(() => rings === before + 1);
    const pid = await listener();
    assert.ok(pid);
    await cut(pid);
    await waitFor(() => rings === before + 2); // one for what may have been missed
  }
  await stop();
  await waitFor(async () => (await listener()) === undefined);
});

/** A Postgres that welcomes everybody and shuts down in the same breath; returns its port. */
async function serveFarewells(t: TestContext): Promise<number> {
  return serveSockets(t, (socket) => {
    socket.once('data', () => socket.end(Buffer.concat([WELCOME, FAREWELL])));
  });
}

/** A server that says goodbye to the first statement of each session, and leaves its connection open. */
async function serveFarewellLater(t: TestContext): Promise<{ url: string; connections: () => number }> {
  let connections = 0;
  const port = await serveSockets(t, (socket) => {
    connections++;
    t.after(() => socket.destroy());
    socket.once('data', () => {
      socket.write(WELCOME);
      socket.once('data', () => socket.write(FAREWELL));
    });
  });
  return { url: `postgres://u:p@127.0.0.1:${port}/d`, connections: () => connections };
}

function message(type: string, body: string): Buffer {
  const bytes = Buffer.alloc(5 + body.length);
  bytes.write(type, 'latin1');
  bytes.writeInt32BE(4 + body.length, 1);
  bytes.write(body, 5, 'latin1');
  return bytes;
}

/** PostgreSQL's protocol: authentication passed and ready; an administrator ended the session. */
const WELCOME = Buffer.concat([message('R', '\0\0\0\0'), message('Z', 'I')]);
const FAREWELL = message('E', 'SFATAL\0VFATAL\0C57P01\0Mterminating connection\0\0');

async function serveSockets(t: TestContext, greet: (socket: Socket) => void): Promise<number> {
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    greet(socket);
  });
  t.after(() => server.close());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return (server.address() as AddressInfo).port;
}

test('a named statement is planned once in a session, and goes on when its tables get a column', async () => {
  const one = openSql(url, { maxConnections: 1, name: 'test named' });
  const kept = async () =>
    (
      await one<{ calls: number }[]>`
      select (generic_plans + custom_plans)::int as calls from pg_prepared_statements where name = 'test_named'`
    )[0]?.calls;
  const ask = (on: Tx, id: number) =>
    on<
      { id: number }[]
    >`with all_of as (select * from thing) select ${id}::int as id from (select count(*) from all_of) c`.named(
      'test_named',
    );
  await ask(one, 1);
  assert.deepEqual([...(await ask(one, 2))], [{ id: 2 }]);
  assert.deepEqual([...(await one.begin((tx) => ask(tx, 3)))], [{ id: 3 }]);
  assert.equal(await kept(), 3);
  await other`alter table thing add column more int`;
  assert.deepEqual([...(await ask(one, 4))], [{ id: 4 }]);
  assert.equal(await kept(), 4);
  await one.end();
  await other`alter table thing drop column more`;
});
