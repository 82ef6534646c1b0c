import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { openSql, type Sql } from '../../../src/postgres/sql.ts';
import { createDatabase } from '../../support/postgres/postgres.ts';
import { watchFeed } from '../feed.ts';
import { type FleetRun, runFleet, words } from '../runFleet.ts';

let url: string;
let sql: Sql;
before(async () => {
  url = (await createDatabase()).url;
  sql = openSql(url, { maxConnections: 2, name: 'test' });
  await fleet('account:create', '--email', 'alone@x', '--name', 'A');
  await fleet('account:create', '--email', 'member@x', '--name', 'B', '--organization', 'Acme');
});
after(() => sql.end());

const fleet = (...argv: string[]): Promise<FleetRun> => runFleet(url, argv);

async function worldsOf(email: string): Promise<{ own: number; organization: number | null }> {
  const [row] = await sql<{ own: number; organization: number | null }[]>`
    select a.world_id as own, o.world_id as organization
    from account a left join organization o on o.id = a.organization_id where a.email = ${email}`;
  assert.ok(row);
  return row;
}

describe('device:create', () => {
  test('adds a private device with its state and notifies the pods', async () => {
    const { own } = await worldsOf('member@x');
    const argv = ['--imei', ' 350000000000017 ', '--name', ' Truck ', '--plate', 'RM 1', '--model', 'FMB920'];
    const { result, rows, raised } = await watchFeed(sql, () =>
      fleet('device:create', '--email', 'member@x', ...argv, '--groups', ' north, ,cold,north'),
    );
    assert.deepEqual([result.code, result.json], [0, { imei: '350000000000017' }]);
    const [row] = await sql`
      select d.*, s.device_id, s.recorded_at from device d left join device_state s on s.device_id = d.id
      where imei = '350000000000017'`;
    assert.deepEqual(
      [row?.['world_id'], row?.['name'], row?.['plate'], row?.['device_model'], row?.['groups']],
      [own, 'Truck', 'RM 1', 'FMB920', ['north', 'cold']],
    );
    assert.deepEqual([row?.['device_id'], row?.['recorded_at']], [row?.['id'], null]);
    assert.deepEqual(rows, [{ kind: 'device', worldId: own, entityId: row?.['id'] }]);
    assert.deepEqual(raised, [own]);
  });

  test("adds the organization's device to the organization's world", async () => {
    const { organization } = await worldsOf('member@x');
    const { result, raised } = await watchFeed(sql, () =>
      fleet('device:create', '--email', 'member@x', '--imei', '35000000000011', '--organization'),
    );
    assert.equal(result.code, 0);
    const [row] =
      await sql`select world_id, name, plate, device_model, groups from device where imei = '35000000000011'`;
    assert.deepEqual(
      { ...row },
      { world_id: organization, name: null, plate: null, device_model: null, groups: [] },
    );
    assert.deepEqual(raised, [organization]);
  });

  test('refuses an IMEI that is registered, whoever owns it', async () => {
    await fleet('device:create', '--email', 'alone@x', '--imei', '35000000000012', '--name', 'mine');
    for (const email of ['alone@x', 'member@x']) {
      const { result, rows } = await watchFeed(sql, () =>
        fleet('device:create', '--email', email, '--imei', '35000000000012', '--name', 'yours'),
      );
      assert.deepEqual([result.code, result.stdout, rows], [1, '', []]);
      assert.match(
        result.stderr,
        /there is a device 35000000000012 already; change its fields with device:import/,
      );
    }
    const [row] = await sql`select name from device where imei = '35000000000012'`;
    assert.equal(row?.['name'], 'mine');
  });

  test('refuses an unknown account, and an organization where there is none', async () => {
    const unknown = await fleet('device:create', '--email', 'nobody@x', '--imei', '35000000000013');
    assert.equal(unknown.code, 1);
    assert.match(unknown.stderr, /there is no account nobody@x/);
    const none = await fleet(...words('device:create --email alone@x --imei 35000000000013 --organization'));
    assert.equal(none.code, 1);
    assert.match(
      none.stderr,
      /alone@x belongs to no organization; give it one with account:update --organization/,
    );
    assert.equal((await sql`select 1 from device where imei = '35000000000013'`).length, 0);
  });

  const groups = Array.from({ length: 51 }, (_, index) => index).join(',');
  const misuse: readonly [string[], RegExp][] = [
    [['--email', 'alone@x'], /--imei is missing/],
    [['--email', 'alone@x', '--imei', '3500000000000'], /--imei is not an IMEI of 14 to 17 digits/],
    [['--email', 'alone@x', '--imei', '350000000000000000'], /--imei is not/],
    [['--email', 'alone@x', '--imei', '35000000000001x'], /--imei is not/],
    [['--email', 'alone@x', '--imei', '35000000000014', '--plate', ''], /--plate is blank/],
    [
      ['--email', 'alone@x', '--imei', '35000000000014', '--groups', groups],
      /--groups has more than 50 groups/,
    ],
    [
      ['--email', 'alone@x', '--imei', '35000000000014', '--groups', 'x'.repeat(101)],
      /--groups has a group that is longer/,
    ],
    [
      ['--email', 'alone@x', '--imei', '35000000000014', '--organization=yes'],
      /unknown option '--organization=yes'/,
    ],
  ];
  for (const [argv, message] of misuse) {
    test(`is not understood with ${argv.slice(2).join(' ').slice(0, 60)}`, async () => {
      const { code, stdout, stderr } = await fleet('device:create', ...argv);
      assert.deepEqual([code, stdout], [2, '']);
      assert.match(stderr, message);
    });
  }
});
