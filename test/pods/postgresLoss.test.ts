import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { withDeadline } from '../../src/base/deadline.ts';
import { openSql } from '../../src/store/sql/sql.ts';
import { startLoad, type Tally } from '../support/ingest/load.ts';
import { INGEST_TOKEN, NO_LIMITS, type Pod, type Reply, request, startPod } from '../support/pod.ts';
import { type Admin, adminOf } from '../support/postgres/admin.ts';
import { type OwnPostgres, startOwnPostgres } from '../support/postgres/ownPostgres.ts';
import { skipWithoutRedis, startRedis } from '../support/redis.ts';
import { runs } from '../support/torture.ts';
import { waitFor } from '../support/waitFor.ts';

const OWNER = 'owner@example.com';
const IMEI = '350000000000001';
/** No call may take longer than this, whatever has happened to Postgres. */
const ANSWER_LIMIT_MS = 20_000;
/** What memory answers waits for Postgres for two seconds at most. */
const MEMORY_LIMIT_MS = 6_000;

interface Setup {
  readonly postgres: OwnPostgres;
  readonly admin: Admin;
  readonly pod: Pod;
  readonly key: string;
  /** A key that no pod has seen yet. */
  readonly fresh: string;
  readonly clock: { advance(ms: number): void };
}

/** A pod with a moved device, whose clock a test may put forward. */
async function startSetup(t: TestContext, redisUrl?: string): Promise<Setup> {
  const postgres = await startOwnPostgres(t);
  const admin = adminOf(postgres.url, redisUrl);
  await admin.account(OWNER);
  await admin.device(OWNER, IMEI);
  let aheadMs = 0;
  const pod = await startPod(postgres.url, {
    t,
    env: { ...NO_LIMITS, ...(redisUrl === undefined ? {} : { REDIS_URL: redisUrl }) },
    clock: () => Date.now() + aheadMs,
  });
  await pod.points([{ imei: IMEI, recorded_at: Date.now() - 1000, latitude: 10, longitude: 20 }]);
  const { key } = await admin.key(OWNER);
  const { key: fresh } = await admin.key(OWNER);
  assert.equal((await pod.get('/api/v3/devices', key)).status, 200);
  // Connections to spare.
  await Promise.all(Array.from({ length: 10 }, () => pod.get(`/api/v3/devices/${IMEI}/history`, key)));
  const advance = (ms: number) => {
    aheadMs += ms;
  };
  return { postgres, admin, pod, key, fresh, clock: { advance } };
}

const FROM_MEMORY = [
  '/api/v3/devices/nearest?lat=10&lng=20',
  '/api/v3/devices',
  `/api/v2/devices/${IMEI}`,
  `/api/v2/devices/${IMEI}/location`,
];
const FROM_POSTGRES = [
  `/api/v3/devices/${IMEI}/history`,
  `/api/v3/devices/${IMEI}/commands`,
  '/api/v2/events',
];

/** Calls that must be answered soon, each within the limit: status and code. */
async function answers(replies: readonly Promise<Reply>[], limitMs = ANSWER_LIMIT_MS): Promise<string[]> {
  const all = Promise.all(
    replies.map(async (reply) => {
      const { status, body } = await reply;
      return `${status} ${body?.error?.code ?? ''}`.trim();
    }),
  );
  return withDeadline(all, limitMs, 'an answer');
}

function point(pod: Pod, lng: number): Promise<Reply> {
  return request(`${pod.ingest}/positions`, {
    method: 'POST',
    headers: { 'X-Ingest-Token': INGEST_TOKEN },
    body: JSON.stringify([{ imei: IMEI, recorded_at: Date.now(), latitude: 10, longitude: lng }]),
  });
}

const repeat = (answer: string, count: number): string[] => Array(count).fill(answer);
const UNAVAILABLE = '503 SERVICE_UNAVAILABLE';

/** What holds while Postgres is lost, for a minute and beyond. */
async function proveLoss({ pod, key, fresh, clock }: Setup): Promise<void> {
  const get = (path: string) => pod.get(path, key);
  // The first to notice: it goes out on a connection that seems to be fine.
  const sent = answers([point(pod, 30)]);
  assert.deepEqual(await answers(FROM_MEMORY.map(get), MEMORY_LIMIT_MS), repeat('200', FROM_MEMORY.length));
  assert.deepEqual(
    await answers([...FROM_POSTGRES.map(get), pod.get('/api/v3/devices', fresh)]),
    repeat(UNAVAILABLE, FROM_POSTGRES.length + 1),
  );
  assert.deepEqual(await sent, [UNAVAILABLE]);
  clock.advance(10_000);
  assert.equal((await request(`${pod.ingest}/readyz`)).status, 503);
  assert.equal((await request(`${pod.api}/healthz`)).status, 200);
  assert.deepEqual(await answers(FROM_MEMORY.map(get), MEMORY_LIMIT_MS), repeat('200', FROM_MEMORY.length));
  clock.advance(60_000);
  assert.deepEqual(await answers(FROM_MEMORY.map(get)), repeat(UNAVAILABLE, FROM_MEMORY.length));
}

