import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { openSql, type Sql } from '../../src/postgres/sql.ts';
import { childEnv } from '../support/childEnv.ts';
import type { KilledOutcome, Moment } from '../support/postgres/killedBackend.ts';
import { createDatabase } from '../support/postgres/postgres.ts';
import { IS_TORTURE } from '../support/torture.ts';

const ATTEMPTS_MAX = 30;
const SCRIPT = join(import.meta.dirname, '..', 'support', 'postgres', 'killedBackend.ts');

let url: string;
let drop: () => Promise<void>;
let sql: Sql;
beforeEach(async () => {
  ({ url, drop } = await createDatabase(undefined, { empty: true }));
  sql = openSql(url, { maxConnections: 1, name: 'test' });
  await sql`create table thing (id int)`;
});
afterEach(async () => {
  await sql.end();
  await drop();
});

/** Null: the process ended before it could say anything. */
interface Ended {
  readonly outcome: KilledOutcome | null;
  readonly stderr: string;
  /** What was committed. */
  readonly things: readonly number[];
}

async function killBackend(moment: Moment): Promise<Ended> {
  const { stdout, stderr } = await new Promise<{ stdout: string; stderr: string }>((resolve) => {
    execFile(process.execPath, [SCRIPT, url, moment], { env: childEnv({}) }, (_error, stdout, stderr) =>
      resolve({ stdout, stderr }),
    );
  });
  const rows = await sql<{ id: number }[]>`select id from thing order by id`;
  const outcome = stdout === '' ? null : (JSON.parse(stdout) as KilledOutcome);
  return { outcome, stderr, things: rows.map(({ id }) => id) };
}

// Why `postgres` is not used; ours is tested in sql.slow.test.ts. A version that fails these tests is worth another look.
describe('postgres 3.4.9, when Postgres ends its backend', () => {
  const skip = IS_TORTURE ? false : 'npm run torture does it';

  test('in a transaction: ends the process', { skip }, async () => {
    // Not where it reconnects first, so it may take some attempts.
    let ended = await killBackend('in a transaction');
    for (let n = 1; n < ATTEMPTS_MAX && ended.outcome !== null; n++) {
      ended = await killBackend('in a transaction');
    }
    assert.equal(ended.outcome, null);
    assert.match(ended.stderr, /TypeError: Cannot read properties of null \(reading 'write'\)/);
  });

  test('in one of two transactions: runs the rest of it inside the other', async () => {
    const ended = await killBackend('in one of two transactions');
    assert.equal(ended.outcome?.work, 'CONNECTION_CLOSED, committed');
    assert.deepEqual(ended.things, [2, 11, 12]);
  });

  test('in a query: rejects the query, and the next statement with the error of the lost session', {
    skip,
  }, async () => {
    const ended = await killBackend('in a query');
    assert.match(ended.outcome?.work ?? '', /^(?:CONNECTION_CLOSED|ECONNRESET)$/);
    assert.equal(ended.outcome?.next, '57P01');
  });
});
