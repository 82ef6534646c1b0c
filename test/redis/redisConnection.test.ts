import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { connectRedis, RedisPort } from '../../src/redis/redisConnection.ts';
import { skipWithoutRedis, startRedis } from '../support/redis.ts';
import { eventually, SILENT, startPod } from './pod.ts';

interface Line {
  readonly level: 'info' | 'warn';
  readonly fields: object;
  readonly message: string;
}

function recorder() {
  const lines: Line[] = [];
  const write = (level: Line['level']) => (fields: object, message: string) =>
    void lines.push({ level, fields, message });
  return { lines, log: { info: write('info'), warn: write('warn') } };
}

describe('a connection to Redis', { skip: skipWithoutRedis() }, () => {
  test('is logged when it comes and goes, not with each attempt', async (t) => {
    const server = await startRedis(t);
    const { lines, log } = recorder();
    const redis = connectRedis(server.url, log);
    t.after(() => redis.disconnect());
    let attempts = 0;
    redis.on('reconnecting', () => attempts++);
    await eventually('connected', () => lines.length === 1);
    await server.stop();
    await eventually('several attempts', () => attempts >= 3);
    await server.restart();
    await eventually('connected again', () => lines.length >= 3);
    const host = new URL(server.url).host;
    assert.deepEqual(
      lines.map(({ level, message }) => `${level}: ${message}`),
      ['info: redis connected', 'warn: redis lost', 'info: redis connected'],
    );
    for (const { fields } of lines) assert.equal((fields as { redis?: string }).redis, host);
  });

  test('that is ended on purpose is not logged as lost', async (t) => {
    const server = await startRedis(t);
    const { lines, log } = recorder();
    const redis = connectRedis(server.url, log);
    await eventually('connected', () => lines.length === 1);
    redis.disconnect();
    await eventually('ended', () => redis.status === 'end');
    assert.equal(lines.length, 1);
  });

  test('never writes its password to the log, refused or not', async (t) => {
    const server = await startRedis(t);
    const { redis: admin } = await startPod(t, server.url);
    await admin.config('SET', 'requirepass', 'right-secret');
    const { lines, log } = recorder();
    for (const password of ['wrong-secret', 'right-secret']) {
      const redis = connectRedis(server.url.replace('redis://', `redis://:${password}@`), log);
      t.after(() => redis.disconnect());
    }
    await eventually('both are logged', () => new Set(lines.map(({ level }) => level)).size === 2);
    assert.equal(JSON.stringify(lines).includes('secret'), false, JSON.stringify(lines));
    const rejected = lines.find(({ level }) => level === 'warn');
    assert.match(JSON.stringify(rejected), /WRONGPASS/);
  });

  test('refuses commands at once while there is no server', async (t) => {
    const server = await startRedis(t);
    await server.stop();
    const redis = connectRedis(server.url, SILENT);
    t.after(() => redis.disconnect());
    await assert.rejects(redis.get('anything'));
  });

  test('that one caller has asked patiently in vain makes no other wait, and takes other commands', async (t) => {
    const server = await startRedis(t);
    const redis = connectRedis(server.url, SILENT);
    t.after(() => redis.disconnect());
    const port = new RedisPort(redis, { onEvent: () => undefined, deadlineMs: 60_000, restMs: 600_000 });
    await eventually('connected', () => port.isUp);
    assert.equal((await port.sendPatiently(() => new Promise(() => undefined))).ok, false);
    assert.equal((await port.sendPatiently(() => assert.fail('it is asked'))).ok, false);
    assert.equal((await port.send((own) => own.ping())).ok, true);
  });

  test('does not accept what is no URL', () => {
    assert.throws(() => connectRedis('localhost 6379', SILENT));
  });
});
