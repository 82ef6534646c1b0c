import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import {
  COMMAND_STATUSES,
  finishCommand,
  insertCommand,
  selectCommands,
} from '../../src/devices/commands.sql.ts';
import { insertDevices } from '../../src/devices/devices.sql.ts';
import { openSql, type Sql } from '../../src/postgres/sql.ts';
import { createDatabase } from '../support/postgres/postgres.ts';

const IMEI = '350000000000017';
const OTHER = '350000000000025';

let sql: Sql;
let worldId: number;
let otherWorldId: number;
before(async () => {
  sql = openSql((await createDatabase()).url, { maxConnections: 2, name: 'test' });
  const [a, b] = await sql<
    { id: number }[]
  >`insert into world select from generate_series(1, 2) returning id`;
  worldId = a?.id ?? 0;
  otherWorldId = b?.id ?? 0;
  const fields = { name: null, plate: null, model: null, groups: [] };
  await sql.begin((tx) =>
    insertDevices(tx, [
      { imei: IMEI, worldId, ...fields },
      { imei: OTHER, worldId: otherWorldId, ...fields },
    ]),
  );
});
after(() => sql.end());

async function queue(count: number): Promise<number[]> {
  await sql`delete from command`;
  const ids: number[] = [];
  for (let index = 0; index < count; index++) ids.push((await insertCommand(sql, IMEI, 'reboot')) ?? 0);
  return ids;
}

describe('the queue of a device', () => {
  test('comes newest first, of equal times the higher id, up to the limit', async () => {
    const ids = await queue(4);
    const newest = ids.toReversed();
    const read = async (limit: number) =>
      (await selectCommands(sql, [worldId], IMEI, COMMAND_STATUSES, limit)).map(({ id }) => id);
    assert.deepEqual(await read(10), newest);
    assert.deepEqual(await read(3), newest.slice(0, 3));
    await sql`update command set queued_at = '2026-01-01'`;
    assert.deepEqual(await read(10), newest);
    await sql`update command set queued_at = '2026-01-02' where id = ${ids[1] ?? 0}`;
    assert.deepEqual((await read(1))[0], ids[1]);
  });

  test('is only shown to the worlds that may see the device', async () => {
    const [id] = await queue(1);
    const see = async (worldIds: number[], imei: string) =>
      (await selectCommands(sql, worldIds, imei, COMMAND_STATUSES, 10)).map((command) => command.id);
    assert.deepEqual(await see([worldId], IMEI), [id]);
    assert.deepEqual(await see([otherWorldId, worldId], IMEI), [id]);
    assert.deepEqual(await see([otherWorldId], IMEI), []);
    assert.deepEqual(await see([], IMEI), []);
    assert.deepEqual(await see([worldId, otherWorldId], OTHER), []);
  });

  test('can be narrowed to some statuses', async () => {
    const [first, second, third] = await queue(3);
    await finishCommand(sql, first ?? 0, 'sent');
    await finishCommand(sql, second ?? 0, 'canceled');
    const read = async (statuses: ('pending' | 'sent' | 'canceled')[]) =>
      (await selectCommands(sql, [worldId], IMEI, statuses, 10)).map(({ id }) => id);
    assert.deepEqual(await read(['pending', 'sent']), [third, first]);
    assert.deepEqual(await read(['canceled']), [second]);
    assert.deepEqual(await read([]), []);
  });

  test('says when a command was queued, and when it was sent', async () => {
    const [id] = await queue(1);
    const before = (await selectCommands(sql, [worldId], IMEI, COMMAND_STATUSES, 1))[0];
    assert.deepEqual(before, {
      id,
      type: 'reboot',
      status: 'pending',
      queuedAtMs: before?.queuedAtMs,
      sentAtMs: null,
    });
    assert.ok(Math.abs((before?.queuedAtMs ?? 0) - Date.now()) < 60_000);
    await finishCommand(sql, id ?? 0, 'sent');
    const sent = (await selectCommands(sql, [worldId], IMEI, COMMAND_STATUSES, 1))[0];
    assert.ok((sent?.sentAtMs ?? 0) >= (before?.queuedAtMs ?? Number.POSITIVE_INFINITY));
  });
});

test('a command of an unknown device is not queued', async () => {
  assert.equal(await insertCommand(sql, '350000000000033', 'reboot'), undefined);
});

test('only a pending command ends, and the caller learns what it was', async () => {
  const [id = 0] = await queue(1);
  assert.equal(await finishCommand(sql, id, 'sent'), 'pending');
  assert.equal(await finishCommand(sql, id, 'canceled'), 'sent');
  assert.equal(await finishCommand(sql, id + 1, 'canceled'), undefined);
  assert.equal((await selectCommands(sql, [worldId], IMEI, COMMAND_STATUSES, 1))[0]?.status, 'sent');
});
