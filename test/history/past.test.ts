import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import type { StoredArea } from '../../src/areas/area.ts';
import { deleteArea, insertArea, moveArea, updateArea } from '../../src/areas/areas.sql.ts';
import { prunePast, trimPastShapes } from '../../src/history/past.sql.ts';
import { openSql, type Sql } from '../../src/postgres/sql.ts';
import { insertAccount, updateAccount, upsertOrganization } from '../../src/tenants/accounts.sql.ts';
import { CIRCLE, POLYGON, validArea } from '../support/http/areas.ts';
import { createDatabase } from '../support/postgres/postgres.ts';

async function open(t: TestContext): Promise<Sql> {
  const { url, drop } = await createDatabase();
  const sql = openSql(url, { maxConnections: 2, name: 'test' });
  t.after(async () => {
    await sql.end();
    await drop();
  });
  return sql;
}

interface Owner {
  readonly accountId: number;
  readonly worldId: number;
  readonly organizationId: number;
  readonly sharedWorldId: number;
}

const newOwner = (sql: Sql): Promise<Owner> =>
  sql.begin(async (tx) => {
    const { id: organizationId, worldId: sharedWorldId } = await upsertOrganization(tx, 'Acme');
    const draft = { email: 'a@x', name: 'A', organizationId, plan: 'pro', passwordHash: null };
    const { id: accountId, worldId } = await insertAccount(tx, draft);
    return { accountId, worldId, organizationId, sharedWorldId };
  });

async function add(sql: Sql, owner: Owner, body: object): Promise<StoredArea> {
  const { definition, measures } = validArea(body);
  const area = await sql.begin((tx) => insertArea(tx, owner, definition, measures));
  assert.ok(area);
  return area;
}

function change(sql: Sql, areaId: number, body: object): Promise<StoredArea> {
  const { definition, measures } = validArea(body);
  return sql.begin((tx) => updateArea(tx, areaId, definition, measures));
}

interface Revision {
  readonly revision: number;
  readonly world_id: number;
  readonly type: string;
  readonly radius_m: number | null;
  readonly dwell_seconds: number;
  readonly valid_from: Date;
  readonly valid_to: Date | null;
}

async function revisions(sql: Sql, areaId: number): Promise<Revision[]> {
  const rows = await sql<Revision[]>`select * from area_revision where area_id = ${areaId} order by revision`;
  return [...rows];
}

