import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { upsertPod } from '../../src/store/pods.ts';
import { isUnavailable, openSql, type Sql } from '../../src/store/sql.ts';
import { insertWebhook } from '../../src/store/webhooks.ts';
import { adminOf } from '../support/admin.ts';
import { fixOf } from '../support/ingestBench.ts';
import { createDatabase } from '../support/postgres.ts';
import { waitFor } from '../support/waitFor.ts';
import { allWorlds, dump, dumpFresh, type MemoryPod, openMemoryPod } from './memoryPod.ts';

const IMEIS = ['350000000000001', '350000000000002', '350000000000003'] as const;
const AWAY_MS = 15 * 60_000;

interface Scene {
  readonly sql: Sql;
  readonly pod: MemoryPod;
  /** Lets the pod believe that it was away for too long. */
  wasAway(): void;
  /** Begins a load that stands still in its midst; `end` lets it go on and waits for it. */
  beginLoad(): Promise<{ end(): Promise<void> }>;
}

/** A pod with three devices, and an endpoint that wants everything; it looks at the feed when it is told to. */
async function setUp(t: TestContext): Promise<Scene> {
  const { url, drop } = await createDatabase();
  const sql = openSql(url, { maxConnections: 4, name: 'test' });
  const admin = adminOf(url);
  await admin.account('owner@example.com');
  await admin.importDevices(
    'owner@example.com',
    IMEIS.map((imei) => ({ imei })),
  );
  const [account] = await sql<{ id: number }[]>`select id from account`;
  await sql.begin((tx) =>
    insertWebhook(
      tx,
      account?.id ?? 0,
      {
        url: 'https://example.com/',
        description: null,
        events: ['*'],
        retryPolicy: 'none',
        maxRetries: 0,
        active: true,
      },
      Buffer.alloc(8),
      100,
    ),
  );
  let aheadMs = 0;
  const pod = openMemoryPod(url, () => Date.now() + aheadMs);
  t.after(async () => {
    await pod.close();
    await sql.end();
    await drop();
  });
  await pod.follower.start();
  await pod.follower.stop();
  const wasAway = () => {
    aheadMs += AWAY_MS;
  };
  const beginLoad = async () => {
    const released = Promise.withResolvers<void>();
    const held = Promise.withResolvers<void>();
    // Areas are read last, and points do not touch their table.
    const hold = sql.begin(async (tx) => {
      await tx`lock table area in access exclusive mode`;
      held.resolve();
      await released.promise;
    });
    await held.promise;
    const loading = pod.follower.catchUp();
    await waitFor(async () => {
      const waiting = await sql`
        select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
      return waiting.length > 0;
    });
    return {
      end: async () => {
        released.resolve();
        await hold;
        await loading;
      },
    };
  };
  return { sql, pod, wasAway, beginLoad };
}

async function proveFresh({ sql, pod }: Scene): Promise<void> {
  const worldIds = await allWorlds(sql);
  assert.deepEqual(dump(pod, worldIds), await dumpFresh(sql, worldIds));
}

const latOf = ({ pod }: Scene, imei: string) => pod.fleet.anyDevice(imei)?.position?.lat;
const reloads = ({ pod }: Scene) => pod.log.filter((line) => line.includes('anew')).length;

describe('while everything is loaded anew', () => {
  test('points find their endpoints, move their devices, and stay where they are afterwards', async (t) => {
    const scene = await setUp(t);
    const { pod } = scene;
    const [imei] = IMEIS;
    const nowMs = Date.now();
    await pod.ingest.store([fixOf(imei, nowMs - 2_000, { lat: 1 })]);
    scene.wasAway();
    const load = await scene.beginLoad();
    assert.deepEqual(await pod.ingest.store([fixOf(imei, nowMs - 1_000, { lat: 2 })]), ['accepted']);
    assert.equal(latOf(scene, imei), 2);
    const { worldId } = pod.fleet.anyDevice(imei)?.fields ?? { worldId: 0 };
    const lats = new Set<number | undefined>();
    const receivers = new Set<number>();
    let isOver = false;
    const look = (): void => {
      lats.add(latOf(scene, imei));
      receivers.add(pod.subscriptions.receivers([worldId], 'geofence_enter').length);
      if (!isOver) setImmediate(look);
    };
    look();
    await load.end();
    isOver = true;
    assert.deepEqual([...lats], [2], 'nobody ever saw the position of the snapshot');
    assert.equal(reloads(scene), 1);
    assert.deepEqual([...receivers], [1], 'the endpoint was there at every moment');
    await proveFresh(scene);
  });

  test('what a point brings after the last look at the feed is there too', async (t) => {
    const scene = await setUp(t);
    const { pod } = scene;
    scene.wasAway();
    const load = await scene.beginLoad();
    const nowMs = Date.now();
    // From here on every position counts, up to the moment in which the new memory takes the place of the old one.
    const { adopt } = pod.fleet;
    let moved = false;
    pod.fleet.adopt = (loaded) => {
      const { id } = pod.fleet.anyDevice(IMEIS[1])?.fields ?? { id: 0 };
      const place = { lat: 7, lng: 7, altitudeM: 0, speedKmh: 0, odometerKm: null };
      moved = pod.fleet.move(id, { ...place, recordedAtMs: nowMs, movedAtMs: nowMs });
      adopt.call(pod.fleet, loaded);
    };
    await load.end();
    assert.equal(moved, true);
    assert.equal(latOf(scene, IMEIS[1]), 7);
  });
});

describe('after everything was loaded anew', () => {
  test('what is gone from Postgres is gone', async (t) => {
    const scene = await setUp(t);
    const { sql, pod } = scene;
    await sql`delete from device_state`;
    await sql`delete from device`;
    await sql`delete from webhook`;
    scene.wasAway();
    await pod.follower.catchUp();
    assert.equal(pod.fleet.deviceCount, 0);
    assert.equal(pod.subscriptions.size, 0);
    await proveFresh(scene);
  });
});

/** As after the promotion of a replica: the server is another one, and lacks what was written last. */
const failOver = async (sql: Sql, to = 'other/2'): Promise<void> => {
  await sql.unsafe(
    `create or replace function server_history() returns text language sql as $$ select '${to}' $$`,
  );
};

describe('another server, with an older past', () => {
  test('is noticed, and memory then equals it, older as it is', async (t) => {
    const scene = await setUp(t);
    const { sql, pod } = scene;
    const [imei] = IMEIS;
    const nowMs = Date.now();
    await pod.ingest.store([fixOf(imei, nowMs - 1_000, { lat: 5 })]);
    // The device was renamed, moved, and its world raised, on the server that is lost.
    const known = pod.fleet.anyDevice(imei)?.fields;
    assert.ok(known);
    pod.fleet.putDevice({ ...known, name: 'lost', editedAtMs: known.editedAtMs + 60_000 });
    pod.fleet.raiseVersion(known.worldId, 99);
    pod.tenancy.putAccount(999, 998, known.worldId);
    await sql`update device_state set recorded_at = recorded_at - interval '1 hour', latitude = 4`;
    await failOver(sql);
    await pod.follower.catchUp();
    assert.equal(reloads(scene), 1);
    assert.equal(latOf(scene, imei), 4);
    assert.equal(pod.fleet.anyDevice(imei)?.fields.name, null);
    await proveFresh(scene);
    await pod.follower.catchUp();
    assert.equal(reloads(scene), 1);
  });

  test('stores no point that was judged by the memory of the lost one', async (t) => {
    const { sql, pod } = await setUp(t);
    await failOver(sql);
    await assert.rejects(pod.ingest.store([fixOf(IMEIS[0], Date.now())]), isUnavailable);
    assert.deepEqual([...(await sql`select 1 from position`)], []);
    await pod.follower.catchUp();
    assert.deepEqual(await pod.ingest.store([fixOf(IMEIS[0], Date.now())]), ['accepted']);
  });

  test('is not told that this pod has followed it before it has', async (t) => {
    const { sql, pod } = await setUp(t);
    const seen = async () => (await sql`select 1 from pod where id = ${pod.podId}`).length;
    assert.equal(await seen(), 0);
    const { stand } = pod.follower;
    await failOver(sql);
    await upsertPod(sql, pod.podId, stand);
    assert.equal(await seen(), 0);
    await pod.follower.catchUp();
    assert.equal(await seen(), 1);
  });

  test('has versions that are newer than all of the lost one, so that pods are told of its writes', async (t) => {
    const scene = await setUp(t);
    const { sql, pod } = scene;
    const [device] = [pod.fleet.anyDevice(IMEIS[0])];
    const worldId = device?.fields.worldId ?? 0;
    const lost = pod.fleet.worldVersion(worldId) + 10;
    await sql.unsafe(
      'create or replace function server_timeline() returns bigint language sql as $$ select 2::bigint $$',
    );
    await failOver(sql);
    await pod.follower.catchUp();
    assert.ok(pod.fleet.worldVersion(worldId) > lost);
    await proveFresh(scene);
  });

  test('that is still a replica is taken for no Postgres at all', async (t) => {
    const { sql, pod } = await setUp(t);
    const { stand } = pod.follower;
    await sql.unsafe(
      'create or replace function server_history() returns text language sql as $$ select null::text $$',
    );
    await assert.rejects(pod.follower.catchUp(), isUnavailable);
    assert.deepEqual(pod.follower.stand, stand);
    assert.equal(pod.fleet.deviceCount, IMEIS.length);
  });
});
