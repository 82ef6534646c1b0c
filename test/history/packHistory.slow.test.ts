import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { after, before, beforeEach, describe, mock, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { insertDevices } from '../../src/devices/devices.sql.ts';
import { deleteDevice } from '../../src/devices/registerDevice.ts';
import { EventCuts } from '../../src/events/eventPartitions.sql.ts';
import { HistoryPacker, type PackPorts } from '../../src/history/packHistory.ts';
import { pointPages } from '../../src/history/points.sql.ts';
import { tidy } from '../../src/housekeeping.ts';
import { DAY_MS, weekStartMs } from '../../src/lib/time.ts';
import { ensureWeeks, PACKED_POINTS, POSITIONS } from '../../src/postgres/partitions.ts';
import { openSql, type Sql } from '../../src/postgres/sql.ts';
import { packPoints } from '../support/history/packPoints.ts';
import { createDatabase } from '../support/postgres/postgres.ts';
import { seededRandom } from '../support/seededRandom.ts';
import { IS_TORTURE } from '../support/torture.ts';
import { newTurns } from '../support/workTurns.ts';

const KILLS = IS_TORTURE ? 200 : 1;
const SEED = Number(process.env['FLEET_SEED'] ?? (IS_TORTURE ? Date.now() % 1_000_000 : 1));
const TODAY_MS = Math.floor(Date.now() / DAY_MS) * DAY_MS;
const PACK_PROCESS = new URL('../support/history/packProcess.ts', import.meta.url).pathname;

let url: string;
let sql: Sql;
let worldId: number;
before(async () => {
  ({ url } = await createDatabase());
  sql = openSql(url, { maxConnections: 4, name: 'test' });
  const [row] = await sql<{ id: number }[]>`insert into world default values returning id`;
  worldId = row?.id ?? 0;
});
after(() => sql.end());

/** A new device for each test; the points of those before are gone. */
let deviceId: number;
let devices = 0;
const imeiOf = (n: number): string => String(350_000_000_000_000 + n);
async function newDevice(): Promise<number> {
  const draft = { worldId, name: null, plate: null, model: null, groups: [] };
  const [device] = await sql.begin((tx) => insertDevices(tx, [{ imei: imeiOf(++devices), ...draft }]));
  return device?.id ?? 0;
}
beforeEach(async () => {
  await sql`delete from position`;
  await sql`delete from packed_points`;
  deviceId = await newDevice();
});

async function insertPoints(id: number, startMs: number, count: number, stepMs: number): Promise<void> {
  const mondays = new Set([weekStartMs(startMs + count * stepMs)]);
  for (let at = startMs; at <= startMs + count * stepMs; at += DAY_MS) mondays.add(weekStartMs(at));
  await ensureWeeks(sql, POSITIONS, [...mondays]);
  await sql`
    insert into position (device_id, recorded_at, latitude, longitude, altitude_m, speed_kmh, heading, satellites)
    select ${id}, to_timestamp(${startMs}::float8 / 1000 + n * ${stepMs}::float8 / 1000), n / 1000.0, 12, 0, 0, 0, 0
    from generate_series(0, ${count}::int - 1) n`;
}

async function read(): Promise<[ms: number, lat: number][]> {
  const points: [number, number][] = [];
  const window = { fromMs: TODAY_MS - 300 * DAY_MS, toMs: TODAY_MS + DAY_MS };
  for await (const page of pointPages(sql, [worldId], deviceId, window))
    for (let n = 0; n < page.count; n++)
      points.push([page.recordedAtMs[n] as number, page.lats[n] as number]);
  return points;
}

async function counts(): Promise<{ rows: number; packed: number; points: number }> {
  const [row] = await sql<{ rows: number; packed: number; points: number }[]>`
    select (select count(*)::int from position) as rows, count(*)::int as packed,
      coalesce(sum(count), 0)::int as points from packed_points`;
  assert.ok(row);
  return row;
}

const packerWith = (ports: Partial<PackPorts> = {}): HistoryPacker =>
  new HistoryPacker({
    ...{ sql, turns: newTurns(), rest: async () => undefined },
    ...{ onPacked: () => undefined, onDamaged: () => assert.fail() },
    ...{ lateWaitMs: 0, onUnpackedDays: () => undefined },
    ...ports,
  });
/** Nobody has the lease, and a pass is due. */
const beDue = () => sql`update packing set pass_due_at = '-infinity', leased_until = '-infinity'`;

describe('packing', () => {
  test(`that is killed loses and doubles nothing, ${KILLS} times (seed ${SEED})`, async (t) => {
    const random = seededRandom(SEED);
    for (let n = 0; n < KILLS; n++) {
      await insertPoints(deviceId, TODAY_MS - 40 * DAY_MS + n * 777, 20 * 96, 900_000);
      const expected = await read();
      const packer = spawn(process.execPath, [PACK_PROCESS, url], { stdio: ['ignore', 'pipe', 'inherit'] });
      t.after(() => packer.kill('SIGKILL'));
      const ended = once(packer, 'exit');
      await once(packer.stdout, 'data');
      await sleep(random() * 150);
      packer.kill('SIGKILL');
      await ended;
      assert.deepEqual(await read(), expected, `after kill ${n}`);
      const { rows, points } = await counts();
      assert.equal(rows + points, expected.length, `after kill ${n}`);
    }
    const expected = await read();
    const { isDone } = await packPoints(sql);
    assert.equal(isDone, true);
    assert.deepEqual(await read(), expected);
    const { rows, points } = await counts();
    assert.deepEqual([rows, points], [0, expected.length]);
  });

  test('leaves the points of two days and of days that are not over as they are', async () => {
    await insertPoints(deviceId, TODAY_MS - 5 * DAY_MS, 5 * 48, 1_800_000);
    await packPoints(sql);
    const [oldest] = await sql<{ at: Date }[]>`select min(recorded_at) as at from position`;
    assert.equal(oldest?.at.getTime(), TODAY_MS - 2 * DAY_MS);
  });

  test('that another pod does is left to that pod, until its lease is over', async () => {
    await insertPoints(deviceId, TODAY_MS - 9 * DAY_MS, 100, 60_000);
    await beDue();
    const [one, other] = [packerWith(), packerWith()];
    assert.equal(await one.round(() => true), 'more', 'it has the lease, and is stopped');
    assert.equal(await other.round(() => false), 'elsewhere');
    assert.equal((await counts()).points, 0);
    await sql`update packing set leased_until = now()`;
    assert.equal(await other.round(() => false), 'done');
    assert.equal((await counts()).points, 100);
    assert.equal(await one.round(() => false), 'elsewhere', 'the next pass is not due yet');
  });

  test('rests after each part, and only shortly while a device is locked', async (t) => {
    await insertPoints(deviceId, TODAY_MS - 9 * DAY_MS, 1_000, 60_000);
    await beDue();
    // Every part of the work but the first takes ten milliseconds.
    let nowMs = 0;
    t.mock.method(performance, 'now', () => nowMs);
    t.mock.method(process, 'cpuUsage', () => ({ user: 1e9, system: 0 }));
    const rests: [ms: number, isLocked: boolean][] = [];
    const rest = async (ms: number): Promise<void> => {
      const free = await sql`select from device_state where device_id = ${deviceId} for update skip locked`;
      rests.push([ms, free.count === 0]);
      setImmediate(() => {
        nowMs += 10;
      });
    };
    assert.equal(await packerWith({ rest }).round(() => false), 'done');
    // Two reads of 400 rows, what is left of them made to bytes, and five times 200 rows are deleted.
    const expected = [0, 60, 60, 60, 20, 20, 20, 20, 20, 60 + 5 * 40].map((ms) => [ms, ms === 20]);
    assert.deepEqual(rests, expected);
  });

  test('says how many closed days wait, and late points are none', async () => {
    const unpacked: number[] = [];
    const packer = packerWith({ onUnpackedDays: (days) => unpacked.push(days), lateWaitMs: DAY_MS });
    await sql`update device_state set recorded_at = case when device_id = ${deviceId} then now() end`;
    await insertPoints(deviceId, TODAY_MS - 9 * DAY_MS, 3 * 96, 900_000);
    await beDue();
    await packer.round(() => false);
    await insertPoints(deviceId, TODAY_MS - 9 * DAY_MS + 1, 3, 900_000);
    await beDue();
    await packer.round(() => false);
    assert.deepEqual(unpacked, [3, 0]);
  });

  test('leaves points that came lately as rows where somebody follows them, and packs what lies between them', async () => {
    const dayMs = TODAY_MS - 9 * DAY_MS;
    await insertPoints(deviceId, dayMs, 300, 200_000);
    await sql`
      update position set received_at = case when latitude * 1000 between 100 and 109 then now() - interval '43 hours'
        else now() - interval '45 hours' end where mod((latitude * 1000)::int, 2) = 0`;
    const expected = await read();
    await beDue();
    await sql`
      insert into followed_world select world_id, now() + interval '1 minute' from device where id = ${deviceId}`;
    await packerWith().round(() => false);
    const { rows, points } = await counts();
    assert.deepEqual(
      [rows, points],
      [5, 295],
      'also those of which it is not known when they came are packed',
    );
    assert.deepEqual(await read(), expected);
    await sql`update followed_world set until = now()`;
    await packPoints(sql);
    assert.equal((await counts()).rows, 0);
    assert.deepEqual(await read(), expected);
  });

  test('leaves a device as it is that somebody begins to follow in the middle', async () => {
    await insertPoints(deviceId, TODAY_MS - 9 * DAY_MS, 300, 200_000);
    await sql`update position set received_at = now()`;
    await sql`delete from followed_world`;
    await beDue();
    const resting = packerWith({
      rest: async () => {
        await sql`
          insert into followed_world select world_id, now() + interval '1 minute' from device where id = ${deviceId}
          on conflict do nothing`;
      },
    });
    await resting.round(() => false);
    assert.equal((await counts()).rows, 300);
    await sql`delete from followed_world`;
  });

  test('waits for more late points to a packed day, which are read meanwhile, but not for ever', async () => {
    const dayMs = TODAY_MS - 9 * DAY_MS;
    await insertPoints(deviceId, dayMs, 2_000, 40_000);
    await packPoints(sql);
    const late = async (n: number, count: number): Promise<void> => {
      await insertPoints(deviceId, dayMs + n, count, 40_000);
      await sql`update position set received_at = now() where received_at is null`;
    };
    const waiting = async (): Promise<number> => {
      await beDue();
      assert.equal(await packerWith({ lateWaitMs: DAY_MS }).round(() => false), 'done');
      return (await counts()).rows;
    };
    await late(1, 5);
    assert.equal(await waiting(), 5);
    assert.equal((await read()).length, 2_005);
    await late(2, 95);
    assert.equal(await waiting(), 0, 'a hundred are worth it');
    await late(3, 5);
    await sql`update position set received_at = now() - interval '25 hours'`;
    assert.equal(await waiting(), 0, 'they have waited for a day');
    assert.equal((await read()).length, 2_105);
  });

  test('goes from world to world, so one with days of work keeps no other waiting', async () => {
    const [row] = await sql<{ id: number }[]>`insert into world default values returning id`;
    const victim = await newDevice();
    await sql`update device set world_id = ${row?.id ?? 0} where id = ${victim}`;
    for (let n = 0; n < 20; n++) await insertPoints(deviceId, TODAY_MS - (30 + n) * DAY_MS, 96, 900_000);
    await packPoints(sql);
    // Late points to every packed day, and none of them waits for more.
    for (let n = 0; n < 20; n++) await insertPoints(deviceId, TODAY_MS - (30 + n) * DAY_MS + 1, 40, 900_000);
    await insertPoints(victim, TODAY_MS - 9 * DAY_MS, 96, 900_000);
    await beDue();
    let nowMs = 0;
    const mocked = mock.method(performance, 'now', () => nowMs);
    // Every part takes a second: the turn of a world is over after each day.
    const packed: string[] = [];
    const rest = async (): Promise<void> => {
      nowMs += 1_000;
    };
    const onPacked = (points: number) => packed.push(points === 40 ? 'late' : 'closed');
    const packer = packerWith({ rest, onPacked });
    assert.equal(await packer.round(() => packed.includes('closed')), 'more');
    mocked.mock.restore();
    assert.ok(packed.includes('closed') && packed.length <= 3, packed.join());
    assert.equal(await packer.round(() => false), 'done');
    assert.equal((await counts()).rows, 0);
  });

  /** A round in which something happens while points are made to bytes. */
  async function packWhile(happens: () => Promise<unknown>, onPacked?: PackPorts['onPacked']): Promise<void> {
    await insertPoints(deviceId, TODAY_MS - 9 * DAY_MS, 1_000, 1_000);
    await beDue();
    const turns = newTurns();
    let isFirst = true;
    const run: PackPorts['turns']['run'] = async (key, steps) => {
      if (isFirst) {
        isFirst = false;
        await happens();
      }
      return turns.run(key, steps);
    };
    await packerWith({ turns: { run }, ...(onPacked && { onPacked }) }).round(() => false);
  }

  test('of points beside which others come at this moment is given up, and nothing is lost', async () => {
    const others = () => insertPoints(deviceId, TODAY_MS - 9 * DAY_MS + 500, 1, 1_000);
    await packWhile(others, () => assert.fail('it was packed'));
    assert.equal((await read()).length, 1_001);
    assert.equal((await packPoints(sql)).points, 1_001);
    assert.equal((await read()).length, 1_001);
  });

  test('of a device that is deleted at this moment leaves nothing behind', async () => {
    await packWhile(async () => {
      for (const table of ['device_state', 'position'])
        await sql.unsafe(`delete from ${table} where device_id = ${deviceId}`);
      await sql`delete from device where id = ${deviceId}`;
    });
    assert.deepEqual(await counts(), { rows: 0, packed: 0, points: 0 });
  });

  test('is undone with the device', async () => {
    await insertPoints(deviceId, TODAY_MS - 30 * DAY_MS, 2_000, 1_000_000);
    await packPoints(sql);
    await insertPoints(deviceId, TODAY_MS - 30 * DAY_MS + 500, 7, 1_000_000);
    const ports = {
      ...{ sql, turns: newTurns(), awaitEverywhere: async () => undefined },
      versions: { publish: async () => true, confirm: async () => true },
    };
    const deleted = await deleteDevice(ports, imeiOf(devices), new AbortController().signal);
    assert.deepEqual(deleted, { ok: true, value: 2_007 });
    assert.deepEqual(await counts(), { rows: 0, packed: 0, points: 0 });
  });

  test('gives back the space of weeks whose points are packed, and retention drops what is packed', async () => {
    await insertPoints(deviceId, weekStartMs(TODAY_MS - 30 * DAY_MS), 5_000, 60_000);
    const bytes = async (): Promise<number> => {
      const [row] = await sql<{ bytes: number }[]>`
        select sum(pg_relation_size(oid))::float8 as bytes from pg_class
        where relkind = 'r' and relname between 'position_w2' and ${`position_w${new Date(TODAY_MS - 20 * DAY_MS).toISOString().slice(0, 10).replaceAll('-', '')}`}`;
      return row?.bytes ?? -1;
    };
    const packer = packerWith();
    await beDue();
    assert.equal(await packer.round(() => false), 'done');
    assert.ok((await bytes()) > 0, 'a transaction that has begun may still want them');
    await beDue();
    assert.equal(await packer.round(() => false), 'done');
    assert.equal(await bytes(), 0);
    assert.equal((await read()).length, 5_000);

    await ensureWeeks(sql, PACKED_POINTS, [weekStartMs(TODAY_MS - 900 * DAY_MS)]);
    const weeks = async () =>
      (await sql`select from pg_inherits where inhparent = 'packed_points'::regclass`).count;
    const before = await weeks();
    await tidy({
      sql,
      clock: Date.now,
      eventRetentionDays: 730,
      eventCuts: new EventCuts(),
      log: { info: () => undefined, warn: () => assert.fail() },
    });
    assert.equal(await weeks(), before - 1);
    assert.equal((await read()).length, 5_000);
  });
});
