import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { upsertPod } from '../../src/changelog/pods.sql.ts';
import { openSql, type Sql } from '../../src/postgres/sql.ts';
import { isUnavailable } from '../../src/postgres/sqlErrors.ts';
import { insertWebhook } from '../../src/webhooks/webhooks.sql.ts';
import { fixOf } from '../support/ingest/fixOf.ts';
import { adminOf } from '../support/postgres/admin.ts';
import { countLockWaiters, holdTransaction } from '../support/postgres/holdTransaction.ts';
import { createDatabase } from '../support/postgres/postgres.ts';
import { waitFor } from '../support/waitFor.ts';
import { allWorlds, dump, dumpFresh, type MemoryPod, openMemoryPod } from './memoryPod.ts';

const IMEIS = ['350000000000001', '350000000000002', '350000000000003'] as const;
const AWAY_MS = 15 * 60_000;

interface Setup {
  readonly sql: Sql;
  readonly pod: MemoryPod;
  /** Makes the pod believe that it was away for too long. */
  wasAway(): void;
  /** Begins a load that waits half way; `end` lets it finish, and `fail` ends its connection. */
  beginLoad(): Promise<{ end(): Promise<void>; fail(): Promise<void> }>;
}

/** A pod with three devices and an endpoint for all events. It reads the feed on demand only. */
async function setUp(t: TestContext): Promise<Setup> {
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
        retry_policy: 'none',
        max_retries: 0,
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
    // Areas are read last, and points do not touch their table.
    const release = await holdTransaction(sql, (tx) => tx`lock table area in access exclusive mode`);
    const loading = pod.follower.catchUp();
    await waitFor(async () => (await countLockWaiters(sql)) > 0);
    return {
      end: async () => {
        await release();
        await loading;
      },
      fail: async () => {
        const failed = assert.rejects(loading, isUnavailable);
        await sql`
          select pg_terminate_backend(pid) from pg_stat_activity
          where datname = current_database() and wait_event_type = 'Lock'`;
        await failed;
        await release();
      },
    };
  };
  return { sql, pod, wasAway, beginLoad };
}

async function proveFresh({ sql, pod }: Setup): Promise<void> {
  const worldIds = await allWorlds(sql);
  assert.deepEqual(dump(pod, worldIds), await dumpFresh(sql, worldIds));
}

const latOf = ({ pod }: Setup, imei: string) => pod.fleet.anyDevice(imei)?.position?.lat;
const reloads = ({ pod }: Setup) => pod.log.filter((line) => line.includes('reloading')).length;

describe('while everything is reloaded', () => {
  test('points find their endpoints and move their devices, and these positions stay', async (t) => {
    const setup = await setUp(t);
    const { pod } = setup;
    const [imei] = IMEIS;
    const nowMs = Date.now();
    await pod.ingest.store([fixOf(imei, nowMs - 2_000, { lat: 1 })]);
    setup.wasAway();
    const load = await setup.beginLoad();
    assert.deepEqual(await pod.ingest.store([fixOf(imei, nowMs - 1_000, { lat: 2 })]), ['accepted']);
    assert.equal(latOf(setup, imei), 2);
    const { worldId } = pod.fleet.anyDevice(imei)?.fields ?? { worldId: 0 };
    const lats = new Set<number | undefined>();
    const receivers = new Set<number>();
    let isOver = false;
    const look = (): void => {
      lats.add(latOf(setup, imei));
      receivers.add(pod.subscriptions.receivers([worldId], 'geofence_enter').length);
      if (!isOver) setImmediate(look);
    };
    look();
    await load.end();
    isOver = true;
    assert.deepEqual([...lats], [2], 'the position of the snapshot was never visible');
    assert.equal(reloads(setup), 1);
    assert.deepEqual([...receivers], [1], 'the endpoint was there at every moment');
    await proveFresh(setup);
  });
});

describe('a reload that takes long', () => {
  test('is not waited for by calls, nor is the next one, while memory may answer', async (t) => {
    const setup = await setUp(t);
    const { sql, pod } = setup;
    const { follower } = pod;
    for (const [to, isLong] of [
      ['other/2', false],
      ['other/3', true],
    ] as const) {
      await failOver(sql, to);
      const load = await setup.beginLoad();
      if (!isLong) await waitFor(() => follower.isUnresponsive);
      assert.equal(follower.isUnresponsive, true);
      await load.end();
      assert.equal(follower.isUnresponsive, false);
    }
    setup.wasAway();
    const load = await setup.beginLoad();
    assert.equal(follower.isUnresponsive, false, 'memory is too old to answer');
    await load.end();
  });
});

