import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { StoredArea } from '../../src/areas/area.ts';
import { type Area, AreaCatalog } from '../../src/areas/areaCatalog.memory.ts';
import {
  type AreaOwner,
  copyAreas,
  insertArea,
  passingVertices,
  selectAreasById,
  updateArea,
} from '../../src/areas/areas.sql.ts';
import { replaceAreas } from '../../src/coherence/applyChanges.ts';
import { inOneGo } from '../../src/lib/workTurns.ts';
import { openSql, type Sql } from '../../src/postgres/sql.ts';
import { insertAccount } from '../../src/tenants/accounts.sql.ts';
import { BODIES, CIRCLE, POLYGON, TRACK, validArea } from '../support/http/areas.ts';
import { createDatabase } from '../support/postgres/postgres.ts';

let sql: Sql;
let accounts = 0;
before(async () => {
  sql = openSql((await createDatabase()).url, { maxConnections: 4, name: 'test' });
});
after(() => sql.end());

/** An account of its own, as the owner of areas. */
async function newOwner(): Promise<AreaOwner> {
  const account = {
    email: `owner${++accounts}@x`,
    name: 'A',
    organizationId: null,
    plan: 'pro',
    passwordHash: null,
  };
  const { id, worldId } = await sql.begin((tx) => insertAccount(tx, account));
  return { accountId: id, worldId };
}

async function add(owner: AreaOwner, body: object): Promise<StoredArea> {
  const { definition, measures } = validArea(body);
  const area = await sql.begin((tx) => insertArea(tx, owner, definition, measures));
  assert.ok(area);
  return area;
}

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

  test('has its own vertices in memory after a reload, where those that were compared are overwritten', async () => {
    const owner = await newOwner();
    const catalog = new AreaCatalog();
    const reload = async () => {
      const ids = new Set<number>();
      const replace = (areas: Iterable<StoredArea>) => inOneGo(replaceAreas(catalog, areas, ids));
      await sql.begin((tx) => copyAreas(tx, replace, passingVertices()));
      for (const stored of await selectAreasById(sql, [...ids])) {
        const { shape: _, ...held } = catalog.area([stored.worldId], stored.id) as Area;
        assert.deepEqual(held, stored);
      }
    };
    const areas: StoredArea[] = [];
    for (const body of [...Object.values(bodies), POLYGON, TRACK]) areas.push(await add(owner, body));
    await reload();
    const { definition, measures } = validArea({ ...TRACK, name: 'New', points: TRACK.points.toReversed() });
    await sql.begin((tx) => updateArea(tx, areas[0]?.id as number, definition, measures));
    await reload();
  });

  test('is replaced as a whole by an update, which raises its revision and keeps its age', async () => {
    const owner = await newOwner();
    const area = await add(owner, { ...CIRCLE, external_id: 'x' });
    const next = validArea({ ...TRACK, name: 'New' });
    const changed = await sql.begin((tx) => updateArea(tx, area.id, next.definition, next.measures));
    assert.deepEqual(changed, { ...area, definition: next.definition, measures: next.measures, revision: 2 });
    assert.deepEqual(await selectAreasById(sql, [area.id]), [changed]);
  });
});
