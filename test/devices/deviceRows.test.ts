import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { copyDevices, type DeviceRow, selectDevicesById } from '../../src/devices/deviceRows.sql.ts';
import {
  type DeviceDraft,
  insertDevices,
  selectDevicesForUpdate,
  updateDevices,
} from '../../src/devices/devices.sql.ts';
import { openSql, type Sql } from '../../src/postgres/sql.ts';
import { createDatabase } from '../support/postgres/postgres.ts';

let sql: Sql;
let worldId: number;
before(async () => {
  sql = openSql((await createDatabase()).url, { maxConnections: 3, name: 'test' });
  const [row] = await sql<{ id: number }[]>`insert into world default values returning id`;
  worldId = row?.id ?? 0;
});
after(() => sql.end());

let serial = 0;
function draft(fields: Partial<DeviceDraft> = {}): DeviceDraft {
  const imei = String(35_000_000_000_000 + serial++);
  return { imei, worldId, name: null, plate: null, model: null, groups: [], ...fields };
}

test('what was stored comes back as it was, whatever the text', async () => {
  const texts = ['a,b', '{}', '"', "'", '\\', 'NULL', '', ' ', '🚚', 'line\nend', '[1,2]', 'ä\u0301'];
  const drafts = [
    ...texts.map((text) => draft({ name: text, plate: text, model: text, groups: [text, ...texts] })),
    draft(),
    draft({ groups: [] }),
  ];
  const read = await sql.begin(async (tx) => {
    await insertDevices(tx, drafts);
    return selectDevicesForUpdate(
      tx,
      drafts.map(({ imei }) => imei),
    );
  });
  assert.deepEqual(
    read.map(({ id: _id, ...device }) => device),
    drafts,
  );
});

test('writers of the same devices in opposite orders wait for each other, never in a circle', async () => {
  const drafts = Array.from({ length: 50 }, () => draft());
  await sql.begin((tx) => insertDevices(tx, drafts));
  const imeis = drafts.map(({ imei }) => imei);
  const write = (order: readonly string[]) =>
    sql.begin(async (tx) => updateDevices(tx, await selectDevicesForUpdate(tx, order)));
  await Promise.all(
    Array.from({ length: 12 }, (_, round) => write(round % 2 === 0 ? imeis : imeis.toReversed())),
  );
  for (let round = 0; round < 5; round++) {
    const fresh = Array.from({ length: 1_000 }, () => draft());
    const created = await Promise.all(
      [fresh, fresh.toReversed(), fresh].map((order) => sql.begin((tx) => insertDevices(tx, order))),
    );
    assert.equal(created.flat().length, fresh.length);
  }
});

test('copied as a whole, the devices are what they are when asked for by id', async () => {
  const odd = 'ä\u0301🚚{},"\\';
  const created = await sql.begin((tx) =>
    insertDevices(tx, [draft(), draft({ name: odd, plate: odd, model: odd, groups: [odd, '', 'g'] })]),
  );
  const ids = created.map(({ id }) => id);
  await sql`
    update device_state set recorded_at = '1999-12-31 23:59:59.9995+00', latitude = -0.1, longitude = 180,
      altitude_m = 1e-9, speed_kmh = 0, odometer_km = 48210.4, moved_at = '2026-11-20 12:00:00.123456+00'
    where device_id = ${ids[1] ?? 0}`;
  const copied: DeviceRow[] = [];
  await sql.begin((tx) =>
    copyDevices(tx, (devices) => {
      for (const device of devices) copied.push(device.taken());
    }),
  );
  const selected = await selectDevicesById(sql, ids);
  assert.equal(selected.length, 2);
  for (const row of selected)
    assert.deepEqual(
      copied.find(({ fields }) => fields.id === row.fields.id),
      row,
    );
});
