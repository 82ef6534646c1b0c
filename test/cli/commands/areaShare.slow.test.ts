import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { insertArea } from '../../../src/areas/areas.sql.ts';
import { insertAccount, upsertOrganization } from '../../../src/tenants/accounts.sql.ts';
import { CIRCLE, validArea } from '../../support/http/areas.ts';
import { fleetDatabase } from '../runFleet.ts';

const database = fleetDatabase();
let accounts = 0;

/** An account with an area, its world and that of its organization. */
async function newArea(organization?: string) {
  return database.sql.begin(async (tx) => {
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
  const [row] = await database.sql<
    { world_id: number; account_id: number; external_id: string; revision: number }[]
  >`
    select world_id, account_id, external_id, revision from area where id = ${id}`;
  assert.ok(row);
  return row;
}

async function move(command: 'share' | 'unshare', id: number): Promise<number> {
  const { json } = await database.fleet(`area:${command} --id ${id}`);
  assert.deepEqual(json, { id, shared: command === 'share' });
  return (await areaRow(id)).world_id;
}

describe('area:share and area:unshare', () => {
  test('move an area to its organization and back, notify both worlds, and leave maker and code alone', async () => {
    const { id, accountId, worldId, sharedWorldId } = await newArea('Haulage');
    for (const [command, shared, home, revision] of [
      ['area:share', true, sharedWorldId, 2],
      ['area:unshare', false, worldId, 3],
    ] as const) {
      const { result, rows, raised } = await database.watch(`${command} --id ${id}`);
      assert.deepEqual([result.code, result.json], [0, { id, shared }]);
      const area = { world_id: home, account_id: accountId, external_id: 'x', revision };
      assert.deepEqual(await areaRow(id), area);
      const both = [worldId, sharedWorldId as number].toSorted((a, b) => a - b);
      assert.deepEqual(
        rows.toSorted((a, b) => a.worldId - b.worldId),
        both.map((world) => ({ kind: 'area', worldId: world, entityId: id })),
      );
      assert.deepEqual(raised, both);
    }
  });

  test('again is no failure, and the area stays where it is', async () => {
    const { id, worldId, sharedWorldId } = await newArea('Haulage');
    assert.equal(await move('unshare', id), worldId);
    for (let n = 0; n < 2; n++) assert.equal(await move('share', id), sharedWorldId);
  });

  test('without an organization an area cannot be shared, but unshared', async () => {
    const { id, worldId } = await newArea();
    await database.refuses(`area:share --id ${id}`, 1, /organization/);
    assert.equal(await move('unshare', id), worldId);
  });

  test('an account that moved on gets its area back, or shares it with the new organization', async () => {
    const { id, accountId, worldId } = await newArea('Haulage');
    await move('share', id);
    const taxi = await database.sql.begin((tx) => upsertOrganization(tx, 'Taxi'));
    await database.sql`update account set organization_id = ${taxi.id} where id = ${accountId}`;
    assert.equal(await move('share', id), taxi.worldId);
    assert.equal(await move('unshare', id), worldId);
  });

  test('refuse an area that there is not, and what is no id', async () => {
    for (const command of ['area:share', 'area:unshare']) {
      await database.refuses(`${command} --id 9007199254740991`, 1, /there is no area 9007199254740991/);
      for (const argv of ['--id 0', '--id=-1', '--id 1.5', '--id x', "--id ''", '', '1'])
        await database.refuses(`${command} ${argv}`, 2, /\nusage: fleet area:/);
    }
  });
});
