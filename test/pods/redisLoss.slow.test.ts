import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { startLoad } from '../support/ingest/load.ts';
import { type Pod, startPod } from '../support/pod.ts';
import { podPair } from '../support/podPair.ts';
import { type Admin, adminOf } from '../support/postgres/admin.ts';
import { skipWithoutRedis, type TestRedis } from '../support/redis.ts';
import { runs } from '../support/torture.ts';
import { waitFor } from '../support/waitFor.ts';
import { postPoints } from '../support/webhooks/webhooks.ts';

const OWNER = 'owner@example.com';
const IMEI = '350000000000001';
const skip = skipWithoutRedis();

async function ask(redis: TestRedis, work: (client: Redis) => Promise<unknown>): Promise<void> {
  const client = new Redis(redis.url);
  await work(client);
  client.disconnect();
}

const HARMS: readonly ((redis: TestRedis) => Promise<void>)[] = [
  async (redis) => {
    await redis.stop();
    await sleep(100);
    await redis.restart();
  },
  async (redis) => {
    redis.pause();
    await sleep(300);
    redis.resume();
  },
  (redis) => ask(redis, (client) => client.flushall()),
  (redis) => ask(redis, (client) => client.call('CLIENT', 'KILL', 'SKIPME', 'yes')),
];

describe('Redis is harmed under load', { skip }, () => {
  const pair = podPair();

  test('restarted, silent, emptied, without connections: every call is answered as if nothing had happened', async (t) => {
    const { url, redis, pods } = pair;
    const admin = adminOf(url, redis.url);
    await admin.account(OWNER);
    await admin.device(OWNER, IMEI);
    const { key } = await admin.key(OWNER);
    let recordedAtMs = Date.now() - 1_000_000;
    const point = () => {
      recordedAtMs += 1_000;
      return { imei: IMEI, recorded_at: recordedAtMs, latitude: 10, longitude: 20 };
    };
    await pods[0].points([point()]);
    const calls = pods.flatMap((pod, n): [string, () => Promise<{ status: number }>][] => [
      [`nearest ${n}`, () => pod.get('/api/v3/devices/nearest?lat=10&lng=20', key)],
      [`list ${n}`, () => pod.get('/api/v2/devices', key)],
      [`history ${n}`, () => pod.get(`/api/v3/devices/${IMEI}/history?limit=1`, key)],
      [`ingest ${n}`, async () => ({ status: await postPoints(pod.ingest, [point()]) })],
    ]);
    const load = startLoad(t, Object.fromEntries(calls));
    for (let round = 0; round < runs(HARMS.length); round++) {
      await HARMS[round % HARMS.length]?.(redis);
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
});

describe('the limits of a key', { skip }, () => {
  const LIMIT = 120;
  const pair = podPair({ limits: { RATE_LIMIT_IP_MINUTE: '0' } });
  let admin: Admin;
  before(async () => {
    admin = adminOf(pair.url, pair.redis.url);
    await admin.account(OWNER);
  });

  /** How many of many calls to each pod are answered with 200; few at a time, so that Redis can answer in time. */
  async function authorized(pods: readonly Pod[], key: string): Promise<number[]> {
    const counts = pods.map(() => 0);
    for (let round = 0; round < LIMIT / 10 + 3; round++) {
      await Promise.all(
        pods.map(async (pod, n) => {
          const calls = Array.from({ length: 10 }, (_, call) =>
            pod.get(`/api/${call % 3 === 0 ? 'v2' : 'v3'}/devices`, key),
          );
          for (const { status } of await Promise.all(calls)) {
            assert.ok(status === 200 || status === 429, String(status));
            if (status === 200) counts[n] = (counts[n] as number) + 1;
          }
        }),
      );
    }
    return counts;
  }

  test('hold over both pods, v2 and v3 together, and for each key by itself', async () => {
    const [{ key }, { key: other }] = [await admin.key(OWNER), await admin.key(OWNER)];
    const [here = 0, there = 0] = await authorized(pair.pods, key);
    assert.equal(here + there, LIMIT);
    for (const pod of pair.pods) assert.equal((await pod.get('/api/v3/devices', other)).status, 200);
  });

  test('hold on each pod while Redis is lost, and over both once it is back', async (t) => {
    const { pods, redis } = pair;
    const { key } = await admin.key(OWNER);
    const { id, key: second } = await admin.key(OWNER);
    for (const pod of pods) assert.equal((await pod.get('/api/v3/devices', key)).status, 200);
    await redis.stop();
    assert.deepEqual(await authorized(pods, key), [LIMIT, LIMIT]);
    // A pod that starts meanwhile serves too, and counts in Redis as soon as it comes.
    const late = await startPod(pair.url, { t, env: { RATE_LIMIT_IP_MINUTE: '0', REDIS_URL: redis.url } });
    assert.equal((await late.get('/api/v3/devices', key)).status, 200);
    await redis.restart();
    const client = new Redis(redis.url);
    t.after(() => client.disconnect());
    const count = async () => Number(await client.get((await client.keys(`fleet:*:km:${id}`))[0] ?? ''));
    const three = [...pods, late];
    await waitFor(async () => {
      const before = await count();
      for (const pod of three) await pod.get('/api/v3/devices', second);
      return (await count()) === before + three.length;
    });
    const used = await count();
    const [here = 0, there = 0] = await authorized(pods, second);
    // A pod that does not get an answer of Redis in time counts such a call alone; each alone would allow twice the limit.
    const allowed = here + there;
    assert.ok(allowed >= LIMIT - used && allowed < 1.5 * LIMIT, `${allowed} calls, ${used} before`);
  });
});
