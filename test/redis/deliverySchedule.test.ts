import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { HOUR_MS } from '../../src/lib/time.ts';
import { RedisPort, redisKeys } from '../../src/redis/redisConnection.ts';
import {
  type DeliverySchedule,
  LocalDeliverySchedule,
  RedisDeliverySchedule,
} from '../../src/redis/wakeUps.ts';
import { skipWithoutRedis, startRedis } from '../support/redis.ts';
import { waitFor } from '../support/waitFor.ts';

async function redisSchedules(t: TestContext, count: number) {
  const server = await startRedis(t);
  const schedules: { schedule: RedisDeliverySchedule; port: RedisPort }[] = [];
  for (let n = 0; n < count; n++) {
    const redis = new Redis(server.url, { lazyConnect: true, retryStrategy: () => 50 });
    redis.on('error', () => undefined); // the server is stopped on purpose
    // A command that takes longer is done in Redis and in the process.
    const port = new RedisPort(redis, { onEvent: () => undefined, restMs: 50, deadlineMs: 5_000 });
    await redis.connect();
    t.after(() => redis.disconnect());
    schedules.push({ schedule: new RedisDeliverySchedule(port, redisKeys('test')), port });
  }
  return { server, schedules };
}

const FORMS: readonly [string, string | false, (t: TestContext) => Promise<DeliverySchedule>][] = [
  ['in process', false, async () => new LocalDeliverySchedule()],
  [
    'in Redis',
    skipWithoutRedis(),
    async (t) => (await redisSchedules(t, 1)).schedules[0]?.schedule as RedisDeliverySchedule,
  ],
];

for (const [name, skip, make] of FORMS) {
  describe(`the delivery schedule ${name}`, { skip }, () => {
    test('gives each endpoint that is due once, up to the limit', async (t) => {
      const schedule = await make(t);
      assert.deepEqual(await schedule.take(10), []);
      for (const id of [3, 1, 2, 1, 3]) await schedule.add(id, 0);
      const first = await schedule.take(2);
      const rest = await schedule.take(10);
      assert.equal(first.length, 2);
      assert.deepEqual([...first, ...rest].toSorted(), [1, 2, 3]);
      assert.deepEqual(await schedule.take(10), []);
    });

    test('nothing before its time; an earlier time that was asked for stands', async (t) => {
      const schedule = await make(t);
      await schedule.add(1, HOUR_MS);
      await schedule.add(2, HOUR_MS);
      await schedule.add(3, 0);
      await schedule.add(2, 0);
      await schedule.add(3, HOUR_MS);
      assert.deepEqual((await schedule.take(10)).toSorted(), [2, 3]);
      assert.deepEqual(await schedule.take(10), []);
    });

    test('wakes when the time has come, the longest due first', async (t) => {
      const schedule = await make(t);
      // Further apart than a busy machine takes from one to the next.
      await schedule.add(7, 800);
      await schedule.add(8, 400);
      await schedule.add(9, 1);
      await sleep(900);
      assert.deepEqual(await schedule.take(10), [9, 8, 7]);
    });
  });
}

describe('the delivery schedule of several pods', { skip: skipWithoutRedis() }, () => {
  test('what one adds another takes, and no two take the same', async (t) => {
    const { schedules } = await redisSchedules(t, 3);
    const ids = Array.from({ length: 200 }, (_, n) => n + 1);
    await Promise.all(ids.map((id) => schedules[id % 3]?.schedule.add(id, 0)));
    const taken = await Promise.all(schedules.map(({ schedule }) => schedule.take(200)));
    assert.deepEqual(
      taken.flat().sort((a, b) => a - b),
      ids,
    );
  });

  test('an endpoint that was added without Redis and with it is taken once', async (t) => {
    const { server, schedules } = await redisSchedules(t, 1);
    const [{ schedule, port } = assert.fail()] = schedules;
    await server.stop();
    await schedule.add(7, 0);
    await server.restart();
    await waitFor(() => port.isUsable);
    await schedule.add(7, 0);
    assert.deepEqual(await schedule.take(10), [7]);
  });

  test('without Redis each keeps its own, and gives it back first when Redis is there again', async (t) => {
    const { server, schedules } = await redisSchedules(t, 1);
    const [{ schedule, port } = assert.fail()] = schedules;
    await schedule.add(1, 0);
    await server.stop();
    await schedule.add(2, 0);
    await schedule.add(3, 0);
    assert.deepEqual(await schedule.take(1), [2]);
    await server.restart();
    await waitFor(() => port.isUsable);
    await schedule.add(4, 0);
    const [first, ...rest] = await schedule.take(10);
    assert.equal(first, 3);
    // A command that was cut off may have reached Redis all the same: waking twice is allowed, forgetting is not.
    assert.ok(rest.includes(4), rest.join(' '));
  });
});
