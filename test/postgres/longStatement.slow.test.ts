import assert from 'node:assert/strict';
import { after, before, describe, type TestContext, test } from 'node:test';
import { PostgresHosts } from '../../src/postgres/hosts.ts';
import { whileAtWork } from '../../src/postgres/longStatement.ts';
import { openSql, type Sql } from '../../src/postgres/sql.ts';
import { unavailability } from '../../src/postgres/sqlErrors.ts';
import { type Line, openLine } from '../support/line.ts';
import { holdTransaction } from '../support/postgres/holdTransaction.ts';
import { createDatabase } from '../support/postgres/postgres.ts';
import { waitFor } from '../support/waitFor.ts';

let url: string;
let drop: () => Promise<void>;
let sql: Sql;
before(async () => {
  ({ url, drop } = await createDatabase(undefined, { empty: true }));
  sql = openSql(url, { maxConnections: 2, name: 'test' });
});
after(async () => {
  await sql.end();
  await drop();
});

const LOOKS = { everyMs: 20, answerLimitMs: 5_000, inVain: 3 };
const LOOKS_WITHOUT_PATIENCE = { ...LOOKS, answerLimitMs: 100 };

/** A statement that waits for a lock until it is released, on a connection over a line. */
async function startLong(t: TestContext, looks = LOOKS) {
  const release = await holdTransaction(sql, (tx) => tx`select pg_advisory_xact_lock(1)`);
  const line = await openLine(t, Number(new URL(url).port));
  const own = new URL(url);
  own.port = String(line.port);
  const client = new new PostgresHosts(own.href).Client();
  client.on('error', () => undefined);
  await client.connect();
  const { rows } = await client.query('select pg_backend_pid() as pid');
  const result = whileAtWork(
    client,
    rows[0].pid,
    () => client.query('select pg_advisory_xact_lock(1)'),
    looks,
  );
  result.catch(() => undefined); // awaited later
  t.after(() => client.end());
  await waitFor(async () => (await waiters()) === 1);
  return { line, release, result };
}

async function waiters(): Promise<number> {
  return (await sql`select from pg_locks where locktype = 'advisory' and not granted`).length;
}

const haveLooked = (line: Line, times: number) => waitFor(() => line.sessions > times);
const isSilence = (error: unknown) => unavailability(error) === 'no_answer';

describe('a statement without a limit', () => {
  test('is waited for as long as Postgres is at work on it', async (t) => {
    const { line, release, result } = await startLong(t);
    await haveLooked(line, 2 * LOOKS.inVain);
    await release();
    assert.equal((await result).rowCount, 1);
    await waitFor(() => line.open === 1, 'no look is left open');
  });

  test('is given up when Postgres is silent', async (t) => {
    const { line, release, result } = await startLong(t, LOOKS_WITHOUT_PATIENCE);
    line.fallSilent();
    await assert.rejects(result, isSilence);
    assert.equal(line.open, 0, 'the connection is closed');
    await release();
  });

  test('is given up when its connection alone is silent, once Postgres is done with it', async (t) => {
    const { line, release, result } = await startLong(t);
    line.loseAnswers();
    line.heal();
    await haveLooked(line, 2 * LOOKS.inVain);
    await release();
    await assert.rejects(result, isSilence);
  });

  test('fails with the error that Postgres answers', async () => {
    await assert.rejects(sql.unsafe('select 1 / 0'), { code: '22012' });
  });
});
