import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { verifyPassword } from '../../../src/tenants/credentials.ts';
import { type FleetOptions, fleetDatabase } from '../runFleet.ts';

const database = fleetDatabase();
const fleet = (line: string, options?: FleetOptions) => database.fleet(line, options);

async function accountRow(email: string) {
  const [row] = await database.sql`
    select a.*, o.name as organization, o.world_id as organization_world
    from account a left join organization o on o.id = a.organization_id where email = ${email}`;
  assert.ok(row);
  return row;
}

const hasPassword = async (email: string, password: string) =>
  verifyPassword(password, String((await accountRow(email))['password_hash']));

describe('account:create', () => {
  test('adds an account with a world of its own and notifies the pods', async () => {
    const { result, rows, raised } = await database.watch(
      "account:create --email ' First@Example.com ' --name ' First Inc. '",
    );
    const row = await accountRow('first@example.com');
    assert.deepEqual(result.json, { id: row['id'], email: 'first@example.com', organization_id: null });
    assert.equal(result.code, 0);
    const { name, plan, active, password_hash } = row;
    assert.deepEqual([name, plan, active, password_hash], ['First Inc.', 'pro', true, null]);
    assert.deepEqual(rows, [{ kind: 'account', worldId: row['world_id'], entityId: row['id'] }]);
    assert.deepEqual(raised, [row['world_id']]);
  });

  test('makes an organization by its first use, and uses it from then on', async () => {
    const one = await fleet('account:create --email o1@x --name A --organization Acme --plan basic');
    const two = await fleet("account:create --email o2@x --name B --organization ' Acme '");
    assert.equal(one.json.organization_id, two.json.organization_id);
    const [first, second] = [await accountRow('o1@x'), await accountRow('o2@x')];
    assert.deepEqual([first['plan'], first['organization']], ['basic', 'Acme']);
    assert.equal(new Set([first['world_id'], second['world_id'], first['organization_world']]).size, 3);
  });

  test('makes one organization even when commands use it first at the same moment', async () => {
    const runs = await Promise.all(
      [1, 2, 3, 4].map((n) => fleet(`account:create --email p${n}@x --name P --organization Parallel`)),
    );
    assert.deepEqual(
      runs.map(({ code }) => code),
      [0, 0, 0, 0],
    );
    assert.equal(new Set(runs.map(({ json }) => json.organization_id)).size, 1);
  });

  test('stores a password as a hash; - takes it from the first line of stdin, or asks twice in a terminal', async () => {
    for (const [password, given, options] of [
      ['correct horse', "'correct horse'", {}],
      ['from a pipe ', '-', { stdin: 'from a pipe \r\nsecond line\n' }],
      ['typed one', '-', { typed: ['typed one', 'typed one'] }],
    ] as const) {
      const email = `${password.slice(0, 5).trim()}@x`;
      const line = `account:create --email ${email} --name P --password ${given}`;
      assert.equal((await fleet(line, options)).code, 0);
      assert.ok(await hasPassword(email, password));
    }
  });

  test('changes nothing without a password, or when the two differ', async () => {
    const cases: readonly [FleetOptions, string][] = [
      [{ stdin: '' }, 'the password is empty'],
      [{ stdin: `${'x'.repeat(1001)}\n` }, 'the password is longer than 1000 characters'],
      [{ typed: [] }, 'the password is empty'],
      [{ typed: ['one', 'other'] }, 'the two passwords differ; nothing was changed'],
    ];
    const line = 'account:create --email none@x --name P --password -';
    for (const [options, error] of cases)
      await database.refuses(line, 1, `account:create: ${error}\n`, options);
    assert.equal((await database.sql`select 1 from account where email = 'none@x'`).length, 0);
  });

  test('refuses an address that is taken, in whatever case, also when several want it at the same moment', async () => {
    const runs = await Promise.all([1, 2, 3].map(() => fleet('account:create --email taken@x --name A')));
    assert.deepEqual(runs.map(({ code }) => code).sort(), [0, 1, 1]);
    const { result, rows } = await database.watch(
      'account:create --email TAKEN@X --name B --organization Unmade',
    );
    assert.deepEqual([result.code, result.stdout, rows], [1, '', []]);
    assert.equal(
      result.stderr,
      'account:create: there is an account taken@x already; change it with account:update\n',
    );
    assert.equal((await database.sql`select 1 from organization where name = 'Unmade'`).length, 0);
  });

  test('names the plans when there is no such plan', async () => {
    const message = /there is no plan "gold"; choose one of basic, pro, enterprise/;
    await database.refuses('account:create --email plan@x --name A --plan gold', 1, message);
    assert.equal((await database.sql`select 1 from account where email = 'plan@x'`).length, 0);
  });

  test('is not understood without what it needs, or with what it cannot use', async () => {
    const usage =
      '--email E --name N \\[--organization O\\] \\[--plan P\\] \\[--role member.viewer\\] \\[--password W\\]\n';
    for (const [options, message] of [
      ['', '--email is missing\n.*--name is missing'],
      ['--email nobody --name A', '--email is not an e-mail address'],
      ["--email 'a b@x' --name A", '--email is not'],
      [`--email ${'a'.repeat(254)}@x --name A`, '--email is not'],
      ["--email a@x --name ' '", '--name is blank'],
      ['--email a@x --name a\u0000b', '--name holds control characters'],
      [`--email a@x --name ${'x'.repeat(101)}`, '--name is longer than 100 characters'],
      ["--email a@x --name A --password ''", '--password is empty'],
    ] as const) {
      const said = new RegExp(`${message}.*\n\nusage: fleet account:create ${usage}`);
      await database.refuses(`account:create ${options}`, 2, said);
    }
  });
});

