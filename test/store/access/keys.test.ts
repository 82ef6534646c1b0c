import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { insertAccount } from '../../../src/store/access/accounts.ts';
import { insertKey, revokeKey } from '../../../src/store/access/keys.ts';
import { openSql, type Sql } from '../../../src/store/sql/sql.ts';
import { createDatabase } from '../../support/postgres/postgres.ts';

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

  test('is stored as it was given', async () => {
    const { id: accountId } = await addAccount('key@x');
    const fingerprint = 'ab'.repeat(32);
    const id = await sql.begin((tx) => insertKey(tx, accountId, { ...draft, fingerprint }));
    const [row] = await sql`
      select account_id, name, encode(fingerprint, 'hex') as fingerprint, prefix, scopes, allowlist, revoked_at
      from api_key where id = ${id}`;
    assert.deepEqual({ ...row }, { account_id: accountId, ...draft, fingerprint, revoked_at: null });
  });

  test('is revoked once, and names the world of its account', async () => {
    const { id: accountId, worldId } = await addAccount('revoke@x');
    const id = await sql.begin((tx) => insertKey(tx, accountId, { ...draft, fingerprint: 'cd'.repeat(32) }));
    const first = await sql.begin((tx) => revokeKey(tx, id));
    assert.deepEqual(first, { id, worldId, revokedAt: first?.revokedAt });
    assert.deepEqual(await sql.begin((tx) => revokeKey(tx, id)), first);
    assert.equal(await sql.begin((tx) => revokeKey(tx, id + 1)), undefined);
  });
});
