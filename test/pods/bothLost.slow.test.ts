import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { areaApi } from '../support/http/areas.ts';
import { type Line, openLine } from '../support/line.ts';
import { NO_LIMITS, startPod } from '../support/pod.ts';
import { adminOf } from '../support/postgres/admin.ts';
import { createDatabase } from '../support/postgres/postgres.ts';
import { skipWithoutRedis, startRedis } from '../support/redis.ts';
import { waitFor } from '../support/waitFor.ts';

const OWNER = 'owner@example.com';
const AREA = { name: 'before', type: 'circle', center: { lat: 41.9, lng: 12.5 }, radius_m: 300 };

/** A pod that writes, and one that can be cut off. */
interface Setup {
  readonly writer: ReturnType<typeof areaApi>;
  readonly toPostgres: Line;
  readonly toRedis: Line;
  readonly areaId: number;
  /** The name of the area on the other pod, or why there is no answer. */
  nameOnOther(): Promise<string>;
}

async function start(t: TestContext): Promise<Setup> {
  const { url } = await createDatabase(t);
  const redis = await startRedis(t);
  const admin = adminOf(url, redis.url);
  await admin.account(OWNER);
  const { key } = await admin.key(OWNER);
  const lineTo = async (address: string): Promise<{ line: Line; url: string }> => {
    const target = new URL(address);
    const line = await openLine(t, Number(target.port));
    target.port = String(line.port);
    return { line, url: target.href };
  };
  const [toPostgres, toRedis] = [await lineTo(url), await lineTo(redis.url)];
  const pod = await startPod(url, { t, env: { ...NO_LIMITS, REDIS_URL: redis.url } });
  const other = await startPod(toPostgres.url, { t, env: { ...NO_LIMITS, REDIS_URL: toRedis.url } });
  const writer = areaApi(pod, key);
  const areaId = await writer.make(AREA);
  const nameOnOther = async (): Promise<string> => {
    const { status, body } = await other.get(`/api/v3/areas/${areaId}`, key);
    return status === 200 ? body.data.name : `${status} ${body.error.code}`;
  };
  assert.equal(await nameOnOther(), 'before');
  return { writer, toPostgres: toPostgres.line, toRedis: toRedis.line, areaId, nameOnOther };
}

describe('a pod that has lost Postgres', { skip: skipWithoutRedis() }, () => {
  test('and then its connection to Redis does not answer from memory that Redis knows to be old', async (t) => {
    const { writer, toPostgres, toRedis, areaId, nameOnOther } = await start(t);
    toPostgres.part();
    const sessions = toRedis.sessions;
    toRedis.cut();
    assert.equal((await writer.patch(areaId, { name: 'after' })).status, 200);
    await nameOnOther();
    // Redis is asked again over a new connection, whose versions memory cannot be compared with.
    await waitFor(() => toRedis.sessions > sessions);
    await waitFor(async () => (await nameOnOther()) !== 'before');
    for (let n = 0; n < 5; n++) assert.equal(await nameOnOther(), '503 SERVICE_UNAVAILABLE');
    toPostgres.heal();
    await waitFor(async () => (await nameOnOther()) === 'after');
  });

  test('and gets answers of Redis late waits for them before it answers from memory', async (t) => {
    const { writer, toPostgres, toRedis, areaId, nameOnOther } = await start(t);
    toPostgres.part();
    // There and back it is longer than a call waits for Redis while Postgres can be asked.
    toRedis.delayMs = 60;
    assert.equal((await writer.patch(areaId, { name: 'after' })).status, 200);
    for (let n = 0; n < 5; n++) assert.equal(await nameOnOther(), '503 SERVICE_UNAVAILABLE');
    toRedis.delayMs = 0;
    toPostgres.heal();
    await waitFor(async () => (await nameOnOther()) === 'after');
  });

  test('and Redis as well answers from memory, and is told of writes as soon as it has one of them', async (t) => {
    const { writer, toPostgres, toRedis, areaId, nameOnOther } = await start(t);
    toPostgres.part();
    toRedis.part();
    assert.equal((await writer.patch(areaId, { name: 'after' })).status, 200);
    assert.equal(await nameOnOther(), 'before');
    toRedis.heal();
    await waitFor(async () => (await nameOnOther()) === '503 SERVICE_UNAVAILABLE');
  });
});
