import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { type BellEvent, RedisBell } from '../../src/queue/redisBell.ts';
import { connectRedis } from '../../src/queue/redisConnection.ts';
import { skipWithoutRedis, startRedis } from '../support/redis.ts';
import { eventually, HASTY_MS, SILENT, startPod } from './pod.ts';

interface TestBell {
  readonly bell: RedisBell;
  readonly heard: { changes: number; deliveries: number };
  readonly events: BellEvent[];
}

/** Longer than rings are held together. It ends after every such hold that began before, however slow the machine. */
const QUIET_MS = 50;

/** A bell whose subscription stands, and that has fallen silent since. */
async function startBell(t: TestContext, url: string): Promise<TestBell> {
  const { port } = await startPod(t, url, { deadlineMs: HASTY_MS });
  const subscriber = connectRedis(url, SILENT);
  t.after(() => subscriber.disconnect());
  const events: BellEvent[] = [];
  const bell = new RedisBell(port, subscriber, 'bell', (event) => events.push(event));
  t.after(() => bell.close());
  const heard = { changes: 0, deliveries: 0 };
  bell.onRing('changes', () => heard.changes++);
  bell.onRing('deliveries', () => heard.deliveries++);
  await eventually('the subscription', () => heard.changes > 0 && heard.deliveries > 0);
  await sleep(QUIET_MS);
  heard.changes = 0;
  heard.deliveries = 0;
  return { bell, heard, events };
}

describe('the bell between pods', { skip: skipWithoutRedis() }, () => {
  test('is heard here at once and in every other pod, on its own topic only', async (t) => {
    const { url } = await startRedis(t);
    const one = await startBell(t, url);
    const two = await startBell(t, url);
    const three = await startBell(t, url);
    two.bell.ring('changes');
    assert.equal(two.heard.changes, 1);
    await eventually('the others hear it', () => one.heard.changes === 1 && three.heard.changes === 1);
    assert.deepEqual(
      [one, two, three].map(({ heard }) => heard.deliveries),
      [0, 0, 0],
    );
  });

  test('does not ring twice where it was rung', async (t) => {
    const { url } = await startRedis(t);
    const one = await startBell(t, url);
    const two = await startBell(t, url);
    two.bell.ring('deliveries');
    await eventually('the other pod hears it', () => one.heard.deliveries > 0);
    // Redis keeps the order: an echo would have come before this answer.
    one.bell.ring('changes');
    await eventually('the answer', () => two.heard.changes > 0);
    await sleep(QUIET_MS);
    assert.equal(two.heard.deliveries, 1);
  });

  test('rings by itself after a new connection, and is heard again', async (t) => {
    const server = await startRedis(t);
    const one = await startBell(t, server.url);
    const two = await startBell(t, server.url);
    await server.restart();
    await eventually('all listeners look by themselves', () =>
      [one, two].every(({ heard }) => heard.changes > 0 && heard.deliveries > 0),
    );
    const before = two.heard.changes;
    await eventually('a ring from the other pod', () => {
      one.bell.ring('changes');
      return two.heard.changes > before;
    });
  });

  test('is heard here while Redis is lost, and says that the others were not told', async (t) => {
    const server = await startRedis(t);
    const { bell, heard, events } = await startBell(t, server.url);
    await server.stop();
    await eventually('the loss', () => {
      bell.ring('changes');
      return events.some(({ kind }) => kind === 'ring_lost');
    });
    assert.equal(heard.changes > 0, true);
  });

  test('takes no harm from foreign messages on its channel', async (t) => {
    const { url } = await startRedis(t);
    const { bell, heard } = await startBell(t, url);
    const { redis } = await startPod(t, url);
    for (const message of ['', 'nonsense', 'constructor x', '__proto__ y', 'changes stranger']) {
      await redis.publish('bell', message);
    }
    await eventually('the one that makes sense', () => heard.changes > 0);
    assert.equal(heard.deliveries, 0);
    bell.ring('deliveries');
    assert.equal(heard.deliveries, 1);
  });
});