describe('account:update', () => {
  test('changes what is given, leaves the rest alone and prints the account', async () => {
    const made = await fleet("account:create --email u1@x --name A --organization 'Org U'");
    const before = await accountRow('u1@x');
    const { result, rows, raised } = await database.watch('account:update --email U1@x --name B');
    const { id, organization_id } = made.json;
    const changed = { id, email: 'u1@x', name: 'B', organization_id, organization: 'Org U', active: true };
    assert.deepEqual(result.json, { ...changed, plan: 'pro', role: 'member' });
    assert.deepEqual(await accountRow('u1@x'), { ...before, name: 'B' });
    assert.deepEqual(rows, [{ kind: 'account', worldId: before['world_id'], entityId: id }]);
    assert.deepEqual(raised, [before['world_id']]);
    const more = await fleet('account:update --email u1@x --plan enterprise --password q');
    assert.deepEqual(more.json, { ...changed, plan: 'enterprise', role: 'member' });
    const viewer = await fleet('account:update --email u1@x --role Viewer');
    assert.deepEqual(viewer.json, { ...more.json, role: 'viewer' });
    assert.ok(await hasPassword('u1@x', 'q'));
  });

  test('moves an account to another organization, to a new one and to none; shared devices stay', async () => {
    await fleet('account:create --email u2@x --name A --organization Old');
    await fleet('device:create --email u2@x --imei 35000000000002 --organization');
    const oldWorld = (await accountRow('u2@x'))['organization_world'];
    const moved = await fleet('account:update --email u2@x --organization New');
    assert.equal(moved.json.organization, 'New');
    const none = await fleet('account:update --email u2@x --organization none');
    assert.deepEqual([none.json.organization, none.json.organization_id], [null, null]);
    const [device] = await database.sql`select world_id from device where imei = '35000000000002'`;
    assert.equal(device?.['world_id'], oldWorld);
  });

  test('makes an account a viewer, at its creation or later, and nothing else', async () => {
    await fleet('account:create --email u4@x --name A --role viewer');
    assert.equal((await accountRow('u4@x'))['role'], 'viewer');
    await fleet('account:update --email u4@x --name B');
    assert.equal((await accountRow('u4@x'))['role'], 'viewer');
    assert.equal((await fleet('account:update --email u4@x --role member')).json.role, 'member');
    await database.refuses(
      'account:update --email u4@x --role admin',
      2,
      /--role must be one of member, viewer/,
    );
  });

  test('refuses an unknown account and an unknown plan', async () => {
    const unknown = /there is no account nobody@x; add it with account:create/;
    await database.refuses('account:update --email nobody@x --name A', 1, unknown);
    await fleet('account:create --email u3@x --name A');
    await database.refuses('account:update --email u3@x --name B --plan gold', 1, /there is no plan "gold"/);
    assert.equal((await accountRow('u3@x'))['name'], 'A');
  });
});

describe('account:deactivate and account:activate', () => {
  test('switch an account and notify the pods, each time', async () => {
    const { json } = await fleet('account:create --email s@x --name A');
    const world = (await accountRow('s@x'))['world_id'];
    for (const active of [false, false, true]) {
      const command = active ? 'account:activate' : 'account:deactivate';
      const { result, rows, raised } = await database.watch(`${command} --email s@x`);
      assert.deepEqual(result.json, { id: json.id, active });
      assert.equal((await accountRow('s@x'))['active'], active);
      assert.deepEqual(rows, [{ kind: 'account', worldId: world, entityId: json.id }]);
      assert.deepEqual(raised, [world]);
    }
  });

  test('refuse an unknown account', async () => {
    for (const command of ['account:deactivate', 'account:activate'])
      await database.refuses(`${command} --email nobody@x`, 1, /there is no account nobody@x/);
  });
});
