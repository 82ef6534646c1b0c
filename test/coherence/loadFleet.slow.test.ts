import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { selectChanges } from '../../src/changelog/changes.sql.ts';
import { emptyMemory } from '../../src/coherence/applyChanges.ts';
import { loadFleet } from '../../src/coherence/fillMemory.ts';
import { inOneGo, type Steps, WorkTurns } from '../../src/lib/workTurns.ts';
import { openSql, type Sql } from '../../src/postgres/sql.ts';
import { createDatabase } from '../support/postgres/postgres.ts';

const DEVICES = 12_345;

let sql: Sql;
let drop: () => Promise<void>;
let worldId: number;
before(async () => {
  const database = await createDatabase();
  drop = database.drop;
  sql = openSql(database.url, { maxConnections: 4, name: 'test' });
  const [world] = await sql<{ id: number }[]>`insert into world (version) values (42) returning id`;
  worldId = world?.id ?? 0;
  await sql`
    with created as (
      insert into device (imei, world_id, groups)
      select 350000000000000 + n, ${worldId}, array['g'] from generate_series(1, ${DEVICES}::int) as n returning id, imei
    )
    insert into device_state (device_id, recorded_at, latitude, longitude, altitude_m, speed_kmh, moved_at)
    select id, case when imei::bigint % 2 = 0 then now() end, imei::bigint % 90, 2, 3, 4, now() from created`;
});
after(async () => {
  await sql.end();
  await drop();
});

const load = async (onProgress: (loaded: number, total: number) => void = () => undefined) => {
  const memory = emptyMemory();
  return { ...memory, cursor: await loadFleet(sql, new WorkTurns<string>(3), memory, onProgress) };
};

describe('loading memory', () => {
  test('brings every device with its position, and the versions of worlds', async () => {
    const { fleet } = await load();
    assert.equal(fleet.deviceCount, DEVICES);
    assert.equal(fleet.positionedCount, Math.floor(DEVICES / 2));
    assert.equal(fleet.worldVersion(worldId), 42);
    const device = fleet.device([worldId], '350000000000002');
    assert.deepEqual(device?.fields.groups, ['g']);
    assert.deepEqual(
      [device.position?.lat, device.position?.lng, device.position?.odometerKm],
      [82, 2, null],
    );
    assert.equal(fleet.device([worldId], '350000000000003')?.position, null);
  });

  test('reports at the end that all is loaded', async () => {
    const reports: string[] = [];
    await load((loaded, total) => reports.push(`${loaded} of ${total}`));
    assert.equal(reports.at(-1), `${DEVICES} of ${DEVICES}`);
  });

  test('builds indexes when its transaction has ended, however long that takes', async () => {
    const memory = emptyMemory();
    const open: unknown[] = [];
    const run = async <T>(_key: string, steps: Steps<T>): Promise<T> => {
      const transactions = await sql`
        select state, query from pg_stat_activity
        where datname = current_database() and xact_start is not null and pid <> pg_backend_pid()
          and backend_type = 'client backend'`;
      const before = memory.fleet.positionedCount;
      const result = inOneGo(steps);
      if (memory.fleet.positionedCount > before) open.push(...transactions, 'indexed');
      return result;
    };
    await loadFleet(sql, { run }, memory, () => undefined);
    assert.deepEqual(open, ['indexed']);
  });

  test('brings who has left, and not who has come back', async () => {
    const [back, gone] = ['350000000000008', '350000000099999'];
    await sql`
      insert into device_removal (world_id, device_id, imei, at)
      select ${worldId}::bigint, id, imei, now() from device where imei = ${back}
      union all select ${worldId}::bigint, 999999, ${gone}::text, now()`;
    const { fleet } = await load();
    const query = { fromXid: 1, after: null, limit: 100_000, isWanted: () => true };
    const changes = fleet.changed([worldId], query);
    const shown = (imei: string) =>
      changes.filter((change) => imei === (change.device === null ? change.imei : change.device.imei));
    assert.deepEqual(
      [back, gone].map((imei) => shown(imei).map(({ device }) => device?.imei ?? 'left')),
      [[back], ['left']],
    );
  });

  test('following from its cursor misses nothing that was written meanwhile', async () => {
    const memory = emptyMemory();
    const put = memory.fleet.load.bind(memory.fleet);
    let writing: Promise<unknown> | undefined;
    memory.fleet.load = (...device) => {
      writing ??= (async () => sql`insert into change (kind, entity_id) values ('device', 77)`)();
      put(...device);
    };
    const { seen } = await loadFleet(sql, new WorkTurns<string>(3), memory, () => undefined);
    await writing;
    const { changes } = await selectChanges(sql, { seen, open: null });
    assert.deepEqual(
      changes.map(({ entityIds }) => entityIds),
      [[77]],
    );
  });
});
