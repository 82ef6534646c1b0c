import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { PAGE_ROWS } from '../../../src/cli/command.ts';
import { fleetDatabase } from '../runFleet.ts';

const database = fleetDatabase(
  'account:create --email a@x --name A --organization Acme --plan basic',
  'account:create --email b@x --name B',
);

const linesOf = (stdout: string) =>
  stdout
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line));

/** The lines of a list, each parsed. */
async function list(line: string) {
  const { code, stdout, stderr } = await database.fleet(line);
  assert.deepEqual([code, stderr], [0, '']);
  return linesOf(stdout);
}

describe('account:list', () => {
  test('prints each account as account:update does, by id', async () => {
    const updated = await database.fleet('account:update --email a@x --name A');
    await database.fleet('account:deactivate --email b@x');
    const accounts = await list('account:list');
    assert.deepEqual(accounts[0], updated.json);
    assert.deepEqual(
      accounts.map(({ email, active, organization }) => [email, active, organization]),
      [
        ['a@x', true, 'Acme'],
        ['b@x', false, null],
      ],
    );
    await database.fleet('account:activate --email b@x');
  });
});

describe('key:list', () => {
  test('prints each key with its owner and state, and never the key itself', async () => {
    const mine = await database.fleet('key:create --email a@x --scopes read_areas --allow 10.0.0.0/8');
    const other = await database.fleet(
      'key:create --email b@x --scopes all --name Other --expires 2099-01-01',
    );
    await database.fleet(`key:revoke --id ${other.json.id}`);
    const { stdout } = await database.fleet('key:list');
    for (const { json } of [mine, other]) assert.ok(!stdout.includes(json.key));
    const [first, second, ...rest] = await list('key:list');
    assert.deepEqual(rest, []);
    assert.match(first.created_at, /^\d{4}-\d\d-\d\dT.*Z$/);
    assert.deepEqual(first, {
      id: mine.json.id,
      email: 'a@x',
      name: null,
      prefix: mine.json.prefix,
      scopes: ['read_areas'],
      allowlist: ['10.0.0.0/8'],
      groups: [],
      created_at: first.created_at,
      last_used_at: null,
      revoked_at: null,
      expires_at: null,
    });
    assert.deepEqual([second.email, second.name, typeof second.revoked_at], ['b@x', 'Other', 'string']);
    assert.equal(second.expires_at, '2099-01-01T00:00:00.000Z');
    assert.deepEqual(await list('key:list --email b@x'), [second]);
  });
});

describe('device:list', () => {
  const imei = (n: number) => String(350_000_000_000_000 + n);
  before(async () => {
    for (const options of [
      `--email b@x --imei ${imei(9)}`,
      `--email a@x --imei ${imei(2)} --name Van --plate P --model M --groups g,h`,
      `--email a@x --imei ${imei(1)} --organization`,
    ])
      await database.fleet(`device:create ${options}`);
  });

  test('prints every device with its owner', async () => {
    const devices = await list('device:list');
    assert.deepEqual(devices.map((device) => [device.imei, device.owner, device.organization]).sort(), [
      [imei(1), 'Acme', true],
      [imei(2), 'a@x', false],
      [imei(9), 'b@x', false],
    ]);
  });

  test('of an account prints what it sees, in lines that device:import takes back unchanged', async () => {
    const { stdout } = await database.fleet('device:list --email a@x');
    const lines = linesOf(stdout);
    assert.deepEqual(
      lines.find((line) => line.imei === imei(2)),
      { imei: imei(2), name: 'Van', plate: 'P', device_model: 'M', groups: ['g', 'h'], organization: false },
    );
    assert.deepEqual(lines.map((line) => line.imei).sort(), [imei(1), imei(2)]);
    const again = await database.fleet('device:import --email a@x -', { stdin: stdout });
    assert.deepEqual([again.code, again.json], [0, { created: 0, updated: 2, rejected: [] }]);
    assert.equal((await database.fleet('device:list --email a@x')).stdout, stdout);
  });

  test('reads a long list page after page, each device once', async () => {
    await database.fleet('account:create --email many@x --name M');
    const [{ world_id: worldId } = { world_id: 0 }] = await database.sql<{ world_id: number }[]>`
      select world_id from account where email = 'many@x'`;
    const count = 2 * PAGE_ROWS;
    await database.sql`
      insert into device (imei, world_id)
      select (860000000000000 + n)::text, ${worldId} from generate_series(1, ${count}) n`;
    const devices = await list('device:list --email many@x');
    assert.equal(devices.length, count);
    assert.equal(new Set(devices.map((device) => device.imei)).size, count);
  });

  test('ends without a word when nobody reads on', async () => {
    const { code, stdout, stderr } = await database.fleet('device:list', { readLines: 1 });
    assert.deepEqual([code, stdout.match(/\n/g)?.length, stderr], [0, 2, '']);
  });

  test('says that it is not complete after Ctrl-C', async () => {
    const message = 'device:list: interrupted; the list is not complete\n';
    await database.refuses('device:list', 1, message, { interrupted: AbortSignal.abort() });
  });
});

describe('webhook:list', () => {
  test('prints each endpoint with its owner, without its secret', async () => {
    for (const email of ['a@x', 'b@x']) {
      await database.sql`
        insert into webhook (account_id, url, events, retry_policy, max_retries, active, secret)
        select id, 'https://hook.example.com/', '{ping}', 'fixed', 3, true, '\\x736563726574' from account
        where email = ${email}`;
    }
    const endpoints = await list('webhook:list');
    assert.deepEqual(
      endpoints.map(({ email }) => email),
      ['a@x', 'b@x'],
    );
    const [first] = endpoints;
    assert.deepEqual(first, {
      id: first.id,
      email: 'a@x',
      url: 'https://hook.example.com/',
      description: null,
      events: ['ping'],
      retry_policy: 'fixed',
      max_retries: 3,
      active: true,
      created_at: first.created_at,
      updated_at: first.updated_at,
    });
    assert.deepEqual(await list('webhook:list --email a@x'), [first]);
  });
});

test('a list of an unknown account is refused', async () => {
  for (const command of ['key:list', 'device:list', 'webhook:list'])
    await database.refuses(`${command} --email nobody@x`, 1, /there is no account nobody@x/);
});
