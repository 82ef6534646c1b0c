import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { pruneChanges, recordChange, recordPositions } from '../../src/changelog/changes.sql.ts';
import { countPodsBehind } from '../../src/changelog/pods.sql.ts';
import { NO_MOTION } from '../../src/devices/device.ts';
import { encodePositionUpdates } from '../../src/devices/positionUpdates.ts';
import { DeadlineExceeded } from '../../src/lib/time.ts';
import { openSql, type Sql } from '../../src/postgres/sql.ts';
import { adminOf } from '../support/postgres/admin.ts';
import { countLockWaiters, holdTransaction } from '../support/postgres/holdTransaction.ts';
import { createDatabase } from '../support/postgres/postgres.ts';
import { seededRandom } from '../support/seededRandom.ts';
import { IS_TORTURE } from '../support/torture.ts';
import { waitFor } from '../support/waitFor.ts';
import { allWorlds, dump, dumpFresh, type MemoryPod, openMemoryPod } from './memoryPod.ts';

/** Beyond this a pod says that its positions are late. */
const POSITIONS_LAG_MS = 30_000;
const IMEIS = ['350000000000001', '350000000000002', '350000000000003'] as const;
/** A full batch of points; two of them fill a page of the feed. */
const BATCH = 10_000;
/** More than any of the tests here needs. */
const ROUNDS_MAX = 100;

interface Device {
  readonly id: number;
  readonly imei: string;
  readonly worldId: number;
}

interface Setup {
  readonly sql: Sql;
  readonly pod: MemoryPod;
  readonly devices: readonly Device[];
  nowMs: number;
  /** Commits a batch of `count` points of the device as another pod does. Returns the time of the last. */
  moveDevice(n: number, count: number): Promise<number>;
  /** Renames the device; returns the transaction. */
  rename(n: number, name: string): Promise<string>;
}

/** A pod with some devices, and a clock that advances with their positions. If it `stops`, it reads the feed on demand only. */
async function setUp(t: TestContext, { stops = true } = {}): Promise<Setup> {
  const { url, drop } = await createDatabase();
  const sql = openSql(url, { maxConnections: 2, name: 'test' });
  const admin = adminOf(url);
  await admin.account('owner@example.com');
  await admin.importDevices(
    'owner@example.com',
    IMEIS.map((imei) => ({ imei })),
  );
  const rows = await sql<{ id: number; imei: string; world_id: number }[]>`
    select id, imei, world_id from device order by imei`;
  const devices = rows.map(({ world_id: worldId, ...row }) => ({ ...row, worldId }));
  let recordedAtMs = 1_700_000_000_000;
  const setup: Setup = {
    sql,
    pod: openMemoryPod(url, () => setup.nowMs),
    devices,
    nowMs: Date.now(),
    moveDevice: async (n, count) => {
      const deviceId = devices[n]?.id ?? 0;
      setup.nowMs += 100;
      const updates = Array.from({ length: count }, () => ({
        deviceId,
        position: {
          recordedAtMs: ++recordedAtMs,
          lat: recordedAtMs % 90,
          lng: 0,
          altitudeM: 0,
          speedKmh: 0,
          odometerKm: null,
          movedAtMs: recordedAtMs,
        },
        motion: NO_MOTION,
      }));
      await sql.begin(async (tx) => {
        await tx`
          update device_state set recorded_at = ${new Date(recordedAtMs)}, moved_at = ${new Date(recordedAtMs)},
            latitude = ${recordedAtMs % 90}, longitude = 0, altitude_m = 0, speed_kmh = 0
          where device_id = ${deviceId}`;
        await recordPositions(tx, encodePositionUpdates(updates), NONE_CHANGED);
      });
      return recordedAtMs;
    },
    rename: (n, name) =>
      sql.begin(async (tx) => {
        const { id, worldId } = devices[n] as Device;
        await tx`update device set name = ${name}, updated_at = clock_timestamp() where id = ${id}`;
        await recordChange(tx, { kind: 'device', worldId, entityIds: [id] });
        const [row] = await tx<{ xid: string }[]>`select pg_current_xact_id()::text as xid`;
        return row?.xid ?? '';
      }),
  };
  t.after(async () => {
    await setup.pod.close();
    await sql.end();
    await drop();
  });
  await setup.pod.follower.start();
  if (stops) await setup.pod.follower.stop();
  return setup;
}

