import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { DeadlineExceeded } from '../../src/base/deadline.ts';
import { encodeMoves } from '../../src/flows/moves.ts';
import { pruneChanges, recordChange, recordPositions } from '../../src/store/changes.ts';
import { countPodsBehind } from '../../src/store/pods.ts';
import { openSql, type Sql } from '../../src/store/sql.ts';
import { adminOf } from '../support/admin.ts';
import { createDatabase } from '../support/postgres.ts';
import { seededRandom } from '../support/seededRandom.ts';
import { IS_TORTURE } from '../support/torture.ts';
import { waitFor } from '../support/waitFor.ts';
import { allWorlds, dump, dumpFresh, type MemoryPod, openMemoryPod } from './memoryPod.ts';

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

interface Scene {
  readonly sql: Sql;
  readonly pod: MemoryPod;
  readonly devices: readonly Device[];
  nowMs: number;
  /** What another pod commits with a batch of `count` points of the device; returns the time of the last. */
  moveDevice(n: number, count: number): Promise<number>;
  /** Renames the device; returns the transaction. */
  rename(n: number, name: string): Promise<string>;
}

/** A pod with some devices and a clock that goes on with the moves; it looks at the feed when it is told to, if it `stops`. */
async function setUp(t: TestContext, { stops = true } = {}): Promise<Scene> {
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
  const scene: Scene = {
    sql,
    pod: openMemoryPod(url, () => scene.nowMs),
    devices,
    nowMs: Date.now(),
    moveDevice: async (n, count) => {
      const deviceId = devices[n]?.id ?? 0;
      scene.nowMs += 100;
      const moves = Array.from({ length: count }, () => ({
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
      }));
      await sql.begin(async (tx) => {
        await tx`
          update device_state set recorded_at = ${new Date(recordedAtMs)}, moved_at = ${new Date(recordedAtMs)},
            latitude = ${recordedAtMs % 90}, longitude = 0, altitude_m = 0, speed_kmh = 0
          where device_id = ${deviceId}`;
        await recordPositions(tx, encodeMoves(moves));
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
    await scene.pod.close();
    await sql.end();
    await drop();
  });
  await scene.pod.follower.start();
  if (stops) await scene.pod.follower.stop();
  return scene;
}

const reloads = ({ pod }: Scene): number => pod.log.filter((line) => line.includes('anew')).length;
const deviceOf = ({ pod }: Scene, n: number) => pod.fleet.anyDevice(IMEIS[n] as string);

/** Looks once. A follower that was stopped refuses whoever comes while it applies a page, when that is done. */
async function look({ pod }: Scene): Promise<void> {
  try {
    await pod.follower.catchUp();
  } catch (error) {
    if (!(error instanceof DeadlineExceeded)) throw error;
    await pod.follower.catchUp();
  }
}

/** Looks until memory holds all moves; returns how often. */
async function lookAtAll(scene: Scene): Promise<number> {
  for (let rounds = 1; rounds < ROUNDS_MAX; rounds++) {
    await look(scene);
    if (scene.pod.follower.lagMs() === 0) return rounds;
  }
  return assert.fail('moves are still left');
}

async function proveFresh({ sql, pod }: Scene): Promise<void> {
  const worldIds = await allWorlds(sql);
  assert.deepEqual(dump(pod, worldIds), await dumpFresh(sql, worldIds));
}

describe('behind the moves of a long absence', () => {
  test('writes are there first, and memory is as young as they are to admission, and as old as the moves to probes', async (t) => {
    const scene = await setUp(t);
    const { sql, pod, devices } = scene;
    const { fleet, follower } = pod;
    const startedAtMs = scene.nowMs;
    for (let n = 0; n < 12; n++) await scene.moveDevice(0, BATCH);
    const lastMs = await scene.moveDevice(0, 1);
    const xid = await scene.rename(1, 'renamed');
    const [world] = await sql<{ version: number }[]>`
      select version from world where id = ${devices[1]?.worldId ?? 0}`;
    const reached: (string | null | undefined)[] = [];
    const raise = fleet.raiseVersion.bind(fleet);
    fleet.raiseVersion = (id, version) => {
      reached.push(deviceOf(scene, 1)?.fields.name);
      raise(id, version);
    };
    scene.nowMs = startedAtMs + 10_000;
    await look(scene);
    const position = deviceOf(scene, 0)?.position;
    assert.ok(position && position.recordedAtMs < lastMs, 'moves are left');
    assert.deepEqual([follower.writesLagMs(), follower.lagMs(), follower.ready()], [0, 10_000, false]);
    assert.equal(fleet.worldVersion(devices[1]?.worldId ?? 0), world?.version);
    assert.deepEqual(reached, ['renamed'], 'the version came after what it stands for');
    assert.equal(await countPodsBehind(sql, xid), 0, 'and writers wait no longer');
    const rounds = await lookAtAll(scene);
    assert.ok(rounds >= 5, `${rounds} rounds`);
    assert.equal(deviceOf(scene, 0)?.position?.recordedAtMs, lastMs);
    assert.equal(follower.ready(), true);
    await proveFresh(scene);
  });

  test('moves that came while those were read are not passed over', async (t) => {
    const scene = await setUp(t);
    for (let n = 0; n < 8; n++) await scene.moveDevice(0, BATCH);
    await look(scene);
    const laterMs = await scene.moveDevice(1, 1);
    await look(scene);
    assert.notEqual(scene.pod.follower.lagMs(), 0, 'moves are left, and this one behind them');
    await lookAtAll(scene);
    assert.equal(deviceOf(scene, 1)?.position?.recordedAtMs, laterMs);
    await proveFresh(scene);
  });

  test('each write is there for whoever asks next, while moves and writes go on, and all is there in the end', async (t) => {
    const scene = await setUp(t);
    for (let seed = 1; seed <= (IS_TORTURE ? 30 : 3); seed++) {
      const random = seededRandom(seed);
      for (let n = 0; n < 5; n++) await scene.moveDevice(n % 2, BATCH);
      for (let round = 0; round < 12; round++) {
        // Moves come no faster than pages are read, in the mean.
        await scene.moveDevice(Math.floor(random() * IMEIS.length), random() < 0.2 ? BATCH : 3);
        const name = `${seed} ${round}`;
        await scene.rename(2, name);
        await look(scene);
        assert.equal(deviceOf(scene, 2)?.fields.name, name);
      }
      assert.ok((await lookAtAll(scene)) <= 12, 'those that came meanwhile were read as well');
      await proveFresh(scene);
    }
    assert.equal(reloads(scene), 0);
  });

  test('a pod goes on by itself, page after page, without a poll or a doorbell', async (t) => {
    t.mock.timers.enable({ apis: ['setInterval'] });
    const scene = await setUp(t, { stops: false });
    for (let n = 0; n < 6; n++) await scene.moveDevice(0, BATCH);
    const lastMs = await scene.moveDevice(0, 1);
    await scene.pod.follower.catchUp();
    await waitFor(() => deviceOf(scene, 0)?.position?.recordedAtMs === lastMs);
  });

  test('changes that are pruned before they are read make memory infinitely old, until it is loaded anew', async (t) => {
    const scene = await setUp(t);
    const { sql } = scene;
    for (let n = 0; n < 12; n++) await scene.moveDevice(0, BATCH);
    await look(scene);
    await look(scene); // waits for the page that was under way
    await sql`update change set at = at - interval '1 hour'`;
    while ((await pruneChanges(sql)) > 0);
    await scene.rename(1, 'later');
    await lookAtAll(scene);
    assert.equal(reloads(scene), 1);
    await proveFresh(scene);
    await scene.rename(1, 'still later');
    assert.equal(await lookAtAll(scene), 1);
    assert.equal(reloads(scene), 1);
  });

  test('the moves of a server that is lost are given up', async (t) => {
    const scene = await setUp(t);
    const { sql } = scene;
    for (let n = 0; n < 6; n++) await scene.moveDevice(0, BATCH);
    await look(scene);
    // The promoted replica lacks them.
    await sql`delete from change`;
    await sql`
      update device_state set recorded_at = recorded_at - interval '1 hour', latitude = 4
      where recorded_at is not null`;
    await sql.unsafe(
      `create or replace function server_history() returns text language sql as $$ select 'other/2' $$`,
    );
    await lookAtAll(scene);
    assert.equal(reloads(scene), 1);
    assert.equal(deviceOf(scene, 0)?.position?.lat, 4);
    await proveFresh(scene);
  });
});

test('a pod that writers have given up is not young again before it is listed and has looked once more', async (t) => {
  const scene = await setUp(t);
  const { sql, pod } = scene;
  scene.nowMs += 6_000;
  // Keeps it from being listed.
  const held = Promise.withResolvers<void>();
  const released = Promise.withResolvers<void>();
  const hold = sql.begin(async (tx) => {
    await tx`lock table pod in share mode`;
    held.resolve();
    await released.promise;
  });
  await held.promise;
  const caughtUp = pod.follower.catchUp();
  for (let isWaiting = false; !isWaiting; ) {
    const waiting = await sql`
      select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
    isWaiting = waiting.length > 0;
  }
  assert.equal(pod.follower.writesLagMs(), 6_000);
  // A writer that comes now finds no pod to wait for.
  assert.equal(await countPodsBehind(sql, await scene.rename(1, 'unseen')), 0);
  assert.notEqual(deviceOf(scene, 1)?.fields.name, 'unseen');
  released.resolve();
  await hold;
  await caughtUp;
  assert.equal(deviceOf(scene, 1)?.fields.name, 'unseen');
  assert.equal(pod.follower.writesLagMs(), 0);
});
