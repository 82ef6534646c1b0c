import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { openSql, type Sql } from '../../../src/postgres/sql.ts';
import { createDatabase } from '../../support/postgres/postgres.ts';

const quiet = (): void => undefined;

async function open(t: TestContext): Promise<Sql> {
  const { url, drop } = await createDatabase();
  const sql = openSql(url, { maxConnections: 2, name: 'test' });
  t.after(async () => {
    await sql.end();
    await drop();
  });
  return sql;
}

/** Two accounts; their ids are 1 and 2. */
async function addAccounts(sql: Sql): Promise<void> {
  await sql`insert into world select from generate_series(1, 2)`;
  await sql`insert into account (email, name, world_id) values ('a@x', 'A', 1), ('b@x', 'B', 2)`;
}

/** Areas of an account with this number of vertices each. */
async function addAreas(sql: Sql, accountId: number, vertices: number, count: number): Promise<void> {
  await sql`
    insert into area (world_id, account_id, name, color, type, points, dwell_seconds, south, west, north, east)
    select ${accountId}, ${accountId}, 'A', '#000000', 'polygon', decode(repeat('00', 16 * ${vertices}::int), 'hex'), 0,
      0, 0, 0, 0 from generate_series(1, ${count}::int)`;
}

async function addDevices(sql: Sql, worldId: number, first: number, count: number): Promise<void> {
  await sql`
    insert into device (imei, world_id)
    select (860000000000000 + ${first}::int + n)::text, ${worldId} from generate_series(1, ${count}::int) as n`;
}

async function counts(sql: Sql): Promise<{ areas: string[]; devices: string[] }> {
  const areas = await sql<{ text: string }[]>`
    select account_id || ': ' || areas || ' ' || vertices as text from area_usage order by account_id`;
  const devices = await sql<{ text: string }[]>`
    select world_id || ': ' || devices as text from device_usage order by world_id`;
  return { areas: areas.map(({ text }) => text), devices: devices.map(({ text }) => text) };
}

describe('the counters of quotas', () => {
  test('follow every statement, and an undone one leaves nothing', async (t) => {
    const sql = await open(t);
    await addAccounts(sql);
    await addAreas(sql, 1, 5, 3);
    await addAreas(sql, 2, 7, 2);
    await addDevices(sql, 1, 0, 3);
    await addDevices(sql, 2, 10, 2);
    assert.deepEqual(await counts(sql), { areas: ['1: 3 15', '2: 2 14'], devices: ['1: 3', '2: 2'] });
    await sql`update area set points = substr(points, 17), name = 'B'`;
    await sql`update device set name = 'B'`;
    assert.deepEqual(await counts(sql), { areas: ['1: 3 12', '2: 2 12'], devices: ['1: 3', '2: 2'] });
    await sql`update device set world_id = 1 where imei = '860000000000011'`;
    await sql`update area set world_id = 2 where account_id = 1`;
    await sql`delete from area where id in (select min(id) from area group by account_id)`;
    const expected = { areas: ['1: 2 8', '2: 1 6'], devices: ['1: 4', '2: 1'] };
    assert.deepEqual(await counts(sql), expected);
    await sql
      .begin(async (tx) => {
        await tx`delete from area`;
        throw new Error('undone');
      })
      .catch(quiet);
    await sql`delete from area where name = 'nothing'`;
    await addAreas(sql, 1, 5, 0);
    assert.deepEqual(await counts(sql), expected);
  });
});