const reloads = ({ pod }: Setup): number => pod.log.filter((line) => line.includes('reloading')).length;
/** Of stays. */
const NONE_CHANGED = '[]';
const deviceOf = ({ pod }: Setup, n: number) => pod.fleet.anyDevice(IMEIS[n] as string);

/** Reads the feed once. A stopped follower rejects calls that come while it applies a page. */
async function readOnce({ pod }: Setup): Promise<void> {
  try {
    await pod.follower.catchUp();
  } catch (error) {
    if (!(error instanceof DeadlineExceeded)) throw error;
    await pod.follower.catchUp();
  }
}

/** Reads the feed until memory holds all positions. Returns how often. */
async function readAll(setup: Setup): Promise<number> {
  for (let rounds = 1; rounds < ROUNDS_MAX; rounds++) {
    await readOnce(setup);
    if (setup.pod.follower.applied.lagMs() === 0) return rounds;
  }
  return assert.fail('positions are still pending');
}

async function proveFresh({ sql, pod }: Setup): Promise<void> {
  const worldIds = await allWorlds(sql);
  assert.deepEqual(dump(pod, worldIds), await dumpFresh(sql, worldIds));
}

describe('after a long absence', () => {
  test('writes are applied first: the authorizer sees fresh memory, while readiness sees the age of the positions', async (t) => {
    const setup = await setUp(t);
    const { sql, pod, devices } = setup;
    const { fleet, follower } = pod;
    const startedAtMs = setup.nowMs;
    for (let n = 0; n < 12; n++) await setup.moveDevice(0, BATCH);
    const lastMs = await setup.moveDevice(0, 1);
    const xid = await setup.rename(1, 'renamed');
    const [world] = await sql<{ version: number }[]>`
      select version from world where id = ${devices[1]?.worldId ?? 0}`;
    const reached: (string | null | undefined)[] = [];
    const raise = fleet.raiseVersion.bind(fleet);
    fleet.raiseVersion = (id, version) => {
      reached.push(deviceOf(setup, 1)?.fields.name);
      raise(id, version);
    };
    setup.nowMs = startedAtMs + POSITIONS_LAG_MS;
    await readOnce(setup);
    const position = deviceOf(setup, 0)?.position;
    assert.ok(position && position.recordedAtMs < lastMs, 'positions are pending');
    assert.deepEqual([follower.applied.writesLagMs(), follower.applied.lagMs()], [0, POSITIONS_LAG_MS]);
    assert.deepEqual(follower.degradations(), [], 'it works off a burst');
    setup.nowMs++;
    await readOnce(setup);
    assert.deepEqual(follower.degradations(), ['positions_late']);
    assert.equal(fleet.worldVersion(devices[1]?.worldId ?? 0), world?.version);
    assert.deepEqual(reached, ['renamed'], 'the version is raised after its changes are applied');
    assert.equal(await countPodsBehind(sql, xid), 0, 'writers do not wait for positions');
    const rounds = await readAll(setup);
    assert.ok(rounds >= 5, `${rounds} rounds`);
    assert.equal(deviceOf(setup, 0)?.position?.recordedAtMs, lastMs);
    assert.deepEqual(follower.degradations(), []);
    await proveFresh(setup);
  });

  test('positions that come while others are pending are applied too', async (t) => {
    const setup = await setUp(t);
    for (let n = 0; n < 8; n++) await setup.moveDevice(0, BATCH);
    await readOnce(setup);
    const laterMs = await setup.moveDevice(1, 1);
    await readOnce(setup);
    assert.notEqual(setup.pod.follower.applied.lagMs(), 0, 'positions are pending, and this one after them');
    await readAll(setup);
    assert.equal(deviceOf(setup, 1)?.position?.recordedAtMs, laterMs);
    await proveFresh(setup);
  });

  test('each write is there for the next reader while positions and writes go on, and in the end everything is there', async (t) => {
    const setup = await setUp(t);
    for (let seed = 1; seed <= (IS_TORTURE ? 30 : 3); seed++) {
      const random = seededRandom(seed);
      for (let n = 0; n < 5; n++) await setup.moveDevice(n % 2, BATCH);
      for (let round = 0; round < 12; round++) {
        // Positions come no faster than pages are read, on average.
        await setup.moveDevice(Math.floor(random() * IMEIS.length), random() < 0.2 ? BATCH : 3);
        const name = `${seed} ${round}`;
        await setup.rename(2, name);
        await readOnce(setup);
        assert.equal(deviceOf(setup, 2)?.fields.name, name);
      }
      assert.ok((await readAll(setup)) <= 12, 'positions that came meanwhile were read too');
      await proveFresh(setup);
    }
    assert.equal(reloads(setup), 0);
  });

  test('a pod reads all pending pages without a poll or a notification', async (t) => {
    t.mock.timers.enable({ apis: ['setInterval'] });
    const setup = await setUp(t, { stops: false });
    for (let n = 0; n < 6; n++) await setup.moveDevice(0, BATCH);
    const lastMs = await setup.moveDevice(0, 1);
    await setup.pod.follower.catchUp();
    await waitFor(() => deviceOf(setup, 0)?.position?.recordedAtMs === lastMs);
  });

  test('changes that are pruned before they are read make memory infinitely old, until it is reloaded', async (t) => {
    const setup = await setUp(t);
    const { sql } = setup;
    for (let n = 0; n < 12; n++) await setup.moveDevice(0, BATCH);
    await readOnce(setup);
    await readOnce(setup); // waits for the page that was under way
    await sql`update change set at = at - interval '1 hour'`;
    while ((await pruneChanges(sql)) > 0);
    await setup.rename(1, 'later');
    await readAll(setup);
    assert.equal(reloads(setup), 1);
    await proveFresh(setup);
    await setup.rename(1, 'still later');
    assert.equal(await readAll(setup), 1);
    assert.equal(reloads(setup), 1);
  });

  test('pending positions of a lost server are dropped', async (t) => {
    const setup = await setUp(t);
    const { sql } = setup;
    for (let n = 0; n < 6; n++) await setup.moveDevice(0, BATCH);
    await readOnce(setup);
    // The promoted replica lacks them.
    await sql`delete from change`;
    await sql`
      update device_state set recorded_at = recorded_at - interval '1 hour', latitude = 4
      where recorded_at is not null`;
    await sql.unsafe(
      `create or replace function server_history() returns text language sql as $$ select 'other/2' $$`,
    );
    await readAll(setup);
    assert.equal(reloads(setup), 1);
    assert.equal(deviceOf(setup, 0)?.position?.lat, 4);
    await proveFresh(setup);
  });
});

