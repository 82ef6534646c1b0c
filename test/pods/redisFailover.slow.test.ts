import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { selectInstanceId } from '../../src/changelog/database.sql.ts';
import { openSql } from '../../src/postgres/sql.ts';
import { redisKeys } from '../../src/redis/redisConnection.ts';
import { RedisDeliverySchedule } from '../../src/redis/wakeUps.ts';
import { asks, startPod as startRedisPod } from '../redis/pod.ts';
import { startLoad } from '../support/ingest/load.ts';
import { startPod } from '../support/pod.ts';
import { adminOf } from '../support/postgres/admin.ts';
import { createDatabase } from '../support/postgres/postgres.ts';
import { skipWithoutRedis, type TestRedis } from '../support/redis.ts';
import { startClusterRedis } from '../support/redisCluster.ts';
import { startSentinelRedis } from '../support/redisSentinel.ts';
import { waitFor } from '../support/waitFor.ts';
import { postPoints } from '../support/webhooks/webhooks.ts';

const OWNER = 'owner@example.com';
const IMEI = '350000000000001';
/** Of a client beside the pod, with a schedule of its own. */
const OTHER_NAMESPACE = 'other';
const IP = '192.0.2.1';
const ENDPOINT = 7;
const PAUSE_MS = 100;
const LIMITS = { RATE_LIMIT_KEY_MINUTE: '100000', RATE_LIMIT_KEY_HOUR: '100000', RATE_LIMIT_IP_MINUTE: '0' };

interface ReplicatedRedis {
  readonly url: string;
  readonly master: TestRedis;
  readonly replica: TestRedis;
}

/** Who promotes the replica. `keys`: what the master must have. */
const kinds: Readonly<Record<string, (t: TestContext, keys: string[]) => Promise<ReplicatedRedis>>> = {
  'sentinels promote a replica': (t) => startSentinelRedis(t),
  'a cluster promotes a replica': startClusterRedis,
};

for (const [what, startReplicated] of Object.entries(kinds))
  test(
    `when ${what}, limits and deliveries go on there, and every call is answered`,
    {
      skip: skipWithoutRedis(),
    },
    (t) => goesOn(t, startReplicated),
  );

async function goesOn(t: TestContext, startReplicated: (typeof kinds)[string]): Promise<void> {
  const { url } = await createDatabase(t);
  const namespaces = [await instanceOf(url), OTHER_NAMESPACE];
  const keys = namespaces.map((namespace) => redisKeys(namespace, 'redis+cluster://a').channel);
  const { url: redisUrl, master, replica } = await startReplicated(t, keys);
  const admin = adminOf(url, redisUrl);
  await admin.account(OWNER);
  const { key } = await admin.key(OWNER);
  await admin.device(OWNER, IMEI);
  const pod = await startPod(url, { t, env: { ...LIMITS, REDIS_URL: redisUrl } });
  const promoted = new Redis(replica.url, { readOnly: true });
  promoted.on('error', () => undefined); // the server ends first
  t.after(() => promoted.disconnect());
  const own = await startRedisPod(t, redisUrl, { namespace: OTHER_NAMESPACE });
  const schedule = new RedisDeliverySchedule(own.port, own.names);
  await schedule.add(ENDPOINT, 0);
  await own.limiter.check(asks({ ip: IP }), 0);
  await waitFor(async () => (await promoted.get(`${own.names.ipMinute}${IP}`)) === '1');
  const subscribers = async () =>
    ((await promoted.pubsub('CHANNELS', '*')) as string[]).filter((name) => name.startsWith('fleet:')).length;
  assert.equal(await subscribers(), 0);

  let recordedAtMs = Date.now() - 1_000_000;
  const point = () => ({ imei: IMEI, recorded_at: recordedAtMs++, latitude: 1, longitude: 2 });
  await pod.points([point()]);
  const load = startLoad(t, {
    poll: async () => {
      await sleep(PAUSE_MS);
      return pod.get(`/api/v3/devices/${IMEI}/location`, key);
    },
    point: async () => {
      await sleep(PAUSE_MS);
      return { status: await postPoints(pod.ingest, [point()]) };
    },
  });
  await waitFor(() => (load.tally['poll 200'] ?? 0) > 5);
  const lostAtMs = performance.now();
  // It keeps its connections open: that is the hardest to notice.
  master.pause();
  await waitFor(async () => (await promoted.info('replication')).includes('role:master'));
  const promotedAtMs = performance.now();
  await waitFor(async () => {
    await own.limiter.check(asks({ ip: IP }), 0);
    return Number(await promoted.get(`${own.names.ipMinute}${IP}`)) > 1;
  });
  t.diagnostic(
    `promoted ${Math.round(promotedAtMs - lostAtMs)} ms after the silence, in use ${Math.round(performance.now() - promotedAtMs)} ms later`,
  );
  await waitFor(async () => (await promoted.keys('fleet:*:km:*')).length > 0);
  await waitFor(async () => (await subscribers()) === 1);
  assert.deepEqual(await schedule.take(10), [ENDPOINT], 'the replica had it, and it is read from there');
  await load.stop();
  assert.deepEqual(Object.keys(load.tally).sort(), ['point 200', 'poll 200']);
}

async function instanceOf(database: string): Promise<string> {
  const sql = openSql(database, { maxConnections: 1, name: 'test' });
  try {
    return await sql.begin((tx) => selectInstanceId(tx));
  } finally {
    await sql.end();
  }
}
