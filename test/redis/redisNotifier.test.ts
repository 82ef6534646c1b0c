import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { connectRedis } from '../../src/redis/redisConnection.ts';
import { type NotifierEvent, RedisNotifier } from '../../src/redis/wakeUps.ts';
import { skipWithoutRedis, startRedis } from '../support/redis.ts';
import { eventually, HASTY_MS, SILENT, startPod } from './pod.ts';

interface TestNotifier {
  readonly notifier: RedisNotifier;
  readonly heard: { count: number };
  readonly events: NotifierEvent[];
}

/** Longer than a throttle waits. It ends after every throttle that began before, however slow the machine. */
const QUIET_MS = 50;

/** A notifier that has subscribed and is quiet since. */
async function startNotifier(t: TestContext, url: string): Promise<TestNotifier> {
  const { port } = await startPod(t, url, { deadlineMs: HASTY_MS });
  const subscriber = connectRedis(url, SILENT);
  t.after(() => subscriber.disconnect());
  const events: NotifierEvent[] = [];
  const notifier = new RedisNotifier(port, subscriber, 'channel', (event) => events.push(event));
  t.after(() => notifier.close());
  const heard = { count: 0 };
  notifier.onNotify(() => heard.count++);
  await eventually('the subscription', () => heard.count > 0);
  await sleep(QUIET_MS);
  heard.count = 0;
  return { notifier, heard, events };
}

describe('a notification', { skip: skipWithoutRedis() }, () => {
  test('is heard in its own pod at once, and once in every other', async (t) => {
    const { url } = await startRedis(t);
    const one = await startNotifier(t, url);
    const two = await startNotifier(t, url);
    const three = await startNotifier(t, url);
    two.notifier.notify();
    assert.equal(two.heard.count, 1);
    await eventually('the others hear it', () => one.heard.count === 1 && three.heard.count === 1);
  });

  test('is not heard a second time by the pod that sent it', async (t) => {
    const { url } = await startRedis(t);
    const one = await startNotifier(t, url);
    const two = await startNotifier(t, url);
    two.notifier.notify();
    await eventually('the other pod hears it', () => one.heard.count > 0);
    // Redis keeps the order: the own message would have come before this answer.
    one.notifier.notify();
    await eventually('the answer', () => two.heard.count > 1);
    await sleep(QUIET_MS);
    assert.equal(two.heard.count, 2);
  });

  test('about a trace is heard by the other pods, as it was told, and is no change', async (t) => {
    const { url } = await startRedis(t);
    const one = await startNotifier(t, url);
    const two = await startNotifier(t, url);
    const told: string[] = [];
    one.notifier.onTrace((text) => told.push(`one: ${text}`));
    two.notifier.onTrace((text) => told.push(`two: ${text}`));
    one.notifier.tellTrace('evt_1 00-a-b-01');
    two.notifier.tellTrace('evt_2 00-c-d-01');
    await eventually('both are heard', () => told.length === 2);
    // Redis keeps the order: the own messages would have come before this one.
    one.notifier.notify();
    await eventually('the change', () => two.heard.count > 0);
    assert.deepEqual(told.toSorted(), ['one: evt_2 00-c-d-01', 'two: evt_1 00-a-b-01']);
    assert.deepEqual([one.heard.count, two.heard.count], [1, 1]);
  });

  test('is assumed after a new connection, and heard again from then on', async (t) => {
    const server = await startRedis(t);
    const one = await startNotifier(t, server.url);
    const two = await startNotifier(t, server.url);
    await server.restart();
    await eventually('all listeners are called', () => one.heard.count > 0 && two.heard.count > 0);
    await sleep(QUIET_MS);
    const before = two.heard.count;
    await eventually('a notification of the other pod', () => {
      one.notifier.notify();
      return two.heard.count > before;
    });
  });

  test('is heard in its own pod while Redis is lost, and the failure is reported', async (t) => {
    const server = await startRedis(t);
    const { notifier, heard, events } = await startNotifier(t, server.url);
    await server.stop();
    await eventually('the report', () => {
      notifier.notify();
      return events.some(({ kind }) => kind === 'notify_failed');
    });
    assert.equal(heard.count > 0, true);
  });

  test('is a message of its own form, and nothing else on the channel', async (t) => {
    const { url } = await startRedis(t);
    const { notifier, heard } = await startNotifier(t, url);
    const { redis } = await startPod(t, url);
    for (const message of ['', 'nonsense', 'constructor x', '__proto__ y', 'deliveries stranger']) {
      await redis.publish('channel', message);
    }
    await redis.publish('channel', 'changes stranger');
    await eventually('the valid one', () => heard.count > 0);
    await sleep(QUIET_MS);
    assert.equal(heard.count, 1);
    notifier.notify();
    assert.equal(heard.count, 2);
  });
});
