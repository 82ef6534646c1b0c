import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { claimAnswer, pruneAnswers, storeAnswer } from '../../../src/areas/idempotentAnswers.sql.ts';
import { openSql, type Sql, type Tx } from '../../../src/postgres/sql.ts';
import { insertAccount } from '../../../src/tenants/accounts.sql.ts';
import { createDatabase } from '../../support/postgres/postgres.ts';
import { waitFor } from '../../support/waitFor.ts';

const STORED = { areaId: 7, createdAtMs: 1_700_000_000_000, body: '{"data":{"id":7},"meta":{}}' };
const HASH = createHash('sha256').update('a body').digest();

let sql: Sql;
let accountId: number;
before(async () => {
  sql = openSql((await createDatabase()).url, { maxConnections: 8, name: 'test' });
  ({ id: accountId } = await sql.begin((tx) =>
    insertAccount(tx, { email: 'a@x', name: 'A', organizationId: null, plan: 'pro', passwordHash: null }),
  ));
});
after(() => sql.end());

const claim = (key: string) => sql.begin((tx) => claimAnswer(tx, accountId, key, HASH));

async function keep(key: string): Promise<void> {
  await sql.begin(async (tx) => {
    assert.deepEqual(await claimAnswer(tx, accountId, key, HASH), { kind: 'claimed' });
    await storeAnswer(tx, accountId, key, STORED);
  });
}

async function age(key: string, interval: string): Promise<void> {
  await sql`update idempotent_answer set created_at = clock_timestamp() - ${interval}::interval where key = ${key}`;
}

/** Resolves when a session of this database waits for the lock of another. */
const someoneWaits = () =>
  waitFor(async () => {
    const rows = await sql`
      select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
    return rows.length > 0;
  });

describe('a key', () => {
  test('is pruned after 24 hours, and not before', async () => {
    await keep('fresh');
    await keep('stale');
    await pruneAnswers(sql);
    await age('fresh', '23 hours 59 minutes');
    await age('stale', '24 hours 1 minute');
    assert.equal(await pruneAnswers(sql), 1);
    assert.equal(await pruneAnswers(sql), 0);
    assert.deepEqual(await claim('fresh'), { kind: 'answered', stored: STORED });
  });
});

describe('a key that another transaction holds', () => {
  /** A claim that stays open until the test ends it, and the claim that waits for it. */
  async function race(key: string, end: (tx: Tx) => Promise<void>) {
    const { promise: isHeld, resolve: held } = Promise.withResolvers<void>();
    const { promise: mayEnd, resolve: letEnd } = Promise.withResolvers<void>();
    const first = sql.begin(async (tx) => {
      await claimAnswer(tx, accountId, key, HASH);
      held();
      await mayEnd;
      await end(tx);
    });
    await isHeld;
    const second = claim(key);
    await someoneWaits();
    letEnd();
    await Promise.allSettled([first]);
    return second;
  }

  test('waits and then answers what that one kept', async () => {
    const second = await race('raced', (tx) => storeAnswer(tx, accountId, 'raced', STORED));
    assert.deepEqual(second, { kind: 'answered', stored: STORED });
  });

  test('waits and is claimed when that one failed', async () => {
    const second = await race('raced in vain', () => Promise.reject(new Error('on purpose')));
    assert.deepEqual(second, { kind: 'claimed' });
  });

  test('an old one is replaced by one of many', async () => {
    await keep('old and popular');
    await age('old and popular', '25 hours');
    const claims = await Promise.all(
      Array.from({ length: 6 }, () =>
        sql.begin(async (tx) => {
          const made = await claimAnswer(tx, accountId, 'old and popular', HASH);
          if (made.kind === 'claimed') await storeAnswer(tx, accountId, 'old and popular', STORED);
          return made.kind;
        }),
      ),
    );
    assert.deepEqual(claims.toSorted(), [...Array(5).fill('answered'), 'claimed']);
  });
});