/** Everything works again, and changes are followed again. */
async function proveRecovery({ postgres, pod, key, fresh, admin }: Setup): Promise<void> {
  await waitFor(async () => (await request(`${pod.api}/readyz`)).status === 200);
  const paths = [...FROM_MEMORY, ...FROM_POSTGRES];
  const calls = [...paths.map((path) => pod.get(path, key)), pod.get('/api/v3/devices', fresh)];
  assert.deepEqual(await answers(calls), repeat('200', paths.length + 1));
  assert.deepEqual(await answers([point(pod, 40)]), ['200']);
  const located = await pod.get(`/api/v2/devices/${IMEI}/location`, key);
  assert.equal(located.body.data.longitude, 40);
  const { id, key: another } = await admin.key(OWNER);
  assert.deepEqual(await answers([pod.get('/api/v3/devices', another)]), ['200']);
  await admin.run('key:revoke', '--id', String(id));
  assert.deepEqual(await answers([pod.get('/api/v3/devices', another)]), ['403 API_KEY_REVOKED']);
  await waitForListener(postgres.url);
}

/** A lost notification would not show: the feed is polled as well. */
async function waitForListener(url: string): Promise<void> {
  const sql = openSql(url, { maxConnections: 1, name: 'test' });
  await waitFor(async () => {
    const rows = await sql`select 1 from pg_stat_activity where query ilike 'listen%'`;
    return rows.length > 0;
  });
  await sql.end();
}

const HARMS: readonly [name: string, harm: (postgres: OwnPostgres) => Promise<void>][] = [
  ['its sessions are killed, again and again', (postgres) => postgres.killSessions()],
  ['its connections are cut, again and again', (postgres) => cutConnections(postgres.url)],
  [
    'it is killed and restarted, again and again',
    async (postgres) => {
      await postgres.kill();
      await sleep(50);
      await postgres.start();
    },
  ],
];

async function cutConnections(url: string): Promise<void> {
  const sql = openSql(url, { maxConnections: 1, name: 'test' });
  await sql`select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid()`;
  await sql.end();
}

describe('Postgres is harmed', { concurrency: 4, timeout: 120_000 }, () => {
  test('killed and restarted', async (t) => {
    const setup = await startSetup(t);
    await setup.postgres.kill();
    await proveLoss(setup);
    await setup.postgres.start();
    await proveRecovery(setup);
  });

  test('stopped and restarted', async (t) => {
    const setup = await startSetup(t);
    await setup.postgres.stop();
    await proveLoss(setup);
    await setup.postgres.start();
    await proveRecovery(setup);
  });

  test('silent and back', async (t) => {
    const setup = await startSetup(t);
    await setup.postgres.pause();
    await proveLoss(setup);
    await setup.postgres.resume();
    await proveRecovery(setup);
  });

  for (const [name, harm] of HARMS) {
    test(`under load nothing breaks while ${name}`, async (t) => {
      const setup = await startSetup(t);
      const { pod, key, postgres } = setup;
      const lng = counter(30, 0.001);
      const load = startLoad(t, {
        nearest: () => pod.get('/api/v3/devices/nearest?lat=10&lng=20', key),
        list: () => pod.get('/api/v2/devices', key),
        history: () => pod.get(`/api/v3/devices/${IMEI}/history`, key),
        events: () => pod.get('/api/v3/events', key),
        'ingest 1': () => point(pod, lng()),
        'ingest 2': () => point(pod, lng()),
        'ingest 3': () => point(pod, lng()),
        'ingest 4': () => point(pod, lng()),
      });
      for (let round = 0; round < runs(2); round++) {
        await harm(postgres);
        await untilCalled(load.tally, 'ingest 1 200');
      }
      await load.stop();
      assert.deepEqual(unexpected(load.tally), {});
      await proveRecovery(setup);
    });
  }
});

/** Waits for one more answer of that kind: the service works again. */
async function untilCalled(tally: Tally, answer: string): Promise<void> {
  const before = tally[answer] ?? 0;
  await waitFor(() => (tally[answer] ?? 0) > before + 3);
}

/** Memory always answers; Postgres may be said to be unavailable, and nothing else. */
function unexpected(tally: Tally): Tally {
  return Object.fromEntries(
    Object.entries(tally).filter(([answer]) => {
      const [call = '', status] = answer.split(/ (?=\d{3}$)/);
      return status !== '200' && (['nearest', 'list'].includes(call) || status !== '503');
    }),
  );
}

describe('Postgres is lost beside Redis', { skip: skipWithoutRedis() }, () => {
  test('memory does not answer when Redis knows of something newer', async (t) => {
    const redis = await startRedis(t);
    const { postgres, pod, key } = await startSetup(t, redis.url);
    await postgres.kill();
    assert.deepEqual(
      await answers(FROM_MEMORY.map((path) => pod.get(path, key))),
      repeat('200', FROM_MEMORY.length),
    );
    const client = new Redis(redis.url);
    for (const name of await client.keys('fleet:*:w:*')) await client.incr(name);
    client.disconnect();
    assert.deepEqual(
      await answers(FROM_MEMORY.map((path) => pod.get(path, key))),
      repeat(UNAVAILABLE, FROM_MEMORY.length),
    );
  });

  test('memory answers when Redis is lost too', async (t) => {
    const redis = await startRedis(t);
    const { postgres, pod, key } = await startSetup(t, redis.url);
    await Promise.all([postgres.kill(), redis.stop()]);
    for (let round = 0; round < runs(2); round++) {
      const calls = FROM_MEMORY.map((path) => pod.get(path, key));
      assert.deepEqual(await answers(calls), repeat('200', FROM_MEMORY.length));
    }
  });
});

function counter(from: number, step: number): () => number {
  let value = from;
  return () => {
    value += step;
    return value;
  };
}
