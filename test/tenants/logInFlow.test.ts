import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import { Overloaded } from '../../src/lib/fairSemaphore.ts';
import { openSql, type Sql } from '../../src/postgres/sql.ts';
import { type LoginTurn, logIn } from '../../src/tenants/logIn.ts';
import { LOGIN_LIMITS } from '../../src/tenants/logins.sql.ts';
import { makeOwner, PASSWORD } from '../support/http/application.ts';
import { adminOf } from '../support/postgres/admin.ts';
import { createDatabase } from '../support/postgres/postgres.ts';

const OWNER = 'owner@example.com';
const HOME = '192.0.2.1';

let sql: Sql;
let drop: () => Promise<void>;

before(async () => {
  const database = await createDatabase();
  drop = database.drop;
  sql = openSql(database.url, { maxConnections: 4, name: 'test' });
  const admin = adminOf(database.url);
  await makeOwner(admin, OWNER);
  await makeOwner(admin, 'inactive@example.com');
  await admin.run('account:deactivate', '--email', 'inactive@example.com');
  await admin.account('keysonly@example.com');
});
after(async () => {
  await sql.end();
  await drop();
});
beforeEach(() => sql`delete from login_window`);

/** Logs in from home and returns the outcome, how many passwords were checked, and what is counted in the end. */
async function attempt(email: string, password: string, isRoom = true) {
  let checked = 0;
  const turns = {
    run: async <T>(_turn: LoginTurn, check: () => Promise<T>) => {
      if (!isRoom) throw new Overloaded('too much waits already');
      checked++;
      return check();
    },
  };
  const { kind } = await logIn({ logins: () => sql, turns }, { email, password }, HOME);
  const [row] = await sql<
    { attempts: number }[]
  >`select coalesce(max(attempts), 0)::int as attempts from login_window`;
  return { kind, checked, attempts: row?.attempts };
}

describe('an attempt to log in', () => {
  // What takes the time of a login is the check: one for each, whether there is an account or not.
  for (const [name, email, password] of [
    ['with a wrong password', OWNER, 'wrong'],
    ['of nobody', 'nobody@example.com', PASSWORD],
    ['of an account without a password', 'keysonly@example.com', PASSWORD],
    ['of an inactive account, with its password', 'inactive@example.com', PASSWORD],
    ['of an inactive account, with a wrong one', 'inactive@example.com', 'wrong'],
  ] as const) {
    test(`${name} costs one check of a password and one attempt, and opens nothing`, async () => {
      assert.deepEqual(await attempt(email, password), { kind: 'denied', checked: 1, attempts: 1 });
      assert.equal((await sql`select 1 from session`).length, 0);
      assert.equal((await sql`select 1 from login_address`).length, 0);
    });
  }

  test('that is one too many costs no check, and is not counted itself', async () => {
    for (let n = 0; n < LOGIN_LIMITS.perPair; n++) await attempt(OWNER, 'wrong');
    const limited = { kind: 'limited', checked: 0, attempts: LOGIN_LIMITS.perPair };
    assert.deepEqual(await attempt(OWNER, 'wrong'), limited);
  });

  test('for which there is no room is refused without a check, and counts for nothing', async () => {
    assert.deepEqual(await attempt(OWNER, PASSWORD, false), { kind: 'limited', checked: 0, attempts: 0 });
  });

  test('that succeeds counts for nothing', async () => {
    assert.deepEqual(await attempt(OWNER, PASSWORD), { kind: 'logged_in', checked: 1, attempts: 0 });
  });
});
