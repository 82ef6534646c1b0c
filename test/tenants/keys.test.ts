import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { insertKey, pruneRevokedKeys } from '../../src/access/keys.sql.ts';
import { openSql, type Sql } from '../../src/postgres/sql.ts';
import { insertAccount } from '../../src/tenants/accounts.sql.ts';
import { createDatabase } from '../support/postgres/postgres.ts';

let sql: Sql;
before(async () => {
  sql = openSql((await createDatabase()).url, { maxConnections: 3, name: 'test' });
});
after(() => sql.end());

function addAccount(email: string) {
  const draft = { email, name: 'A', organizationId: null, plan: 'pro', passwordHash: null };
  return sql.begin((tx) => insertAccount(tx, draft));
}

describe('a key', () => {
  const draft = { name: null, prefix: 'fk_abc', scopes: ['read_devices'], allowlist: ['10.0.0.0/8', '::1'] };

  test('is deleted 90 days after it was revoked, and every pod is told to forget it', async () => {
    const { id: accountId } = await addAccount('gone@x');
    const insert = (byte: string) =>
      sql.begin((tx) => insertKey(tx, accountId, { ...draft, fingerprint: byte.repeat(32) }));
    const [old, recent, valid] = [await insert('01'), await insert('02'), await insert('03')];
    await sql`update api_key set revoked_at = now() - interval '91 days' where id = ${old}`;
    await sql`update api_key set revoked_at = now() - interval '89 days' where id = ${recent}`;
    assert.equal(await pruneRevokedKeys(sql), 1);
    assert.equal(await pruneRevokedKeys(sql), 0);
    const left = await sql<
      { id: number }[]
    >`select id from api_key where account_id = ${accountId} order by id`;
    assert.deepEqual(
      left.map(({ id }) => id),
      [recent, valid],
    );
    assert.equal((await sql`select from change where kind = 'key' and entity_id = ${old}`).length, 1);
  });
});
