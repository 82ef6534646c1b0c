import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { HOUR_MS, MINUTE_MS } from '../../src/lib/time.ts';
import { sharedRedis, skipWithoutRedis, startRedis } from '../support/redis.ts';
import { eventually, HASTY_MS, startPod, type TestPod } from './pod.ts';

const skip = skipWithoutRedis();

describe('a version in Redis', { skip }, () => {
  const redis = sharedRedis();
  const start = (t: TestContext): Promise<TestPod> => startPod(t, redis.url);
  const look = async ({ redis, names }: TestPod): Promise<[string | null, number]> => {
    const name = `${names.world}${1}`;
    const leftMs = await redis.pttl(name);
    // The time to live, when it was set just now.
    const setTo = [MINUTE_MS, HOUR_MS].find((ms) => leftMs > ms - 30_000 && leftMs <= ms);
    return [await redis.get(name), setTo ?? leftMs];
  };

  test('is published for a minute and confirmed for an hour', async (t) => {
    const pod = await start(t);
    assert.equal(await pod.versions.publish(1, 5), true);
    assert.deepEqual(await look(pod), ['5', MINUTE_MS]);
    assert.equal(await pod.versions.confirm(1, 5), true);
    assert.deepEqual(await look(pod), ['5', HOUR_MS]);
  });

  test('never falls', async (t) => {
    const pod = await start(t);
    await pod.versions.confirm(1, 9);
    await pod.versions.publish(1, 8);
    await pod.versions.confirm(1, 8);
    assert.deepEqual(await look(pod), ['9', HOUR_MS]);
  });

  test('is compared as a number, up to the largest that is exact', async (t) => {
    const pod = await start(t);
    await pod.versions.confirm(1, 9);
    await pod.versions.confirm(1, 10);
    assert.equal((await look(pod))[0], '10');
    await pod.versions.confirm(1, Number.MAX_SAFE_INTEGER - 1);
    await pod.versions.confirm(1, Number.MAX_SAFE_INTEGER);
    assert.equal((await look(pod))[0], '9007199254740991');
  });

  test('that a failed commit left ahead ends with its minute, not with the hour of the one before', async (t) => {
    const pod = await start(t);
    await pod.versions.confirm(1, 5);
    await pod.versions.publish(1, 6);
    assert.deepEqual(await look(pod), ['6', MINUTE_MS]);
  });

  test('that is published again after a failed commit lives for a minute again', async (t) => {
    const pod = await start(t);
    await pod.versions.publish(1, 6);
    await pod.redis.pexpire(`${pod.names.world}${1}`, 20_000);
    await pod.versions.publish(1, 6);
    assert.deepEqual(await look(pod), ['6', MINUTE_MS]);
    await pod.versions.confirm(1, 6);
    await pod.versions.publish(1, 6);
    assert.deepEqual(await look(pod), ['6', HOUR_MS]);
  });

  test('is given back only against the ticket that stands in its place', async (t) => {
    const pod = await start(t);
    const name = `${pod.names.world}${1}`;
    await pod.versions.restore(1, 5, '?1.2');
    assert.equal(await pod.redis.get(name), null);
    await pod.redis.set(name, '?1.3');
    await pod.versions.restore(1, 5, '?1.2');
    assert.equal(await pod.redis.get(name), '?1.3');
    assert.equal(await pod.versions.restore(1, 5, '?1.3'), true);
    assert.deepEqual(await look(pod), ['5', HOUR_MS]);
    await pod.versions.restore(1, 4, '?1.3');
    assert.equal(await pod.redis.get(name), '5');
  });

  test('of a writer replaces a ticket', async (t) => {
    const pod = await start(t);
    await pod.redis.set(`${pod.names.world}${1}`, '?1.3');
    await pod.versions.publish(1, 5);
    assert.deepEqual(await look(pod), ['5', MINUTE_MS]);
  });

  test('cannot be read while Redis is silent or gone, and nobody has to wait for it', async (t) => {
    const server = await startRedis(t);
    const { versions, port } = await startPod(t, server.url, { deadlineMs: HASTY_MS });
    server.pause();
    assert.equal(await versions.publish(1, 5), false);
    assert.equal(await versions.confirm(1, 5), false);
    await server.stop();
    assert.equal(await versions.restore(1, 5, '?1.3'), false);
    await server.restart();
    await eventually('the connection is back', () => port.isUsable);
    assert.equal(await versions.publish(1, 5), true);
  });
});
