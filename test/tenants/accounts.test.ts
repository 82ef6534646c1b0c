import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { openSql, type Sql } from '../../src/postgres/sql.ts';
import {
  insertAccount,
  lockForNewTenants,
  selectAccount,
  selectPlanNames,
  updateAccount,
  upsertOrganization,
} from '../../src/tenants/accounts.sql.ts';
import { createDatabase } from '../support/postgres/postgres.ts';

let sql: Sql;
before(async () => {
  sql = openSql((await createDatabase()).url, { maxConnections: 3, name: 'test' });
});
after(() => sql.end());

function addAccount(email: string, organization?: string) {
  return sql.begin(async (tx) => {
    await lockForNewTenants(tx);
    const organizationId =
      organization === undefined ? null : (await upsertOrganization(tx, organization)).id;
    return insertAccount(tx, { email, name: 'A', organizationId, plan: 'pro', passwordHash: 'h' });
  });
}

const find = (email: string) => sql.begin((tx) => selectAccount(tx, email, 'share'));

describe('an account', () => {
  test('comes with its worlds', async () => {
    const alone = await addAccount('alone@x');
    assert.deepEqual(await find('alone@x'), {
      id: alone.id,
      email: 'alone@x',
      name: 'A',
      plan: 'pro',
      active: true,
      organizationId: null,
      organization: null,
      worldId: alone.worldId,
      organizationWorldId: null,
      maxDevices: 5_000_000,
    });
    await addAccount('member@x', 'Acme');
    const member = await find('member@x');
    const acme = await sql.begin((tx) => upsertOrganization(tx, 'Acme'));
    assert.deepEqual(
      [member?.organization, member?.organizationId, member?.organizationWorldId],
      ['Acme', acme.id, acme.worldId],
    );
    assert.equal(await find('nobody@x'), undefined);
  });

  test('changes only where something is given; null ends the membership', async () => {
    const { id } = await addAccount('change@x', 'Change Inc.');
    const before = await find('change@x');
    assert.ok(before);
    await sql.begin((tx) => updateAccount(tx, id, {}));
    assert.deepEqual(await find('change@x'), before);
    await sql.begin((tx) => updateAccount(tx, id, { active: false, plan: 'basic' }));
    assert.deepEqual(await find('change@x'), { ...before, active: false, plan: 'basic' });
    await sql.begin((tx) => updateAccount(tx, id, { organizationId: null, name: 'B' }));
    const none = { organizationId: null, organization: null, organizationWorldId: null };
    assert.deepEqual(await find('change@x'), { ...before, ...none, name: 'B', active: false, plan: 'basic' });
    const [row] = await sql`select password_hash from account where id = ${id}`;
    assert.equal(row?.['password_hash'], 'h');
  });
});

test('the plans are those of the table, the shortest history first', async () => {
  assert.deepEqual(await sql.begin(selectPlanNames), ['basic', 'pro', 'enterprise']);
});
