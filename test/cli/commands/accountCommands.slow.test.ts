import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { openSql, type Sql } from '../../../src/postgres/sql.ts';
import { verifyPassword } from '../../../src/tenants/credentials.ts';
import { createDatabase } from '../../support/postgres/postgres.ts';
import { watchFeed } from '../feed.ts';
import { type FleetOptions, type FleetRun, runFleet, words } from '../runFleet.ts';

let url: string;
let sql: Sql;
before(async () => {
  url = (await createDatabase()).url;
  sql = openSql(url, { maxConnections: 2, name: 'test' });
});
after(() => sql.end());

const fleet = (...argv: string[]): Promise<FleetRun> => runFleet(url, argv);

async function accountRow(email: string) {
  const [row] = await sql`
    select a.*, o.name as organization, o.world_id as organization_world
    from account a left join organization o on o.id = a.organization_id where email = ${email}`;
  assert.ok(row);
  return row;
}

describe('account:create', () => {
  test('adds an account with a world of its own and notifies the pods', async () => {
    const { result, rows, raised } = await watchFeed(sql, () =>
      fleet('account:create', '--email', ' First@Example.com ', '--name', ' First Inc. '),
    );
    const row = await accountRow('first@example.com');
    assert.deepEqual(result.json, { id: row['id'], email: 'first@example.com', organization_id: null });
    assert.equal(result.code, 0);
    assert.deepEqual(
      [row['name'], row['plan'], row['active'], row['password_hash']],
      ['First Inc.', 'pro', true, null],
    );
    assert.deepEqual(rows, [{ kind: 'account', worldId: row['world_id'], entityId: row['id'] }]);
    assert.deepEqual(raised, [row['world_id']]);
  });

  test('makes an organization by its first use, and uses it from then on', async () => {
    const one = await fleet(
      ...words('account:create --email o1@x --name A --organization Acme --plan basic'),
    );
    const two = await fleet('account:create', '--email', 'o2@x', '--name', 'B', '--organization', ' Acme ');
    assert.equal(one.json.organization_id, two.json.organization_id);
    const [first, second] = [await accountRow('o1@x'), await accountRow('o2@x')];
    assert.equal(first['plan'], 'basic');
    assert.equal(first['organization'], 'Acme');
    assert.equal(new Set([first['world_id'], second['world_id'], first['organization_world']]).size, 3);
  });

  test('makes one organization even when two commands use it first at the same moment', async () => {
    const runs = await Promise.all(
      ['p1@x', 'p2@x', 'p3@x', 'p4@x'].map((email) =>
        fleet('account:create', '--email', email, '--name', 'P', '--organization', 'Parallel'),
      ),
    );
    assert.deepEqual(
      runs.map(({ code }) => code),
      [0, 0, 0, 0],
    );
    assert.equal(new Set(runs.map(({ json }) => json.organization_id)).size, 1);
  });

  test('stores a password as a hash', async () => {
    await fleet('account:create', '--email', 'pw@x', '--name', 'P', '--password', 'correct horse');
    const hash = String((await accountRow('pw@x'))['password_hash']);
    assert.ok(await verifyPassword('correct horse', hash));
  });

  describe('with the password -', () => {
    const create = (email: string, options: FleetOptions) =>
      runFleet(url, ['account:create', '--email', email, '--name', 'P', '--password', '-'], options);

    test('takes the first line of stdin', async () => {
      assert.equal((await create('stdin@x', { stdin: 'from a pipe \r\nsecond line\n' })).code, 0);
      const hash = String((await accountRow('stdin@x'))['password_hash']);
      assert.ok(await verifyPassword('from a pipe ', hash));
    });

    test('asks for it twice in a terminal', async () => {
      assert.equal((await create('typed@x', { typed: ['typed one', 'typed one'] })).code, 0);
      const hash = String((await accountRow('typed@x'))['password_hash']);
      assert.ok(await verifyPassword('typed one', hash));
    });

    test('changes nothing without one, or when the two differ', async () => {
      const cases: readonly [FleetOptions, string][] = [
        [{ stdin: '' }, 'the password is empty'],
        [{ stdin: `${'x'.repeat(1001)}\n` }, 'the password is longer than 1000 characters'],
        [{ typed: [] }, 'the password is empty'],
        [{ typed: ['one', 'other'] }, 'the two passwords differ; nothing was changed'],
      ];
      for (const [options, error] of cases) {
        const { code, stdout, stderr } = await create('none@x', options);
        assert.deepEqual([code, stdout, stderr], [1, '', `account:create: ${error}\n`]);
      }
      assert.equal((await sql`select 1 from account where email = 'none@x'`).length, 0);
    });
  });

  test('refuses an address that is taken, in whatever case', async () => {
    await fleet('account:create', '--email', 'taken@x', '--name', 'A');
    const { result, rows } = await watchFeed(sql, () =>
      fleet('account:create', '--email', 'TAKEN@X', '--name', 'B', '--organization', 'Unmade'),
    );
    assert.equal(result.code, 1);
    assert.equal(result.stdout, '');
    assert.match(
      result.stderr,
      /^account:create: there is an account taken@x already; change it with account:update\n$/,
    );
    assert.deepEqual(rows, []);
    assert.equal((await sql`select 1 from organization where name = 'Unmade'`).length, 0);
  });

  test('of one address gives one account even when two commands want it at the same moment', async () => {
    const runs = await Promise.all(
      [1, 2, 3].map(() => fleet('account:create', '--email', 'race@x', '--name', 'R')),
    );
    assert.deepEqual(runs.map(({ code }) => code).sort(), [0, 1, 1]);
  });

  test('names the plans when there is no such plan', async () => {
    const { code, stderr } = await fleet(...words('account:create --email plan@x --name A --plan gold'));
    assert.equal(code, 1);
    assert.match(stderr, /there is no plan "gold"; choose one of basic, pro, enterprise/);
    assert.equal((await sql`select 1 from account where email = 'plan@x'`).length, 0);
  });

  const misuse: readonly [string[], RegExp][] = [
    [[], /--email is missing\n.*--name is missing/],
    [['--email', 'nobody', '--name', 'A'], /--email is not an e-mail address/],
    [['--email', 'a b@x', '--name', 'A'], /--email is not/],
    [['--email', `${'a'.repeat(254)}@x`, '--name', 'A'], /--email is not/],
    [['--email', 'a@x', '--name', ' '], /--name is blank/],
    [['--email', 'a@x', '--name', 'a\u0000b'], /--name holds control characters/],
    [['--email', 'a@x', '--name', 'x'.repeat(101)], /--name is longer than 100 characters/],
    [['--email', 'a@x', '--name', 'A', '--password', ''], /--password is empty/],
    [['--email', 'a@x', '--name', 'A', '--name', 'B'], /--name is given more than once/],
    [['--email', 'a@x', '--name', 'A', '--planet', 'B'], /unknown option '--planet'/],
    [['--email', 'a@x', '--name', 'A', 'B'], /too many arguments/],
    [['--email', 'a@x', '--name'], /option '--name <N>' argument missing/],
  ];
  for (const [argv, message] of misuse) {
    test(`is not understood with ${JSON.stringify(argv).slice(0, 60)}`, async () => {
      const { code, stdout, stderr } = await fleet('account:create', ...argv);
      assert.deepEqual([code, stdout], [2, '']);
      assert.match(stderr, message);
      assert.match(
        stderr,
        /\nusage: fleet account:create --email E --name N \[--organization O\] \[--plan P\] \[--password W\]\n/,
      );
    });
  }
});

