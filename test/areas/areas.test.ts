import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { StoredArea } from '../../src/areas/area.ts';
import {
  copyAreas,
  insertArea,
  insertAreas,
  isExternalIdTaken,
  lockAreasByExternalId,
  lockAreaWorlds,
  moveArea,
  selectAreasByExternalId,
  selectAreasById,
  updateArea,
} from '../../src/areas/areas.sql.ts';
import { openSql, type Sql } from '../../src/postgres/sql.ts';
import { insertAccount, upsertOrganization } from '../../src/tenants/accounts.sql.ts';
import { BODIES, CIRCLE, POLYGON, TRACK, validArea } from '../support/http/areas.ts';
import { createDatabase } from '../support/postgres/postgres.ts';

let sql: Sql;
let accounts = 0;
before(async () => {
  sql = openSql((await createDatabase()).url, { maxConnections: 4, name: 'test' });
});
after(() => sql.end());

/** An account of its own, as the owner of areas. */
async function newOwner(organization?: string) {
  const email = `owner${++accounts}@x`;
  return sql.begin(async (tx) => {
    const organizationId =
      organization === undefined ? null : (await upsertOrganization(tx, organization)).id;
    const { id, worldId } = await insertAccount(tx, {
      email,
      name: 'A',
      organizationId,
      plan: 'pro',
      passwordHash: null,
    });
    return { accountId: id, worldId };
  });
}
type Owner = Awaited<ReturnType<typeof newOwner>>;

async function add(owner: Owner, body: object): Promise<StoredArea> {
  const { definition, measures } = validArea(body);
  const area = await sql.begin((tx) => insertArea(tx, owner, definition, measures));
  assert.ok(area);
  return area;
}

const codesOf = (areas: readonly StoredArea[]) => areas.map((area) => area.definition.externalId);

describe('a stored area', () => {
  const bodies = {
    ...BODIES,
    'polygon of 2000 odd numbers': {
      ...POLYGON,
      points: Array.from({ length: 2_000 }, (_, n) => {
        const angle = (n / 2_000) * 2 * Math.PI;
        return { lat: 10 + Math.sin(angle) / 3, lng: 10 + Math.cos(angle) / 7 };
      }),
    },
    'track over the antimeridian': {
      ...TRACK,
      points: [
        { lat: 65, lng: 179.5 },
        { lat: 66, lng: -179.5 },
      ],
      buffer_m: 5,
    },
    'circle on the pole': { ...CIRCLE, center: { lat: 90, lng: -180 }, radius_m: 100_000 },
    'everything set': {
      ...CIRCLE,
      name: "'; drop table area; -- è 𝄞",
      color: '#ABCdef',
      external_id: 'a/b:c@d#e-f_g.h',
      dwell_seconds: 86_400,
    },
  };
  for (const [title, body] of Object.entries(bodies)) {
    test(`is read back to the last bit: ${title}`, async () => {
      const owner = await newOwner();
      const { definition, measures } = validArea(body);
      const area = await add(owner, body);
      assert.deepEqual(area, {
        ...owner,
        id: area.id,
        definition,
        measures,
        createdAtMs: area.createdAtMs,
        revision: 1,
      });
      assert.ok(Math.abs(area.createdAtMs - Date.now()) < 60_000);
      assert.deepEqual(await selectAreasById(sql, [area.id]), [area]);
      const copied: StoredArea[] = [];
      await sql.begin((tx) => copyAreas(tx, (areas) => void copied.push(...areas)));
      assert.deepEqual(
        copied.find(({ id }) => id === area.id),
        area,
      );
    });
  }

  test('is replaced as a whole by an update, which raises its revision and keeps its age', async () => {
    const owner = await newOwner();
    const area = await add(owner, { ...CIRCLE, external_id: 'x' });
    const next = validArea({ ...TRACK, name: 'New' });
    const changed = await sql.begin((tx) => updateArea(tx, area.id, next.definition, next.measures));
    assert.deepEqual(changed, { ...area, definition: next.definition, measures: next.measures, revision: 2 });
    assert.deepEqual(await selectAreasById(sql, [area.id]), [changed]);
  });
});

