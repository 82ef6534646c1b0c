import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { startLoad } from '../support/ingest/load.ts';
import { INGEST_TOKEN, NO_LIMITS, type Pod, request, startPod } from '../support/pod.ts';
import { type PodPair, startPodPair } from '../support/podPair.ts';
import { type Admin, adminOf } from '../support/postgres/admin.ts';
import { createDatabase } from '../support/postgres/postgres.ts';
import { skipWithoutRedis, startRedis, type TestRedis } from '../support/redis.ts';
import { runs } from '../support/torture.ts';
import { waitFor } from '../support/waitFor.ts';

const OWNER = 'owner@example.com';
const IMEI = '350000000000001';

interface Setup extends PodPair {
  readonly admin: Admin;
  readonly key: string;
}

async function startSetup(t: TestContext, limits = NO_LIMITS): Promise<Setup> {
  const pair = await startPodPair(t, { limits });
  const admin = adminOf(pair.url, pair.redis.url);
  await admin.account(OWNER);
  await admin.device(OWNER, IMEI);
  const { key } = await admin.key(OWNER);
  await pair.pods[0].points([{ imei: IMEI, recorded_at: Date.now() - 1000, latitude: 10, longitude: 20 }]);
  return { ...pair, admin, key };
}

const REDIS_ERRORS: readonly [name: string, enter: (redis: TestRedis) => Promise<void>][] = [
  [
    'stopped and restarted',
    async (redis) => {
      await redis.stop();
      await sleep(100);
      await redis.restart();
    },
  ],
  [
    'silent for a while',
    async (redis) => {
      redis.pause();
      await sleep(300);
      redis.resume();
    },
  ],
  [
    'emptied',
    async (redis) => {
      const client = new Redis(redis.url);
      await client.flushall();
      client.disconnect();
    },
  ],
  [
    'losing all connections',
    async (redis) => {
      const client = new Redis(redis.url);
      await client.call('CLIENT', 'KILL', 'SKIPME', 'yes');
      client.disconnect();
    },
  ],
];

describe('Redis is harmed under load', { skip: skipWithoutRedis(), concurrency: 2 }, () => {
  for (const [name, enter] of REDIS_ERRORS) {
    test(`${name}: every call is answered as if nothing had happened`, async (t) => {
      const { redis, pods, admin, key } = await startSetup(t);
      let recordedAtMs = Date.now() - 1_000_000;
      const calls = pods.flatMap((pod, n): [string, () => Promise<{ status: number }>][] => [
        [`nearest ${n}`, () => pod.get('/api/v3/devices/nearest?lat=10&lng=20', key)],
        [`list ${n}`, () => pod.get('/api/v2/devices', key)],
        [`history ${n}`, () => pod.get(`/api/v3/devices/${IMEI}/history?limit=1`, key)],
        [
          `ingest ${n}`,
          () => {
            recordedAtMs += 1_000;
            return request(`${pod.ingest}/positions`, {
              method: 'POST',
              headers: { 'X-Ingest-Token': INGEST_TOKEN },
              body: JSON.stringify({ imei: IMEI, recorded_at: recordedAtMs, latitude: 10, longitude: 20 }),
            });
          },
        ],
      ]);
      const load = startLoad(t, Object.fromEntries(calls));
      for (let round = 0; round < runs(2); round++) {
        await enter(redis);
        const { id, key: another } = await admin.key(OWNER);
        for (const pod of pods) assert.equal((await pod.get('/api/v3/devices', another)).status, 200);
        await admin.run('key:revoke', '--id', String(id));
        for (const pod of pods) {
          const { body } = await pod.get('/api/v3/devices', another);
          assert.equal(body.error?.code, 'API_KEY_REVOKED');
        }
      }
      await load.stop();
      assert.deepEqual(
        Object.keys(load.tally).sort(),
        calls.map(([call]) => `${call} 200`).sort(),
        JSON.stringify(load.tally),
      );
    });
  }
});

describe('limits while Redis is lost', { skip: skipWithoutRedis() }, () => {
  const LIMIT = 120;

  /** How many of many calls to each pod are answered with 200; few at a time, so that Redis can answer in time. */
  async function authorized(pods: readonly Pod[], key: string): Promise<number[]> {
    const counts = pods.map(() => 0);
    for (let round = 0; round < LIMIT / 10 + 3; round++) {
      await Promise.all(
        pods.map(async (pod, n) => {
          const calls = Array.from({ length: 10 }, () => pod.get('/api/v3/devices', key));
          for (const { status } of await Promise.all(calls)) {
            assert.ok(status === 200 || status === 429, String(status));
            if (status === 200) counts[n] = (counts[n] as number) + 1;
          }
        }),
      );
    }
    return counts;
  }

  test('each pod still holds them, and once Redis is back both together', async (t) => {
    const { redis, pods, admin } = await startSetup(t, { RATE_LIMIT_IP_MINUTE: '0' });
    const { key } = await admin.key(OWNER);
    const { id, key: second } = await admin.key(OWNER);
    for (const pod of pods) assert.equal((await pod.get('/api/v3/devices', key)).status, 200);
    await redis.stop();
    assert.deepEqual(await authorized(pods, key), [LIMIT, LIMIT]);
    await redis.restart();
    const client = new Redis(redis.url);
    client.on('error', () => undefined); // at the end Redis goes first
    t.after(() => client.disconnect());
    const count = async () => Number(await client.get((await client.keys(`fleet:*:km:${id}`))[0] ?? ''));
    await waitFor(async () => {
      const before = await count();
      for (const pod of pods) await pod.get('/api/v3/devices', second);
      return (await count()) === before + pods.length;
    });
    const used = await count();
    const [here = 0, there = 0] = await authorized(pods, second);
    // A pod that does not get an answer of Redis in time counts such a call alone; each alone would allow twice the limit.
    const allowed = here + there;
    assert.ok(allowed >= LIMIT - used && allowed < 1.5 * LIMIT, `${allowed} calls, ${used} before`);
  });
});

describe('a pod whose Redis is not there when it starts', { skip: skipWithoutRedis() }, () => {
  test('serves, and shares limits once it comes', async (t) => {
    const { url } = await createDatabase(t);
    const redis = await startRedis(t);
    await redis.stop();
    const admin = adminOf(url);
    await admin.account(OWNER);
    const { key } = await admin.key(OWNER);
    const pod = await startPod(url, { t, env: { REDIS_URL: redis.url } });
    assert.equal((await pod.get('/api/v3/devices', key)).status, 200);
    await redis.restart();
    await waitFor(async () => {
      assert.equal((await pod.get('/api/v3/devices', key)).status, 200);
      const client = new Redis(redis.url);
      const names = await client.keys('fleet:*:km:*');
      client.disconnect();
      return names.length > 0;
    });
  });
});