describe('account:update', () => {
  test('changes what is given, leaves the rest alone and prints the account', async () => {
    const made = await fleet(
      'account:create',
      '--email',
      'u1@x',
      '--name',
      'A',
      '--organization',
      'Org U',
      '--password',
      'p',
    );
    const before = await accountRow('u1@x');
    const { result, rows, raised } = await watchFeed(sql, () =>
      fleet('account:update', '--email', 'U1@x', '--name', 'B'),
    );
    const account = {
      id: made.json.id,
      email: 'u1@x',
      name: 'B',
      organization_id: made.json.organization_id,
      organization: 'Org U',
      plan: 'pro',
      active: true,
    };
    assert.deepEqual(result.json, account);
    assert.deepEqual(await accountRow('u1@x'), { ...before, name: 'B' });
    assert.deepEqual(rows, [{ kind: 'account', worldId: before['world_id'], entityId: made.json.id }]);
    assert.deepEqual(raised, [before['world_id']]);
    const more = await fleet('account:update', '--email', 'u1@x', '--plan', 'enterprise', '--password', 'q');
    assert.deepEqual(more.json, { ...account, plan: 'enterprise' });
    assert.ok(await verifyPassword('q', String((await accountRow('u1@x'))['password_hash'])));
    const argv = ['account:update', '--email', 'u1@x', '--password', '-'];
    assert.equal((await runFleet(url, argv, { stdin: 'piped' })).code, 0);
    assert.ok(await verifyPassword('piped', String((await accountRow('u1@x'))['password_hash'])));
  });

  test('moves an account to another organization, to a new one and to none; shared devices stay', async () => {
    await fleet('account:create', '--email', 'u2@x', '--name', 'A', '--organization', 'Old');
    await fleet('device:create', '--email', 'u2@x', '--imei', '35000000000002', '--organization');
    const oldWorld = (await accountRow('u2@x'))['organization_world'];
    const moved = await fleet('account:update', '--email', 'u2@x', '--organization', 'New');
    assert.equal(moved.json.organization, 'New');
    const none = await fleet('account:update', '--email', 'u2@x', '--organization', 'none');
    assert.deepEqual([none.json.organization, none.json.organization_id], [null, null]);
    const [device] = await sql`select world_id from device where imei = '35000000000002'`;
    assert.equal(device?.['world_id'], oldWorld);
  });

  test('refuses an unknown account and an unknown plan', async () => {
    const unknown = await fleet('account:update', '--email', 'nobody@x', '--name', 'A');
    assert.equal(unknown.code, 1);
    assert.match(unknown.stderr, /there is no account nobody@x; add it with account:create/);
    await fleet('account:create', '--email', 'u3@x', '--name', 'A');
    const plan = await fleet('account:update', '--email', 'u3@x', '--name', 'B', '--plan', 'gold');
    assert.equal(plan.code, 1);
    assert.match(plan.stderr, /there is no plan "gold"/);
    assert.equal((await accountRow('u3@x'))['name'], 'A');
  });
});

describe('account:deactivate and account:activate', () => {
  test('switch an account and notify the pods, each time', async () => {
    const { json } = await fleet('account:create', '--email', 's@x', '--name', 'A');
    const world = (await accountRow('s@x'))['world_id'];
    for (const [command, active] of [
      ['account:deactivate', false],
      ['account:deactivate', false],
      ['account:activate', true],
    ] as const) {
      const { result, rows, raised } = await watchFeed(sql, () => fleet(command, '--email', 's@x'));
      assert.deepEqual(result.json, { id: json.id, active });
      assert.equal((await accountRow('s@x'))['active'], active);
      assert.deepEqual(rows, [{ kind: 'account', worldId: world, entityId: json.id }]);
      assert.deepEqual(raised, [world]);
    }
  });

  test('refuse an unknown account', async () => {
    for (const command of ['account:deactivate', 'account:activate']) {
      const { code, stdout, stderr } = await fleet(command, '--email', 'nobody@x');
      assert.deepEqual([code, stdout], [1, '']);
      assert.match(stderr, /there is no account nobody@x/);
    }
  });
});