describe('a code', () => {
  test('is taken once per account: insert says so, update throws', async () => {
    const [owner, other] = [await newOwner(), await newOwner()];
    const first = await add(owner, { ...CIRCLE, external_id: 'x' });
    const second = await add(owner, CIRCLE);
    await add(other, { ...CIRCLE, external_id: 'x' });
    const { definition, measures } = validArea({ ...CIRCLE, external_id: 'x' });
    assert.equal(await sql.begin((tx) => insertArea(tx, owner, definition, measures)), undefined);
    await assert.rejects(
      sql.begin((tx) => updateArea(tx, second.id, definition, measures)),
      isExternalIdTaken,
    );
    assert.equal((await sql.begin((tx) => updateArea(tx, first.id, definition, measures))).revision, 2);
  });

  test('finds its area by exact text, in the namespace of its account, the lock in the order of ids', async () => {
    const [owner, other] = [await newOwner(), await newOwner()];
    for (const external_id of ['b', 'a', 'A', 'c']) await add(owner, { ...CIRCLE, external_id });
    await add(other, { ...CIRCLE, external_id: 'a' });
    const found = await selectAreasByExternalId(sql, owner.accountId, ['a', 'c', 'none']);
    assert.deepEqual(codesOf(found).toSorted(), ['a', 'c']);
    const locked = await sql.begin((tx) => lockAreasByExternalId(tx, owner.accountId, ['c', 'a', 'b', 'B']));
    assert.deepEqual(codesOf(locked), ['b', 'a', 'c']);
    assert.deepEqual(await selectAreasByExternalId(sql, owner.accountId, []), []);
  });
});

describe('many areas at once', () => {
  test('get ids in their order, beyond what one statement holds', async () => {
    const owner = await newOwner();
    const areas = Array.from({ length: 61 }, (_, n) => validArea({ ...TRACK, name: `Road ${n}` }));
    const ids = await sql.begin((tx) => insertAreas(tx, owner, areas));
    assert.ok(ids);
    const byId = new Map((await selectAreasById(sql, ids)).map((area) => [area.id, area.definition.name]));
    assert.deepEqual(
      ids.map((id) => byId.get(id)),
      areas.map(({ definition }) => definition.name),
    );
  });

  test('are refused as a whole when one of their codes exists', async () => {
    const owner = await newOwner();
    await add(owner, { ...CIRCLE, external_id: 'x' });
    const areas = ['a', 'b', 'x'].map((external_id) => validArea({ ...CIRCLE, external_id }));
    assert.equal(await sql.begin((tx) => insertAreas(tx, owner, areas)), null);
    assert.deepEqual(await sql.begin((tx) => insertAreas(tx, owner, [])), []);
  });
});

describe('the homes of an area', () => {
  test('are its world, that of its account, and that of the organization, if any', async () => {
    const [alone, member] = [await newOwner(), await newOwner('Haulage')];
    const [lonely, own] = [await add(alone, CIRCLE), await add(member, CIRCLE)];
    await sql.begin(async (tx) => {
      assert.deepEqual(await lockAreaWorlds(tx, lonely.id), {
        worldId: alone.worldId,
        accountWorldId: alone.worldId,
        organizationWorldId: null,
      });
      const homes = await lockAreaWorlds(tx, own.id);
      assert.ok(homes?.organizationWorldId);
      await moveArea(tx, own.id, homes.organizationWorldId);
      assert.deepEqual(await lockAreaWorlds(tx, own.id), { ...homes, worldId: homes.organizationWorldId });
      assert.equal(await lockAreaWorlds(tx, Number.MAX_SAFE_INTEGER), undefined);
    });
    const [moved] = await selectAreasById(sql, [own.id]);
    assert.deepEqual([moved?.revision, moved?.accountId], [2, member.accountId]);
  });
});
