import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { pino } from 'pino';
import { withDeadline } from '../../src/lib/time.ts';
import { openSql } from '../../src/postgres/sql.ts';
import { areaApi, CIRCLE } from '../support/http/areas.ts';
import { startLoad, type Tally } from '../support/ingest/load.ts';
import { patienceMs } from '../support/patience.ts';
import { INGEST_TOKEN, NO_LIMITS, type Pod, type Reply, request, startPod } from '../support/pod.ts';
import { type Admin, adminOf } from '../support/postgres/admin.ts';
import { type OwnPostgres, startOwnPostgres } from '../support/postgres/ownPostgres.ts';
import { skipWithoutRedis, startRedis } from '../support/redis.ts';
import { IS_TORTURE, runs } from '../support/torture.ts';
import { waitFor } from '../support/waitFor.ts';

const OWNER = 'owner@example.com';
const IMEI = '350000000000001';
/** No call may take longer than this, whatever has happened to Postgres. */
const ANSWER_LIMIT_MS = 20_000;
/** Longer than a pod takes Postgres for lost after, with calls that wait for it. */
const STANDSTILL_MS = 4_000;
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
async function answers(
  replies: readonly Promise<Reply>[],
  limitMs = patienceMs(ANSWER_LIMIT_MS),
): Promise<string[]> {
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

/** What a balancer is told: of polls, of writes, and on the port of points. */
async function readiness({ api, ingest }: Pod): Promise<{ polls: string; writes: number; points: number }> {
  const polls = await request(`${api}/readyz`);
  const [writes, points] = await Promise.all([
    request(`${api}/readyz?writes=true`),
    request(`${ingest}/readyz`),
  ]);
  return { polls: `${polls.status} ${polls.body.status}`, writes: writes.status, points: points.status };
}

const repeat = (answer: string, count: number): string[] => Array(count).fill(answer);
const UNAVAILABLE = '503 SERVICE_UNAVAILABLE';

/** What holds while Postgres is lost, for a minute and beyond. */
async function proveLoss({ pod, key, fresh, clock }: Setup): Promise<void> {
  const get = (path: string) => pod.get(path, key);
  // The first to notice: it goes out on a connection that seems to be fine.
  const sent = answers([point(pod, 30)]);
  assert.deepEqual(
    await answers(FROM_MEMORY.map(get), patienceMs(MEMORY_LIMIT_MS)),
    repeat('200', FROM_MEMORY.length),
  );
  assert.deepEqual(
    await answers([...FROM_POSTGRES.map(get), pod.get('/api/v3/devices', fresh)]),
    repeat(UNAVAILABLE, FROM_POSTGRES.length + 1),
  );
  assert.deepEqual(await sent, [UNAVAILABLE]);
  clock.advance(10_000);
  assert.deepEqual(await readiness(pod), { polls: '200 degraded', writes: 503, points: 503 });
  assert.equal((await request(`${pod.api}/healthz`)).status, 200);
  assert.deepEqual(
    await answers(FROM_MEMORY.map(get), patienceMs(MEMORY_LIMIT_MS)),
    repeat('200', FROM_MEMORY.length),
  );
  clock.advance(60_000);
  assert.deepEqual(await readiness(pod), { polls: '503 not ready', writes: 503, points: 503 });
  assert.deepEqual(await answers(FROM_MEMORY.map(get)), repeat(UNAVAILABLE, FROM_MEMORY.length));
}

/** Everything works again, and changes are followed again. */
async function proveRecovery({ postgres, pod, key, fresh, admin }: Setup): Promise<void> {
  await waitFor(async () => (await request(`${pod.ingest}/readyz`)).status === 200);
  await waitFor(async () => (await readiness(pod)).polls === '200 ready');
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

const onlyTorture = IS_TORTURE ? false : 'npm run torture does it';

type Harm = readonly [name: string, harm: (postgres: OwnPostgres) => Promise<void>];

const CUT: Harm = ['its connections are cut, again and again', (postgres) => cutConnections(postgres.url)];

const HARMS: readonly Harm[] = [
  ['its sessions are killed, again and again', (postgres) => postgres.killSessions()],
  ...(IS_TORTURE ? [CUT] : []),
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

describe('Postgres is harmed', { concurrency: 4 }, () => {
  test('killed and restarted', async (t) => {
    const setup = await startSetup(t);
    await setup.postgres.kill();
    await proveLoss(setup);
    await setup.postgres.start();
    await proveRecovery(setup);
  });

  // A short form has one way to lose it and one way to lose its connections; the torture has all.
  test('stopped and restarted', { skip: onlyTorture }, async (t) => {
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

describe('Postgres answers, but takes no writes', { concurrency: 2 }, () => {
  const set = (url: string, setting: string) =>
    adminOf(url).sql(async (sql) => {
      await sql.unsafe(`alter system ${setting}`);
      await sql`select pg_reload_conf()`;
    });

  test('while it is read-only polls go on for as long as that lasts, and others are told why', async (t) => {
    const { postgres, pod, key, clock } = await startSetup(t);
    await set(postgres.url, 'set default_transaction_read_only = on');
    await waitFor(async () => (await request(`${pod.ingest}/readyz`)).status === 503);
    for (let minutes = 0; minutes < 20; minutes += 5) {
      // As a provider does that found its disk almost full.
      if (minutes === 10) {
        await postgres.stop();
        await postgres.start();
        await waitFor(async () => (await pod.get('/api/v3/events', key)).status === 200);
      }
      assert.deepEqual(
        await answers(FROM_MEMORY.map((path) => pod.get(path, key))),
        repeat('200', FROM_MEMORY.length),
      );
      assert.equal((await request(`${pod.api}/readyz`)).status, 200);
      clock.advance(300_000);
      // It must be read again until somebody is believed.
      await waitFor(async () => (await request(`${pod.api}/readyz`)).status === 200);
    }
    await waitFor(async () => {
      const { body } = await request(`${pod.api}/readyz`);
      return body.status === 'degraded' && body.reasons.includes('database_read_only');
    });
    const refused = [
      await point(pod, 30),
      await request(`${pod.api}/api/v3/areas`, {
        method: 'POST',
        headers: { 'X-API-Key': key, 'Content-Type': 'application/json' },
        body: JSON.stringify(CIRCLE),
      }),
    ];
    for (const { status, body } of refused)
      assert.deepEqual([status, /read-only/.test(body.error.message)], [503, true], body.error.message);
    const writes = await request(`${pod.api}/readyz?writes=true`);
    assert.deepEqual([writes.status, writes.body.reasons.includes('database_read_only')], [503, true]);
    await set(postgres.url, 'reset default_transaction_read_only');
    await waitFor(async () => (await readiness(pod)).polls === '200 ready');
    await waitFor(async () => (await point(pod, 31)).status === 200);
  });

  test('a synchronous replica that hangs holds up writes and no poll, of that account or another', {
    skip: skipWithoutRedis(),
  }, async (t) => {
    const redis = await startRedis(t);
    const { postgres, admin, pod, key } = await startSetup(t, redis.url);
    await admin.account('other@example.com');
    const { key: victim } = await admin.key('other@example.com');
    const area = areaApi(pod, key);
    const id = await area.make({ ...CIRCLE, name: 'before' });
    const nameOf = async () => (await pod.get(`/api/v3/areas/${id}`, key)).body.data?.name;
    assert.equal((await pod.get('/api/v3/devices', victim)).status, 200);
    // No replica of this name is there, so commits wait for it.
    await set(postgres.url, "set synchronous_standby_names = 'hangs'");
    const put = area.patch(id, { name: 'after' });
    await adminOf(postgres.url).sql(async (sql) => {
      await waitFor(async () => {
        const waiting = await sql`
          select 1 from pg_stat_activity where wait_event = 'SyncRep' and application_name like '%writes%'`;
        return waiting.length > 0;
      });
    });
    const untilMs = performance.now() + STANDSTILL_MS;
    do {
      assert.equal((await request(`${pod.api}/readyz`)).status, 200);
      assert.deepEqual(
        await answers([...FROM_MEMORY.map((path) => pod.get(path, key)), pod.get('/api/v3/devices', victim)]),
        repeat('200', FROM_MEMORY.length + 1),
      );
      assert.equal(await nameOf(), 'before', 'what is not acknowledged is not seen');
    } while (performance.now() < untilMs);
    assert.deepEqual(await readiness(pod), { polls: '200 degraded', writes: 503, points: 503 });
    const { body } = await request(`${pod.api}/readyz`);
    assert.deepEqual(body.reasons, ['database_no_answer']);
    await set(postgres.url, 'reset synchronous_standby_names');
    assert.equal((await put).status, 200);
    assert.equal(await nameOf(), 'after');
    await waitFor(async () => (await readiness(pod)).writes === 200);
  });
});

test('a pod that starts while Postgres is away waits for it, and says so once', async (t) => {
  const postgres = await startOwnPostgres(t);
  await postgres.kill();
  const said: string[] = [];
  const log = pino({ level: 'warn' }, { write: (line: string) => void said.push(line) });
  const starting = startPod(postgres.url, { t, log });
  await waitFor(() => said.length > 0);
  await postgres.start();
  const pod = await starting;
  assert.equal((await request(`${pod.api}/readyz?writes=true`)).status, 200);
  const reasons = said.map((line) => (JSON.parse(line) as { reason: string }).reason);
  assert.deepEqual(reasons, [...new Set(reasons)], 'each reason once');
  assert.equal(reasons[0], 'unreachable');
});

function counter(from: number, step: number): () => number {
  let value = from;
  return () => {
    value += step;
    return value;
  };
}
