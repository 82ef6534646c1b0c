import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pino } from 'pino';
import { selectPostgresState } from '../../src/changelog/database.sql.ts';
import { openSql } from '../../src/postgres/sql.ts';
import { StreamClient } from '../support/feeds/feedReader.ts';
import { areaApi, CIRCLE } from '../support/http/areas.ts';
import { startLoad } from '../support/ingest/load.ts';
import { NO_LIMITS, startPod } from '../support/pod.ts';
import { adminOf } from '../support/postgres/admin.ts';
import { startReplicatedPostgres } from '../support/postgres/replicatedPostgres.ts';
import { skipWithoutRedis, startRedis } from '../support/redis.ts';
import { waitFor } from '../support/waitFor.ts';

const OWNER = 'owner@example.com';
const [KEPT, LOST] = ['350000000000001', '350000000000002'];
/** Far more than are written afterwards: all of those get numbers that the pods have seen before. */
const LOST_WRITES = 60;
/** That a transaction writes to the log. */
const LEAST_BYTES = 100;
const LATER_WRITES = 20;
const FEEDS = ['devices/changes', 'events/feed'] as const;
const near = { lat: 41.9, lng: 12.5 };
const far = { lat: -30, lng: 100 };

test('after the promotion of a replica that lacks the newest transactions, pods know it and follow what comes then', {
  skip: skipWithoutRedis(),
}, async (t) => {
  const postgres = await startReplicatedPostgres(t);
  const redis = await startRedis(t);
  const admin = adminOf(postgres.hostsUrl, redis.url);
  await admin.account(OWNER);
  const { key } = await admin.key(OWNER);
  await admin.device(OWNER, KEPT);
  const env = { ...NO_LIMITS, REDIS_URL: redis.url };
  const primary = openSql(postgres.url, { maxConnections: 1, name: 'test' });
  await waitFor(async () => (await selectPostgresState(primary)).replicas.length === 1);
  const state = await selectPostgresState(primary);
  assert.ok(state.databaseBytes > 1_000_000, 'the size of the database');
  assert.ok(state.replicas.every(({ replica, lagBytes }) => replica === 'walreceiver' && lagBytes >= 0));
  await primary.end();
  // One behind a single address, one that finds the primary among both hosts.
  const logged: Record<string, unknown>[] = [];
  const log = pino({ level: 'warn' }, { write: (line) => void logged.push(JSON.parse(line)) });
  const pods = [
    await startPod(postgres.url, { env, log }),
    await startPod(postgres.hostsUrl, { env }),
  ] as const;
  t.after(() => Promise.all(pods.map((pod) => pod.stop())));
  await admin.sql(async (sql) => {
    const [used] = await sql`
      select bool_or(ssl) as encrypted from pg_stat_ssl join pg_stat_activity using (pid)
      where application_name = 'fleet listener'`;
    assert.deepEqual(used, { encrypted: true }, 'the second pod uses TLS');
  });
  const strict = openSql(postgres.hostsUrl.replace(/&sslrootcert=.*/, ''), {
    maxConnections: 1,
    name: 'test',
  });
  await assert.rejects(async () => strict`select 1`, { code: 'DEPTH_ZERO_SELF_SIGNED_CERT' });
  await strict.end();
  const apis = pods.map((pod) => areaApi(pod, key)) as [
    ReturnType<typeof areaApi>,
    ReturnType<typeof areaApi>,
  ];
  const id = await apis[0].make({ ...CIRCLE, center: near });
  const isInside = async (n: 0 | 1): Promise<unknown> =>
    (await apis[n].contains(id, near.lat, near.lng)).body.data?.inside;
  const imeis = async (n: 0 | 1): Promise<unknown> =>
    (await pods[n].get('/api/v3/devices', key)).body.data?.map((device: { imei: string }) => device.imei);
  const point = (lat: number, at: number) => ({
    imei: KEPT,
    recorded_at: at,
    latitude: lat,
    longitude: 12.5,
  });
  const nowMs = Date.now();
  await pods[0].points([point(1, nowMs - 3_000)]);

  /** What is sent of an own commit comes once more when it is followed. */
  const cursorOf = async (path: string): Promise<string> => {
    let cursor = '';
    await waitFor(async () => {
      const at = cursor === '' ? '' : `?cursor=${cursor}`;
      const { body } = await pods[0].get(`/api/v3/${path}${at}`, key);
      const isFinished = cursor !== '' && body.data.length === 0;
      cursor = body.meta.cursor;
      return isFinished;
    });
    return cursor;
  };
  const cursorsOf = () => Promise.all(FEEDS.map(cursorOf));
  const kept = await cursorsOf();
  await postgres.loseReplica();
  await admin.device(OWNER, LOST);
  await pods[0].points([point(2, nowMs - 1_000)]);
  for (let n = 0; n < LOST_WRITES; n++)
    assert.equal((await apis[0].patch(id, { name: `Lost ${n}`, center: far })).status, 200);
  for (const n of [0, 1] as const) {
    assert.equal(await isInside(n), false);
    assert.deepEqual(await imeis(n), [KEPT, LOST]);
  }

  const lost = await cursorsOf();
  const follow = (pod: 0 | 1, cursors: readonly string[], query = '') =>
    Promise.all(FEEDS.map((path, n) => pods[pod].get(`/api/v3/${path}?cursor=${cursors[n]}${query}`, key)));
  const stream = await StreamClient.open(pods[0], key);
  const waiting = follow(1, lost, '&wait=25');

  const poll = (n: 0 | 1) => pods[n].get(`/api/v3/devices/${KEPT}/location`, key);
  const polls = startLoad(t, { first: () => poll(0), second: () => poll(1) });
  await postgres.failOver();
  const promotedAtMs = performance.now();
  // The very next write that succeeds must hold on both, with whatever memory they are.
  let write = 0;
  await waitFor(
    async () => (await apis[1].patch(id, { name: `New ${++write}`, center: near })).status === 200,
  );
  t.diagnostic(`a write is taken ${Math.round(performance.now() - promotedAtMs)} ms after the promotion`);
  for (const n of [0, 1] as const) {
    assert.equal(await isInside(n), true);
    assert.deepEqual(await imeis(n), [KEPT], 'what was lost is gone');
    const { body } = await pods[n].get(`/api/v3/devices/${KEPT}/location`, key);
    assert.equal(body.data.latitude, 1);
  }
  const told = logged.filter(({ msg }) => msg === 'another server; reloading everything');
  assert.equal(told.length, 1, 'the loss is told once');
  assert.ok(Number(told[0]?.['lost_wal_bytes']) > LOST_WRITES * LEAST_BYTES, JSON.stringify(told));
  // Nobody is left with what was lost.
  await polls.stop();
  assert.deepEqual(Object.keys(polls.tally).sort(), ['first 200', 'second 200']);
  for (const [n, { status, body }] of (await waiting).entries()) {
    if (status === 503) continue;
    // A wait that ends before the pod knows of it returns nothing, and its cursor is of the old server.
    const last =
      status === 200 ? await pods[1].get(`/api/v3/${FEEDS[n]}?cursor=${body.meta.cursor}`, key) : null;
    assert.deepEqual([body.data ?? [], last?.status ?? status], [[], 410]);
  }
  await stream.ended;
  for (const pod of [0, 1] as const) {
    assert.deepEqual(
      (await follow(pod, lost)).map(({ status }) => status),
      [410, 410],
    );
    assert.deepEqual(
      (await follow(pod, kept)).map(({ status }) => status),
      [200, 200],
      'the replica had everything that these have seen',
    );
    const resumed = await pods[pod].get(`/api/v3/stream?cursor=${stream.lastId}`, key);
    assert.equal(resumed.status, 410);
  }
  for (let n = 0; n < LATER_WRITES; n++) {
    const center = n % 2 === 0 ? far : near;
    assert.equal((await apis[(n % 2) as 0 | 1].patch(id, { center })).status, 200);
    for (const reader of [0, 1] as const)
      assert.equal(await isInside(reader), n % 2 === 1, `write ${n}, pod ${reader}`);
  }
  await admin.device(OWNER, LOST);
  await waitFor(async () => ((await imeis(1)) as string[]).includes(LOST));
  const [accepted] = [await pods[1].points([point(3, nowMs - 2_000)])];
  assert.deepEqual([accepted.accepted, accepted.late], [1, 0], 'newer than what the replica knew');
});