describe('the past of an area', () => {
  test('has every shape, dwell and world it had, one after the other without a gap', async (t) => {
    const sql = await open(t);
    const owner = await newOwner(sql);
    const area = await add(sql, owner, CIRCLE);
    await change(sql, area.id, { ...CIRCLE, name: 'New name', color: '#123456' });
    await change(sql, area.id, { ...CIRCLE, dwell_seconds: 60 });
    await change(sql, area.id, { ...CIRCLE, radius_m: 501, dwell_seconds: 60 });
    await sql.begin((tx) => moveArea(tx, area.id, owner.sharedWorldId));
    const last = await change(sql, area.id, POLYGON);
    const kept = await revisions(sql, area.id);
    const forms = kept.map((each) => [each.type, each.radius_m, each.dwell_seconds, each.world_id]);
    assert.deepEqual(forms, [
      ['circle', 500, 0, owner.worldId],
      ['circle', 500, 60, owner.worldId],
      ['circle', 501, 60, owner.worldId],
      ['circle', 501, 60, owner.sharedWorldId],
      ['polygon', null, 0, owner.sharedWorldId],
    ]);
    assert.equal(kept.at(-1)?.revision, last.revision);
    // To the bit.
    const differing = await sql`
      select 1 from area a join area_revision r on r.area_id = a.id and r.valid_to is null
      where (a.type, a.center_lat, a.center_lng, a.radius_m, a.buffer_m, a.points, a.dwell_seconds, a.world_id)
        is distinct from
        (r.type, r.center_lat, r.center_lng, r.radius_m, r.buffer_m, r.points, r.dwell_seconds, r.world_id)`;
    assert.equal(differing.length, 0);
    const times = kept.map(({ valid_from }) => valid_from.getTime());
    assert.deepEqual(
      kept.map(({ valid_to }) => valid_to?.getTime() ?? null),
      [...times.slice(1), null],
    );
  });

  test('has no more vertices than its account may have, and the oldest shapes go first', async (t) => {
    const sql = await open(t);
    const owner = await newOwner(sql);
    const draft = { email: 'b@x', name: 'B', organizationId: null, plan: 'enterprise', passwordHash: null };
    const { id: accountId, worldId } = await sql.begin((tx) => insertAccount(tx, draft));
    const victim = await add(sql, { ...owner, accountId, worldId }, POLYGON);
    await change(sql, victim.id, { ...POLYGON, dwell_seconds: 1 });
    const vertices = POLYGON.points.length;
    const past = async () => {
      const [row] = await sql<{ past: number; counted: number }[]>`
        select coalesce(sum(octet_length(r.points) / 16), 0)::int as past,
          (select past_vertices from area_usage where account_id = ${owner.accountId})::int as counted
        from area_revision r join area a on a.id = r.area_id
        where a.account_id = ${owner.accountId} and r.valid_to is not null`;
      assert.equal(row?.counted, row?.past);
      return row?.past;
    };
    const [one, other] = [await add(sql, owner, POLYGON), await add(sql, owner, POLYGON)];
    for (let n = 1; n <= 10; n++) {
      await change(sql, one.id, { ...POLYGON, dwell_seconds: n });
      await change(sql, other.id, { ...POLYGON, dwell_seconds: n });
    }
    assert.equal(await past(), 20 * vertices);
    assert.equal(await trimPastShapes(sql), 0);
    await sql`update plan set max_area_vertices = ${5 * vertices} where name = 'pro'`;
    assert.equal(await trimPastShapes(sql), 15);
    assert.equal(await trimPastShapes(sql), 0);
    assert.equal(await past(), 5 * vertices);
    const dwells = async (areaId: number) => (await revisions(sql, areaId)).map((row) => row.dwell_seconds);
    assert.deepEqual(
      [await dwells(one.id), await dwells(other.id)],
      [
        [8, 9, 10],
        [7, 8, 9, 10],
      ],
    );
    assert.equal((await revisions(sql, victim.id)).length, 2);
    for (let n = 1; n <= 40; n++) await change(sql, one.id, { ...POLYGON, dwell_seconds: 100 + n });
    await past();
    await prunePast(sql, Date.now() + 1_000);
    assert.equal(await past(), 0);
    await change(sql, one.id, POLYGON);
    await sql.begin((tx) => deleteArea(tx, [owner.worldId], one.id));
    assert.equal(await past(), 0);
  });

  test('is bounded, and goes with the area', async (t) => {
    const sql = await open(t);
    const owner = await newOwner(sql);
    const { id } = await add(sql, owner, CIRCLE);
    const other = await add(sql, owner, CIRCLE);
    for (let n = 1; n <= 40; n++) await change(sql, id, { ...CIRCLE, radius_m: 500 + n });
    const kept = await revisions(sql, id);
    assert.deepEqual(
      kept.map(({ radius_m }) => radius_m),
      Array.from({ length: 32 }, (_, n) => 509 + n),
    );
    await sql.begin((tx) => deleteArea(tx, [owner.worldId], id));
    assert.equal((await revisions(sql, id)).length, 0);
    assert.equal((await revisions(sql, other.id)).length, 1);
  });
});

test('moves of devices and ends of memberships are kept, and nothing else of them', async (t) => {
  const sql = await open(t);
  const { accountId, worldId, sharedWorldId } = await newOwner(sql);
  await sql`insert into device (imei, world_id) values ('350000000000001', ${worldId})`;
  await sql`update device set name = 'A', world_id = ${worldId}`;
  await sql`update device set world_id = ${sharedWorldId}`;
  await sql`update device set name = 'B'`;
  const moves = await sql`select world_id from device_move`;
  assert.deepEqual([...moves], [{ world_id: worldId }]);
  await sql.begin((tx) => updateAccount(tx, accountId, { name: 'B' }));
  await sql.begin((tx) => updateAccount(tx, accountId, { organizationId: null }));
  await sql.begin(async (tx) => {
    await updateAccount(tx, accountId, { organizationId: (await upsertOrganization(tx, 'Other')).id });
  });
  const ends =
    await sql`select organization_world_id from membership_end where account_id = ${accountId} order by id`;
  assert.deepEqual([...ends], [{ organization_world_id: sharedWorldId }, { organization_world_id: null }]);
});

test('what is older than every point is removed, and what may be asked for stays', async (t) => {
  const sql = await open(t);
  const owner = await newOwner(sql);
  const { id } = await add(sql, owner, CIRCLE);
  await change(sql, id, { ...CIRCLE, radius_m: 200 });
  await change(sql, id, { ...CIRCLE, radius_m: 300 });
  await sql`insert into device (imei, world_id) values ('350000000000001', ${owner.worldId})`;
  await sql`update device set world_id = ${owner.sharedWorldId}`;
  await sql.begin((tx) => updateAccount(tx, owner.accountId, { organizationId: null }));
  const longAgoMs = Date.now() - 1e9;
  await sql`update area_revision set valid_to = ${new Date(longAgoMs)} where radius_m = 500`;
  assert.equal(await prunePast(sql, longAgoMs), 0);
  assert.equal(await prunePast(sql, longAgoMs + 1), 1);
  assert.deepEqual(
    (await revisions(sql, id)).map(({ radius_m }) => radius_m),
    [200, 300],
  );
  assert.equal(await prunePast(sql, Date.now() + 60_000), 3);
  assert.deepEqual(
    (await revisions(sql, id)).map(({ radius_m }) => radius_m),
    [300],
  );
});
