import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { insertKey, pruneRevokedKeys } from '../../src/access/keys.sql.ts';
import { KeyUse } from '../../src/access/keyUse.ts';
import { DAY_MS } from '../../src/lib/time.ts';
import { openSql, type Sql } from '../../src/postgres/sql.ts';
import { PostgresUnreachable } from '../../src/postgres/sqlErrors.ts';
import { insertAccount } from '../../src/tenants/accounts.sql.ts';
import { adminOf } from '../support/postgres/admin.ts';
import { createDatabase } from '../support/postgres/postgres.ts';

const T = 1_800_000_000_000;

let sql: Sql;
let ids: number[];
let drop: () => Promise<void>;

before(async () => {
  const database = await createDatabase();
  drop = database.drop;
  sql = openSql(database.url, { maxConnections: 4, name: 'test' });
  const admin = adminOf(database.url);
  await admin.account('owner@example.com');
  ids = [];
  for (let n = 0; n < 3; n++) ids.push((await admin.key('owner@example.com')).id);
});
after(async () => {
  await sql.end();
  await drop();
});
beforeEach(() => sql`update api_key set last_used_at = null`);

const used = async (): Promise<number[]> =>
  (await sql<{ id: number }[]>`select id from api_key where last_used_at is not null order by id`).map(
    ({ id }) => id,
  );

const quiet = { warn: () => assert.fail('nothing is to be logged') };

describe('the last use of keys', () => {
  test('is written for all at once, by the clock of Postgres', async () => {
    const use = new KeyUse({ sql, log: quiet });
    for (const id of [ids[0], ids[2], ids[0]]) use.note(id as number, T);
    assert.deepEqual(await used(), []);
    await use.flush();
    assert.deepEqual(await used(), [ids[0], ids[2]]);
    const [row] = await sql<{ fresh: boolean }[]>`
      select bool_and(last_used_at > clock_timestamp() - interval '1 minute') as fresh from api_key
      where last_used_at is not null`;
    assert.equal(row?.fresh, true);
  });

  test('is written once a minute at most, and again after it, also when the clock was set back', async () => {
    const use = new KeyUse({ sql, log: quiet });
    for (const [nowMs, written] of [
      [T, true],
      [T + 59_999, false],
      [T + 60_000, true],
      [T + 119_999, false],
      [T, true],
      [T + 1, false],
    ] as const) {
      await sql`update api_key set last_used_at = null`;
      use.note(ids[1] as number, nowMs);
      await use.flush();
      assert.deepEqual(await used(), written ? [ids[1]] : [], String(nowMs - T));
    }
  });

  test('is written in one go at a time, whatever comes while Postgres is slow', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const answers: (() => void)[] = [];
    const slow = () => new Promise((resolve) => answers.push(() => resolve([])));
    const use = new KeyUse({ sql: slow as unknown as Sql, log: quiet });
    for (let id = 1; id <= 5; id++) {
      use.note(id, T);
      t.mock.timers.tick(2_000);
      await turn();
    }
    assert.equal(answers.length, 1);
    answers[0]?.();
    await turn();
    t.mock.timers.tick(2_000);
    await turn();
    assert.equal(answers.length, 2, 'the others follow together');
    answers[1]?.();
    await use.flush();
    assert.equal(answers.length, 2);
  });

  test('passes over a row that somebody holds, and waits for nobody', async () => {
    const use = new KeyUse({ sql, log: quiet });
    await sql.begin(async (tx) => {
      await tx`select from api_key where id = ${ids[0] as number} for update`;
      use.note(ids[0] as number, T);
      use.note(ids[1] as number, T);
      await use.flush();
    });
    assert.deepEqual(await used(), [ids[1]]);
  });

  test('is lost with Postgres without harm, and noted again by the next use', async () => {
    let isLost = true;
    const said: string[] = [];
    const flaky = ((strings: TemplateStringsArray, ...values: unknown[]) =>
      isLost
        ? Promise.reject(new PostgresUnreachable({ code: 'ECONNREFUSED' }))
        : sql(strings, ...values)) as unknown as Sql;
    const use = new KeyUse({ sql: flaky, log: { warn: (fields) => void said.push(JSON.stringify(fields)) } });
    use.note(ids[0] as number, T);
    await use.flush();
    assert.deepEqual(said, ['{"reason":"unreachable","code":"ECONNREFUSED"}']);
    isLost = false;
    use.note(ids[0] as number, T + 1);
    await use.flush();
    assert.deepEqual(await used(), [ids[0]]);
  });
});

describe('a key', () => {
  const draft = { name: null, prefix: 'fk_abc', scopes: ['read_devices'], allowlist: ['10.0.0.0/8', '::1'] };

  test('is deleted 90 days after it was revoked or has ended, and every pod is told to forget it', async () => {
    const account = { email: 'gone@x', name: 'A', organizationId: null, plan: 'pro', passwordHash: null };
    const { id: accountId } = await sql.begin((tx) => insertAccount(tx, account));
    const insert = (byte: string, expiresAt: Date | null = null) =>
      sql.begin((tx) => insertKey(tx, accountId, { ...draft, fingerprint: byte.repeat(32), expiresAt }));
    const [old, recent, valid] = [await insert('01'), await insert('02'), await insert('03')];
    const daysAgo = (days: number) => new Date(Date.now() - days * DAY_MS);
    const ended = await insert('04', daysAgo(91));
    const ending = [await insert('05', daysAgo(89)), await insert('06', daysAgo(-1))];
    await sql`update api_key set revoked_at = now() - interval '91 days' where id = ${old}`;
    await sql`update api_key set revoked_at = now() - interval '89 days' where id = ${recent}`;
    assert.equal(await pruneRevokedKeys(sql), 2);
    assert.equal(await pruneRevokedKeys(sql), 0);
    const left = await sql<
      { id: number }[]
    >`select id from api_key where account_id = ${accountId} order by id`;
    assert.deepEqual(
      left.map(({ id }) => id),
      [recent, valid, ...ending],
    );
    const told = await sql`select from change where kind = 'key' and entity_id in (${old}, ${ended})`;
    assert.equal(told.length, 2);
  });
});