describe('a reload that fails half way', () => {
  test('leaves a memory that answers, and begins again', async (t) => {
    const setup = await setUp(t);
    const { sql, pod } = setup;
    await pod.ingest.store([fixOf(IMEIS[0], Date.now() - 2_000, { lat: 1 })]);
    await sql`update device_state set latitude = 2, revision = revision + 1 where recorded_at is not null`;
    await sql`delete from webhook`;
    setup.wasAway();
    await (await setup.beginLoad()).fail();
    assert.equal(latOf(setup, IMEIS[0]), 2, 'devices are compared first');
    assert.equal(pod.subscriptions.size, 1, 'endpoints are read last');
    await pod.follower.catchUp();
    assert.equal(reloads(setup), 2);
    await proveFresh(setup);
  });

  test('on another server takes no points, also when the first server is back, before memory is of one', async (t) => {
    const setup = await setUp(t);
    const { sql, pod } = setup;
    const [first] = await sql<{ server: string }[]>`select server_history() as server`;
    await failOver(sql);
    await (await setup.beginLoad()).fail();
    await failOver(sql, first?.server);
    await assert.rejects(pod.ingest.store([fixOf(IMEIS[0], Date.now())]), isUnavailable);
    await pod.follower.catchUp();
    assert.equal(reloads(setup), 2);
    await proveFresh(setup);
    assert.deepEqual(await pod.ingest.store([fixOf(IMEIS[0], Date.now())]), ['accepted']);
  });
});

describe('after everything was reloaded', () => {
  test('what is gone from Postgres is gone from memory', async (t) => {
    const setup = await setUp(t);
    const { sql, pod } = setup;
    await sql`delete from device_state`;
    await sql`delete from device`;
    await sql`delete from webhook`;
    setup.wasAway();
    await pod.follower.catchUp();
    assert.equal(pod.fleet.deviceCount, 0);
    assert.equal(pod.subscriptions.size, 0);
    await proveFresh(setup);
  });
});

/** Simulates the promotion of a replica: the server is another one, and lacks the last writes. */
const failOver = async (sql: Sql, to = 'other/2'): Promise<void> => {
  await sql.unsafe(
    `create or replace function server_history() returns text language sql as $$ select '${to}' $$`,
  );
};

describe('another server, with an older state,', () => {
  test('is noticed, and memory then equals it', async (t) => {
    const setup = await setUp(t);
    const { sql, pod } = setup;
    const [imei] = IMEIS;
    const nowMs = Date.now();
    await pod.ingest.store([fixOf(imei, nowMs - 1_000, { lat: 5 })]);
    // The device was renamed, moved, and its world raised, on the server that is lost.
    const known = pod.fleet.anyDevice(imei)?.fields;
    assert.ok(known);
    pod.fleet.putDevice({ ...known, name: 'lost', editedAtMs: known.editedAtMs + 60_000 });
    pod.fleet.raiseVersion(known.worldId, 99);
    pod.tenancy.putAccount(999, 998, known.worldId);
    // A transaction of this pod that is lost: another one will have its number.
    const { applied } = pod.follower;
    applied.addOwn(2 ** 40, new Set([known.worldId]));
    await sql`update device_state set recorded_at = recorded_at - interval '1 hour', latitude = 4`;
    await failOver(sql);
    await pod.follower.catchUp();
    assert.equal(reloads(setup), 1);
    assert.equal(applied.own.size, 0);
    assert.equal(latOf(setup, imei), 4);
    assert.equal(pod.fleet.anyDevice(imei)?.fields.name, null);
    await proveFresh(setup);
    await pod.follower.catchUp();
    assert.equal(reloads(setup), 1);
  });

  test('stores no point that was evaluated against memory of the lost one', async (t) => {
    const { sql, pod } = await setUp(t);
    await failOver(sql);
    await assert.rejects(pod.ingest.store([fixOf(IMEIS[0], Date.now())]), isUnavailable);
    assert.deepEqual([...(await sql`select 1 from position`)], []);
    await pod.follower.catchUp();
    assert.deepEqual(await pod.ingest.store([fixOf(IMEIS[0], Date.now())]), ['accepted']);
  });

  test('does not list this pod before the pod has followed it', async (t) => {
    const { sql, pod } = await setUp(t);
    const seen = async () => (await sql`select 1 from pod where id = ${pod.podId}`).length;
    assert.equal(await seen(), 0);
    const { writes } = pod.follower.applied;
    await failOver(sql);
    await upsertPod(sql, pod.podId, writes);
    assert.equal(await seen(), 0);
    await pod.follower.catchUp();
    assert.equal(await seen(), 1);
  });

  test('has versions that are newer than all of the lost one, so that pods notice its writes', async (t) => {
    const setup = await setUp(t);
    const { sql, pod } = setup;
    const [device] = [pod.fleet.anyDevice(IMEIS[0])];
    const worldId = device?.fields.worldId ?? 0;
    const lost = pod.fleet.worldVersion(worldId) + 10;
    await sql.unsafe(
      'create or replace function server_timeline() returns bigint language sql as $$ select 2::bigint $$',
    );
    await failOver(sql);
    await pod.follower.catchUp();
    assert.ok(pod.fleet.worldVersion(worldId) > lost);
    await proveFresh(setup);
  });

  test('that is still a replica counts as unavailable', async (t) => {
    const { sql, pod } = await setUp(t);
    const { writes } = pod.follower.applied;
    await sql.unsafe(
      'create or replace function server_history() returns text language sql as $$ select null::text $$',
    );
    await assert.rejects(pod.follower.catchUp(), isUnavailable);
    assert.deepEqual(pod.follower.applied.writes, writes);
    assert.equal(pod.fleet.deviceCount, IMEIS.length);
  });
});