test('a pod for which writers no longer wait is not fresh before it has reported and read once more', async (t) => {
  const setup = await setUp(t);
  const { sql, pod } = setup;
  setup.nowMs += 6_000;
  // Keeps it from reporting to the list of pods.
  const release = await holdTransaction(sql, (tx) => tx`lock table pod in share mode`);
  const caughtUp = pod.follower.catchUp();
  while ((await countLockWaiters(sql)) === 0);
  assert.equal(pod.follower.applied.writesLagMs(), 6_000);
  // A writer that comes now finds no pod to wait for.
  assert.equal(await countPodsBehind(sql, await setup.rename(1, 'unseen')), 0);
  assert.notEqual(deviceOf(setup, 1)?.fields.name, 'unseen');
  await release();
  await caughtUp;
  assert.equal(deviceOf(setup, 1)?.fields.name, 'unseen');
  assert.equal(pod.follower.applied.writesLagMs(), 0);
});

describe('stays', () => {
  const AREA_ID = 815;
  const STAYS = `[[${AREA_ID},1000,null]]`;

  test('with a position update are in memory', async (t) => {
    const { sql, pod, devices, moveDevice } = await setUp(t);
    const recordedAtMs = await moveDevice(0, 1);
    await pod.follower.catchUp();
    const { id: deviceId, worldId } = devices[0] as Device;
    const position = { recordedAtMs, lat: 0, lng: 0, altitudeM: 0, speedKmh: 0, odometerKm: null };
    const update = {
      deviceId,
      position: { ...position, movedAtMs: recordedAtMs },
      motion: { ...NO_MOTION, revision: 1 },
    };
    await sql.begin(async (tx) => {
      await tx`update device_state set stays = ${STAYS}, revision = 1 where device_id = ${deviceId}`;
      await recordPositions(tx, encodePositionUpdates([update]), `[[${deviceId},${STAYS}]]`);
    });
    await pod.follower.catchUp();
    const { page } = pod.fleet.occupants([worldId], AREA_ID, 'pending', { offset: 0, limit: 2 });
    assert.deepEqual(
      page.map(({ device, insideSinceMs }) => [device.fields.imei, insideSinceMs]),
      [[IMEIS[0], 1_000]],
    );
  });
});
