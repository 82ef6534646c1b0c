import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { fleetDatabase } from '../runFleet.ts';

const database = fleetDatabase(
  'account:create --email alone@x --name A',
  'account:create --email member@x --name B --organization Acme',
);

async function worldsOf(email: string): Promise<{ own: number; organization: number | null }> {
  const [row] = await database.sql<{ own: number; organization: number | null }[]>`
    select a.world_id as own, o.world_id as organization
    from account a left join organization o on o.id = a.organization_id where a.email = ${email}`;
  assert.ok(row);
  return row;
}

describe('device:create', () => {
  test('adds a private device with its state and notifies the pods', async () => {
    const { own } = await worldsOf('member@x');
    const { result, rows, raised } = await database.watch(
      "device:create --email member@x --imei ' 350000000000017 ' --name ' Truck ' --plate 'RM 1' " +
        "--model FMB920 --groups ' north, ,cold,north'",
    );
    assert.deepEqual([result.code, result.json], [0, { imei: '350000000000017' }]);
    const [row] = await database.sql`
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
    const { result, raised } = await database.watch(
      'device:create --email member@x --imei 35000000000011 --organization',
    );
    assert.equal(result.code, 0);
    const [row] =
      await database.sql`select world_id, name, plate, device_model, groups from device where imei = '35000000000011'`;
    assert.deepEqual(
      { ...row },
      { world_id: organization, name: null, plate: null, device_model: null, groups: [] },
    );
    assert.deepEqual(raised, [organization]);
  });

  test('refuses an IMEI that is registered, whoever owns it', async () => {
    await database.fleet('device:create --email alone@x --imei 35000000000012 --name mine');
    for (const email of ['alone@x', 'member@x']) {
      const { result, rows } = await database.watch(
        `device:create --email ${email} --imei 35000000000012 --name yours`,
      );
      assert.deepEqual([result.code, result.stdout, rows], [1, '', []]);
      assert.match(
        result.stderr,
        /there is a device 35000000000012 already; change its fields with device:import/,
      );
    }
    const [row] = await database.sql`select name from device where imei = '35000000000012'`;
    assert.equal(row?.['name'], 'mine');
  });

  test('refuses an unknown account, and an organization where there is none', async () => {
    const none = /alone@x belongs to no organization; give it one with account:update --organization/;
    for (const [options, message] of [
      ['--email nobody@x', /there is no account nobody@x/],
      ['--email alone@x --organization', none],
    ] as const)
      await database.refuses(`device:create --imei 35000000000013 ${options}`, 1, message);
    assert.equal((await database.sql`select 1 from device where imei = '35000000000013'`).length, 0);
  });

  test('is not understood without an IMEI, or with what is none', async () => {
    const groups = Array.from({ length: 51 }, (_, index) => index).join(',');
    for (const [options, message] of [
      ['', /--imei is missing/],
      ['--imei 3500000000000', /--imei is not an IMEI of 14 to 17 digits/],
      ['--imei 350000000000000000', /--imei is not/],
      ['--imei 35000000000001x', /--imei is not/],
      ["--imei 35000000000014 --plate ''", /--plate is blank/],
      [`--imei 35000000000014 --groups ${groups}`, /--groups has more than 50 groups/],
      [`--imei 35000000000014 --groups ${'x'.repeat(101)}`, /--groups has a group that is longer/],
      ['--imei 35000000000014 --organization=yes', /unknown option '--organization=yes'/],
    ] as const)
      await database.refuses(`device:create --email alone@x ${options}`, 2, message);
  });
});
