import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readQuotas } from '../../src/coherence/fillMemory.ts';
import { Fleet } from '../../src/devices/fleet.memory.ts';
import { openSql } from '../../src/postgres/sql.ts';
import { adminOf } from '../support/postgres/admin.ts';
import { createDatabase } from '../support/postgres/postgres.ts';

const AT_A_TIME = 2;

test('the quotas of all accounts are read, a few at a time', async (t) => {
  const { url } = await createDatabase(t);
  const sql = openSql(url, { maxConnections: 1, name: 'test' });
  t.after(() => sql.end());
  const admin = adminOf(url);
  await sql`insert into plan (name, history_days, max_stays) values ('small', 30, 7)`;
  for (let n = 1; n <= 2 * AT_A_TIME + 1; n++) await admin.account(`${n}@example.com`);
  for (const count of [2 * AT_A_TIME + 1, 2 * AT_A_TIME]) {
    await sql`delete from account where email = ${`${count + 1}@example.com`}`;
    await sql`update account set plan = 'small' where email = ${`${count}@example.com`}`;
    const fleet = new Fleet();
    await readQuotas(sql, { fleet }, AT_A_TIME);
    const accounts = await sql<{ id: number; plan: string }[]>`select id, plan from account order by id`;
    assert.equal(accounts.length, count);
    for (const { id, plan } of accounts)
      assert.equal(fleet.stays.limitOf(id), plan === 'small' ? 7 : 2_000_000);
  }
});
