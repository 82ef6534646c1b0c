import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { insertAccount } from '../../src/store/accounts.ts';
import { claimAnswer, keepAnswer, pruneAnswers } from '../../src/store/idempotentAnswers.ts';
import { openSql, type Sql, type Tx } from '../../src/store/sql.ts';
import { createDatabase } from '../support/postgres.ts';
import { waitFor } from '../support/waitFor.ts';

const KEPT = { areaId: 7, body: '{"data":{"id":7},"meta":{}}' };
const hashOf = (body: string): Buffer => createHash('sha256').update(body).digest();
const HASH = hashOf('a body');

let sql: Sql;
let accountId: number;
let otherId: number;
before(async () => {
  sql = openSql((await createDatabase()).url, { maxConnections: 8, name: 'test' });
  const add = async (email: string) =>
    (
      await sql.begin((tx) =>
        insertAccount(tx, { email, name: 'A', organizationId: null, plan: 'pro', passwordHash: null }),
      )
    ).id;
  accountId = await add('a@x');
  otherId = await add('b@x');
});
after(() => sql.end());

const claim = (key: string, hash = HASH, account = accountId) =>
  sql.begin((tx) => claimAnswer(tx, account, key, hash));

async function keep(key: string, account = accountId): Promise<void> {
  await sql.begin(async (tx) => {
    assert.deepEqual(await claimAnswer(tx, account, key, HASH), { kind: 'claimed' });
    await keepAnswer(tx, account, key, KEPT);
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
  test('is claimed once, then answers what was kept', async () => {
    await keep('kept');
    for (let n = 0; n < 3; n++) assert.deepEqual(await claim('kept'), { kind: 'answered', kept: KEPT });
  });

  test('with another body is a mismatch, as often as it comes', async () => {
    await keep('other body');
    for (let n = 0; n < 2; n++)
      assert.deepEqual(await claim('other body', hashOf('b')), { kind: 'mismatch' });
    assert.deepEqual(await claim('other body'), { kind: 'answered', kept: KEPT });
  });

  test('belongs to its account', async () => {
    await keep('mine');
    await keep('mine', otherId);
    assert.deepEqual(await claim('mine', hashOf('b'), otherId), { kind: 'mismatch' });
  });

  test('is free again after a transaction that failed', async () => {
    const failed = sql.begin(async (tx) => {
      await claimAnswer(tx, accountId, 'failed', HASH);
      await keepAnswer(tx, accountId, 'failed', KEPT);
      throw new Error('on purpose');
    });
    await assert.rejects(failed, /on purpose/);
    await keep('failed');
  });

  test('is answered for 24 hours, and free from then on, for another body too', async () => {
    await keep('old');
    await age('old', '23 hours 59 minutes 50 seconds');
    assert.deepEqual(await claim('old'), { kind: 'answered', kept: KEPT });
    await age('old', '24 hours 1 second');
    assert.deepEqual(await claim('old', hashOf('b')), { kind: 'claimed' });
  });

  test('is pruned after 24 hours, and not before', async () => {
    await keep('fresh');
    await keep('stale');
    await pruneAnswers(sql);
    await age('fresh', '23 hours 59 minutes');
    await age('stale', '24 hours 1 minute');
    assert.equal(await pruneAnswers(sql), 1);
    assert.equal(await pruneAnswers(sql), 0);
    assert.deepEqual(await claim('fresh'), { kind: 'answered', kept: KEPT });
  });
});

describe('a key that another transaction holds', () => {
  /** A claim that stays open until told how to end, and the claim that waits for it. */
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
    const second = await race('raced', (tx) => keepAnswer(tx, accountId, 'raced', KEPT));
    assert.deepEqual(second, { kind: 'answered', kept: KEPT });
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
          if (made.kind === 'claimed') await keepAnswer(tx, accountId, 'old and popular', KEPT);
          return made.kind;
        }),
      ),
    );
    assert.deepEqual(claims.toSorted(), [...Array(5).fill('answered'), 'claimed']);
  });
});
