import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { insertArea } from '../../../src/areas/areas.sql.ts';
import { openSql, type Sql } from '../../../src/postgres/sql.ts';
import { insertAccount, upsertOrganization } from '../../../src/tenants/accounts.sql.ts';
import { CIRCLE, validArea } from '../../support/http/areas.ts';
import { createDatabase } from '../../support/postgres/postgres.ts';
import { watchFeed } from '../feed.ts';
import { type FleetRun, runFleet } from '../runFleet.ts';

let url: string;
let sql: Sql;
let accounts = 0;
before(async () => {
  url = (await createDatabase()).url;
  sql = openSql(url, { maxConnections: 2, name: 'test' });
});
after(() => sql.end());

const fleet = (...argv: string[]): Promise<FleetRun> => runFleet(url, argv);

/** An account with an area, its world and that of its organization. */
async function newArea(organization?: string) {
  return sql.begin(async (tx) => {
    const home = organization === undefined ? null : await upsertOrganization(tx, organization);
    const { id: accountId, worldId } = await insertAccount(tx, {
      email: `owner${++accounts}@x`,
      name: 'A',
      organizationId: home?.id ?? null,
      plan: 'pro',
      passwordHash: null,
    });
    const { definition, measures } = validArea({ ...CIRCLE, external_id: 'x' });
    const area = await insertArea(tx, { accountId, worldId }, definition, measures);
    assert.ok(area);
    return { id: area.id, accountId, worldId, sharedWorldId: home?.worldId ?? null };
  });
}

async function areaRow(id: number) {
  const [row] = await sql<{ world_id: number; account_id: number; external_id: string; revision: number }[]>`
    select world_id, account_id, external_id, revision from area where id = ${id}`;
  assert.ok(row);
  return row;
}

describe('area:share and area:unshare', () => {
  test('move an area to its organization and back, notify both worlds, and leave maker and code alone', async () => {
    const { id, accountId, worldId, sharedWorldId } = await newArea('Haulage');
    for (const [command, shared, home, revision] of [
      ['area:share', true, sharedWorldId, 2],
      ['area:unshare', false, worldId, 3],
    ] as const) {
      const { result, rows, raised } = await watchFeed(sql, () => fleet(command, '--id', String(id)));
      assert.deepEqual([result.code, result.json], [0, { id, shared }]);
      assert.deepEqual(await areaRow(id), {
        world_id: home,
        account_id: accountId,
        external_id: 'x',
        revision,
      });
      const both = [worldId, sharedWorldId as number].toSorted((a, b) => a - b);
      assert.deepEqual(
        rows.toSorted((a, b) => a.worldId - b.worldId),
        both.map((world) => ({ kind: 'area', worldId: world, entityId: id })),
      );
      assert.deepEqual(
        raised.toSorted((a, b) => a - b),
        both,
      );
    }
  });

  test('again is no failure, and the area stays where it is', async () => {
    const { id, worldId, sharedWorldId } = await newArea('Haulage');
    assert.deepEqual((await fleet('area:unshare', '--id', String(id))).json, { id, shared: false });
    assert.equal((await areaRow(id)).world_id, worldId);
    for (let n = 0; n < 2; n++)
      assert.deepEqual((await fleet('area:share', '--id', String(id))).json, { id, shared: true });
    assert.equal((await areaRow(id)).world_id, sharedWorldId);
  });

  test('without an organization an area cannot be shared, but unshared', async () => {
    const { id, worldId } = await newArea();
    const rejected = await fleet('area:share', '--id', String(id));
    assert.notEqual(rejected.code, 0);
    assert.deepEqual([rejected.stdout, rejected.json], ['', undefined]);
    assert.match(rejected.stderr, /organization/);
    assert.deepEqual((await fleet('area:unshare', '--id', String(id))).json, { id, shared: false });
    assert.equal((await areaRow(id)).world_id, worldId);
  });

  test('an account that moved on gets its area back, or shares it with the new organization', async () => {
    const { id, accountId, worldId } = await newArea('Haulage');
    await fleet('area:share', '--id', String(id));
    const taxi = await sql.begin((tx) => upsertOrganization(tx, 'Taxi'));
    await sql`update account set organization_id = ${taxi.id} where id = ${accountId}`;
    await fleet('area:share', '--id', String(id));
    assert.equal((await areaRow(id)).world_id, taxi.worldId);
    await fleet('area:unshare', '--id', String(id));
    assert.equal((await areaRow(id)).world_id, worldId);
  });

  const rejected: readonly (readonly string[])[] = [
    ['--id', '9007199254740991'],
    ['--id', '0'],
    ['--id', '-1'],
    ['--id', '1.5'],
    ['--id', 'x'],
    ['--id', ''],
    [],
    ['1'],
  ];
  for (const argv of rejected) {
    test(`${argv.join(' ') || 'no id'} is refused, on stderr`, async () => {
      for (const command of ['area:share', 'area:unshare']) {
        const { result, rows } = await watchFeed(sql, () => fleet(command, ...argv));
        assert.notEqual(result.code, 0);
        assert.equal(result.stdout, '');
        assert.notEqual(result.stderr, '');
        assert.deepEqual(rows, []);
      }
    });
  }
});
