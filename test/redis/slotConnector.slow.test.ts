import assert from 'node:assert/strict';
import { once } from 'node:events';
import { describe, type TestContext, test } from 'node:test';
import { Redis } from 'ioredis';
import { connectRedis, redisKeys } from '../../src/redis/redisConnection.ts';
import { RedisDeliverySchedule, RedisNotifier } from '../../src/redis/wakeUps.ts';
import { skipWithoutRedis, startRedis } from '../support/redis.ts';
import { type ClusterRedis, startClusterRedis, startNode } from '../support/redisCluster.ts';
import { asks, eventually, HASTY_MS, LIMITS, SILENT, startPod } from './pod.ts';

const NAMESPACE = 'deployment';
const IP = '192.0.2.1';
const WORLD = 5;
const { channel } = redisKeys(NAMESPACE, 'redis+cluster://a');

describe('a Redis Cluster', { skip: skipWithoutRedis() }, () => {
  const has = async (t: TestContext, { url }: ClusterRedis) => {
    const one = await startPod(t, url, {
      namespace: NAMESPACE,
      limits: { ...LIMITS, ipMinute: 2, keyMinute: 0 },
    });
    const other = await startPod(t, url, {
      namespace: NAMESPACE,
      limits: { ...LIMITS, ipMinute: 2, keyMinute: 0 },
    });
    const request = asks({ ip: IP, keyId: 7, worldIds: [WORLD], versions: [1] });
    const stale = await one.limiter.check(request, 0);
    assert.ok(stale.kind === 'stale' && stale.worlds[0]?.state === 'missing');
    assert.equal(await one.versions.restore(WORLD, 1, stale.worlds[0].ticket), true);
    assert.equal((await other.limiter.check(request, 0)).kind, 'pass');
    assert.deepEqual(await one.limiter.check(request, 0), { kind: 'limited', limit: 'ip_minute' });
    assert.equal(await one.versions.publish(WORLD, 2), true);
    assert.equal((await other.limiter.check({ ...request, ip: null }, 0)).kind, 'stale');

    const [added, taken] = [one, other].map(({ port, names }) => new RedisDeliverySchedule(port, names));
    await added?.addAll([{ webhookId: 3, dueInMs: 0 }]);
    assert.deepEqual(await taken?.take(5), [3]);

    const subscriber = connectRedis(url, SILENT, NAMESPACE);
    t.after(() => subscriber.disconnect());
    const notifier = new RedisNotifier(other.port, subscriber, other.names.channel, () => undefined);
    t.after(() => notifier.close());
    let told = '';
    notifier.onTrace((text) => {
      told = text;
    });
    const sender = new RedisNotifier(
      one.port,
      new Redis({ lazyConnect: true }),
      one.names.channel,
      () => undefined,
    );
    t.after(() => sender.close());
    await eventually('the other pod is told', () => {
      sender.tellTrace('of a trace');
      return told === 'of a trace';
    });
  };

  const moves = async (t: TestContext, { url, moveSlot }: ClusterRedis) => {
    let caughtUp = 0;
    const catchUp = async () => {
      caughtUp++;
    };
    const { limiter, port, redis, names } = await startPod(t, url, { namespace: NAMESPACE, catchUp });
    for (let moved = 1; moved <= 2; moved++) {
      const { session } = port;
      const from = redis.stream.remotePort;
      await limiter.check(asks({ ip: IP }), 0);
      await moveSlot();
      await eventually('the limit goes on there', async () => {
        await limiter.check(asks({ ip: IP }), 0);
        return redis.status === 'ready' && redis.stream.remotePort !== from && port.isUsable;
      });
      assert.ok(Number(await redis.get(`${names.ipMinute}${IP}`)) > 1, 'with what was counted');
      await eventually('memory is compared', () => caughtUp === 1 + moved);
      assert.ok(port.session > session);
    }
  };

  const hangs = async (t: TestContext, { url, master, replica }: ClusterRedis) => {
    const { limiter, port, redis } = await startPod(t, url, { namespace: NAMESPACE, deadlineMs: HASTY_MS });
    const { session } = port;
    const promoted = Number(new URL(replica.url).port);
    master.pause();
    await eventually('the promoted replica is used', async () => {
      await limiter.check(asks({ ip: IP }), 0);
      return redis.status === 'ready' && redis.stream.remotePort === promoted && port.isUsable;
    });
    assert.ok(port.session > session);
    // The old master believes for a moment that it has the slot.
    master.resume();
    await eventually('the old master follows', async () => (await roleOf(master.url)) === 'slave');
    assert.equal((await limiter.check(asks({ ip: IP }), 0)).kind, 'pass');
    assert.equal(redis.stream.remotePort, promoted);
  };

  test('has what a deployment keeps in one slot, whose master is followed', async (t) => {
    const cluster = await startClusterRedis(t, [channel]);
    await t.test('limits, versions, the schedule and notifications', (t) => has(t, cluster));
    await t.test('the slot moves: what was known of its keys ends', (t) => moves(t, cluster));
    await t.test('the master hangs: the replica that is promoted is used', (t) => hangs(t, cluster));
  });

  test('is not used through a node that knows no cluster which works', async (t) => {
    const { server: withoutSlots } = await startNode(t);
    const { server: cutOff, admin } = await startNode(t);
    await admin.cluster('ADDSLOTS', await admin.cluster('KEYSLOT', channel));
    const [plain, none, some] = [await startRedis(t), withoutSlots, cutOff].map(
      ({ url }) => new URL(url).host,
    );
    const redis = connectRedis(`redis+cluster://${plain},${none},${some}`, SILENT, NAMESPACE);
    t.after(() => redis.disconnect());
    const reasons: string[] = [];
    redis.on('error', ({ message }: Error) => reasons.push(message));
    await eventually('all were asked', () => reasons.length >= 3);
    assert.deepEqual(reasons.slice(0, 3), [
      `node ${plain}: ERR This instance has cluster support disabled`,
      `node ${none}: its cluster is down`,
      `node ${some}: its cluster is down`,
    ]);
    assert.equal(redis.status, 'connecting');
  });

  test('that cannot be reached is asked for until there is one, and says why without the password', async (t) => {
    const reasons: string[] = [];
    const log = { info: () => {}, warn: (fields: object) => void reasons.push(JSON.stringify(fields)) };
    const redis = connectRedis('redis+cluster://127.0.0.1:1?password=hidden', log, NAMESPACE);
    t.after(() => redis.disconnect());
    const [error] = (await once(redis, 'error')) as [Error];
    assert.match(error.message, /^node 127\.0\.0\.1:1: .*ECONNREFUSED/);
    assert.equal(redis.status, 'connecting');
    redis.disconnect();
    await once(redis, 'end');
    assert.doesNotMatch(reasons.join(), /hidden/);
  });
});

async function roleOf(url: string): Promise<string> {
  const redis = new Redis(url);
  const [role] = await redis.role();
  redis.disconnect();
  return String(role);
}
