import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { pino } from 'pino';
import { withDeadline } from '../../src/lib/time.ts';
import { openSql } from '../../src/postgres/sql.ts';
import { unavailability } from '../../src/postgres/sqlErrors.ts';
import { callApi, logIn, outcomeOf, PASSWORD, setPassword, tryLogIn } from '../support/http/application.ts';
import { areaApi, CIRCLE } from '../support/http/areas.ts';
import { startLoad, type Tally } from '../support/ingest/load.ts';
import { patienceMs } from '../support/patience.ts';
import { INGEST_TOKEN, NO_LIMITS, type Pod, type Reply, request, startPod } from '../support/pod.ts';
import { type Admin, adminOf } from '../support/postgres/admin.ts';
import { type OwnPostgres, startOwnPostgres } from '../support/postgres/ownPostgres.ts';
import { skipWithoutRedis, startRedis } from '../support/redis.ts';
import { started } from '../support/started.ts';
import { IS_TORTURE, runs } from '../support/torture.ts';
import { waitFor } from '../support/waitFor.ts';

const OWNER = 'owner@example.com';
const IMEI = '350000000000001';
/** No call may take longer than this, whatever has happened to Postgres. */
const ANSWER_LIMIT_MS = patienceMs(20_000);
/** Longer than a pod takes Postgres for lost after, with calls that wait for it. */
const STANDSTILL_MS = 4_000;
/** The processor belongs to the pod and to Postgres. */
const BETWEEN_POLLS_MS = 100;
/** What memory answers waits for Postgres for two seconds at most. */
const MEMORY_LIMIT_MS = patienceMs(6_000);

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

/** A pod on the Postgres of all tests, with a moved device; its clock can be put forward. */
interface Site {
  readonly pod: Pod;
  readonly key: string;
  /** Of a session. */
  readonly token: string;
  advance(ms: number): void;
}

const repeat = (answer: string, count: number): string[] => Array(count).fill(answer);
const UNAVAILABLE = '503 SERVICE_UNAVAILABLE';

/** Calls that must be answered soon, each within the limit: status and code. */
function answers(replies: readonly Promise<Reply>[], limitMs = ANSWER_LIMIT_MS): Promise<string[]> {
  return withDeadline(
    Promise.all(replies.map(async (reply) => outcomeOf(await reply))),
    limitMs,
    'an answer',
  );
}

async function answerFromMemory({ pod, key }: Site, expected: string, limitMs?: number): Promise<void> {
  const found = await answers(
    FROM_MEMORY.map((path) => pod.get(path, key)),
    limitMs,
  );
  assert.deepEqual(found, repeat(expected, FROM_MEMORY.length));
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

const untilReady = (pod: Pod) =>
  waitFor(async () => {
    const { polls, points } = await readiness(pod);
    return polls === '200 ready' && points === 200;
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

async function cutConnections(url: string): Promise<void> {
  const sql = openSql(url, { maxConnections: 1, name: 'test' });
  await sql`select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid()`;
  await sql.end();
}

/**
 * Waits until commits wait for a replica. Only the checkpointer of Postgres tells the other processes to, some time after
 * each of them has read the settings again, so commits are tried until one waits; that one is then cancelled.
 */
async function untilCommitsWait(url: string): Promise<void> {
  const name = 'tries to commit';
  const sql = openSql(url, { maxConnections: 2, name });
  let isWaiting = false;
  while (!isWaiting) {
    let hasEnded = false;
    const tried = sql
      .begin((tx) => tx`select pg_logical_emit_message(true, 'test', '')`)
      .catch((error: unknown) => assert.equal(unavailability(error), 'not_replicated'))
      .finally(() => {
        hasEnded = true;
      });
    await waitFor(async () => {
      const cancelled = await sql`
        select pg_cancel_backend(pid) from pg_stat_activity
        where wait_event = 'SyncRep' and application_name = ${name}`;
      isWaiting = cancelled.length > 0;
      return isWaiting || hasEnded;
    });
    await tried;
  }
  await sql.end();
}

async function killAndStart(postgres: OwnPostgres): Promise<void> {
  await postgres.kill();
  await sleep(50);
  await postgres.start();
}

/** Of a world in Redis: newer than any here, though each loss of Postgres moves sequences ahead by millions. */
const NEWER_VERSION = 2 ** 52;

/** One Postgres is harmed again and again; each test leaves it as it should be. */
describe('Postgres is harmed:', () => {
  const postgres = started(
    () => startOwnPostgres(),
    ({ end }) => end(),
  );
  let admin: Admin;
  before(async () => {
    admin = adminOf(postgres.url);
    await admin.account(OWNER);
    await setPassword(admin, OWNER);
    await admin.device(OWNER, IMEI);
  });

  /** For the tests of a suite. */
  const startSite = (env: () => Record<string, string>): Site =>
    started(
      async () => {
        let aheadMs = 0;
        const clock = () => Date.now() + aheadMs;
        const pod = await startPod(postgres.url, { env: { ...NO_LIMITS, ...env() }, clock });
        await pod.points([{ imei: IMEI, recorded_at: Date.now() - 1000, latitude: 10, longitude: 20 }]);
        const { key } = await admin.key(OWNER);
        const token = await logIn(pod, OWNER);
        const advance = (ms: number) => {
          aheadMs += ms;
        };
        return { pod, key, token, advance };
      },
      ({ pod }) => pod.stop(),
    );

  const set = (setting: string) =>
    admin.sql(async (sql) => {
      await sql.unsafe(`alter system ${setting}`);
      await sql`select pg_reload_conf()`;
    });

  describe('without Redis', () => {
    const site = startSite(() => ({}));

    /** What holds from the loss of Postgres on, for a minute and beyond, and when it is back. */
    async function proveLoss(lose: () => Promise<void>, restore: () => Promise<void>): Promise<void> {
      const { pod, key, token, advance } = site;
      const get = (path: string) => pod.get(path, key);
      const { key: unseen } = await admin.key(OWNER);
      await answerFromMemory(site, '200');
      // Connections to spare.
      await Promise.all(Array.from({ length: 10 }, () => get(`/api/v3/devices/${IMEI}/history`)));
      await lose();
      // The first to notice: it goes out on a connection that seems to be fine.
      const sent = answers([point(pod, 30)]);
      await answerFromMemory(site, '200', MEMORY_LIMIT_MS);
      const refused = [
        ...FROM_POSTGRES.map(get),
        pod.get('/api/v3/devices', unseen),
        callApi(pod, 'GET', '/v1/keys', { token }),
        callApi(pod, 'GET', '/v1/keys', { key }),
        callApi(pod, 'POST', '/v1/keys', { token, body: {} }),
        callApi(pod, 'DELETE', '/v1/session', { token }),
        callApi(pod, 'GET', '/webhooks', { token }),
        tryLogIn(pod, OWNER, PASSWORD),
        tryLogIn(pod, OWNER, 'wrong'),
      ];
      assert.deepEqual(await answers(refused), repeat(UNAVAILABLE, refused.length));
      assert.equal((await refused.at(-1))?.headers.get('sunset'), '2027-03-08');
      const unasked = callApi(pod, 'GET', '/v1/keys', { token: 'x' });
      assert.deepEqual(await answers([unasked]), ['403 API_KEY_REQUIRED'], 'what cannot be a token');
      assert.deepEqual(await sent, [UNAVAILABLE]);
      advance(10_000);
      // Whether writes are taken is tried once a second.
      await waitFor(async () => (await readiness(pod)).writes === 503);
      assert.deepEqual(await readiness(pod), { polls: '200 degraded', writes: 503, points: 503 });
      assert.equal((await request(`${pod.api}/healthz`)).status, 200);
      await answerFromMemory(site, '200', MEMORY_LIMIT_MS);
      advance(60_000);
      assert.deepEqual(await readiness(pod), { polls: '503 not ready', writes: 503, points: 503 });
      await answerFromMemory(site, UNAVAILABLE);
      await restore();
      await proveRecovery(unseen);
    }

    /** Everything works again, and changes are followed again. */
    async function proveRecovery(unseen = site.key): Promise<void> {
      const { pod, key } = site;
      await untilReady(pod);
      const paths = [...FROM_MEMORY, ...FROM_POSTGRES];
      const calls = [...paths.map((path) => pod.get(path, key)), pod.get('/api/v3/devices', unseen)];
      assert.deepEqual(await answers(calls), repeat('200', paths.length + 1));
      assert.deepEqual(await answers([point(pod, 40)]), ['200']);
      const located = await pod.get(`/api/v2/devices/${IMEI}/location`, key);
      assert.equal(located.body.data.longitude, 40);
      const { id, key: another } = await admin.key(OWNER);
      assert.deepEqual(await answers([pod.get('/api/v3/devices', another)]), ['200']);
      await admin.run('key:revoke', '--id', String(id));
      assert.deepEqual(await answers([pod.get('/api/v3/devices', another)]), ['403 API_KEY_REVOKED']);
      // A lost notification would not show: the feed is polled as well.
      await admin.sql((sql) =>
        waitFor(async () => {
          const rows = await sql`select 1 from pg_stat_activity where query ilike 'listen%'`;
          return rows.length > 0;
        }),
      );
    }

    test('killed and restarted; a pod that starts meanwhile waits for it, and says so once', async (t) => {
      const said: string[] = [];
      const log = pino({ level: 'warn' }, { write: (line: string) => void said.push(line) });
      let starting: Promise<Pod> | null = null;
      await proveLoss(postgres.kill, async () => {
        starting = startPod(postgres.url, { t, log });
        await waitFor(() => said.length > 0);
        await postgres.start();
      });
      const late = await (starting as unknown as Promise<Pod>);
      assert.equal((await request(`${late.api}/readyz?writes=true`)).status, 200);
      const reasons = said.map((line) => (JSON.parse(line) as { reason: string }).reason);
      assert.deepEqual(reasons, [...new Set(reasons)], 'each reason once');
      assert.equal(reasons[0], 'unreachable');
    });

    // A short form has two ways to lose it; the torture has all.
    test('stopped and restarted', { skip: IS_TORTURE ? false : 'npm run torture does it' }, () =>
      proveLoss(postgres.stop, postgres.start),
    );

    test('silent and back', () => proveLoss(postgres.pause, postgres.resume));

    test('under load, its sessions are killed, itself too, again and again, and nothing breaks', async (t) => {
      const { pod, key } = site;
      let lng = 30;
      const send = () => {
        lng += 0.001;
        return point(pod, lng);
      };
      const load = startLoad(t, {
        nearest: () => pod.get('/api/v3/devices/nearest?lat=10&lng=20', key),
        list: () => pod.get('/api/v2/devices', key),
        history: () => pod.get(`/api/v3/devices/${IMEI}/history?limit=1`, key),
        events: () => pod.get('/api/v3/events', key),
        ...Object.fromEntries([1, 2, 3, 4].map((n) => [`ingest ${n}`, send])),
      });
      const harms = [
        () => postgres.killSessions(),
        () => killAndStart(postgres),
        ...(IS_TORTURE ? [() => cutConnections(postgres.url)] : []),
      ];
      for (let round = 0; round < runs(4); round++) {
        await harms[round % harms.length]?.();
        await untilCalled(load.tally, 'ingest 1 200');
      }
      await load.stop();
      assert.deepEqual(unexpected(load.tally), {});
      await proveRecovery();
    });

    test('while it is read-only polls go on for as long as that lasts, and others are told why', async () => {
      const { pod, key, advance } = site;
      await set('set default_transaction_read_only = on');
      await waitFor(async () => (await request(`${pod.ingest}/readyz`)).status === 503);
      for (let minutes = 0; minutes < 20; minutes += 5) {
        // As a provider does that found its disk almost full.
        if (minutes === 10) {
          await postgres.stop();
          await postgres.start();
          await waitFor(async () => (await pod.get('/api/v3/events', key)).status === 200);
        }
        await answerFromMemory(site, '200');
        assert.equal((await request(`${pod.api}/readyz`)).status, 200);
        advance(300_000);
        // It must be read again until somebody is believed.
        await waitFor(async () => (await request(`${pod.api}/readyz`)).status === 200);
      }
      await waitFor(async () => {
        const { body } = await request(`${pod.api}/readyz`);
        return body.status === 'degraded' && body.reasons.includes('database_read_only');
      });
      const refused = [await point(pod, 30), await areaApi(pod, key).post(CIRCLE)];
      for (const { status, body } of refused)
        assert.deepEqual([status, /read-only/.test(body.error.message)], [503, true], body.error.message);
      const writes = await request(`${pod.api}/readyz?writes=true`);
      assert.deepEqual([writes.status, writes.body.reasons.includes('database_read_only')], [503, true]);
      await set('reset default_transaction_read_only');
      await untilReady(pod);
      await waitFor(async () => (await point(pod, 31)).status === 200);
    });
  });

  describe('beside Redis', { skip: skipWithoutRedis() }, () => {
    const redis = started(
      () => startRedis(),
      ({ stop }) => stop(),
    );
    const site = startSite(() => ({ REDIS_URL: redis.url }));

    test('memory does not answer when Redis knows of something newer, but when Redis is lost too', async () => {
      await answerFromMemory(site, '200');
      await postgres.kill();
      await answerFromMemory(site, '200');
      const client = new Redis(redis.url);
      // Where Redis answers too late, as on a busy machine, it counts as lost for that call: then memory may answer, and
      // Redis has not been told of the versions either.
      await waitFor(async () => {
        for (const name of await client.keys('fleet:*:w:*')) await client.set(name, NEWER_VERSION);
        const { pod, key } = site;
        const found = await answers(FROM_MEMORY.map((path) => pod.get(path, key)));
        return found.every((answer) => answer === UNAVAILABLE);
      });
      client.disconnect();
      await redis.stop();
      for (let round = 0; round < runs(2); round++) await answerFromMemory(site, '200');
      await Promise.all([redis.restart(), postgres.start()]);
      await untilReady(site.pod);
    });

    test('a synchronous replica that hangs holds up writes and no poll, of that account or another', async () => {
      const { pod, key } = site;
      await admin.account('other@example.com');
      const { key: victim } = await admin.key('other@example.com');
      const area = areaApi(pod, key);
      const id = await area.make({ ...CIRCLE, name: 'before' });
      const nameOf = async () => (await pod.get(`/api/v3/areas/${id}`, key)).body.data?.name;
      assert.equal((await pod.get('/api/v3/devices', victim)).status, 200);
      // No replica of this name is there, so commits wait for it.
      await set("set synchronous_standby_names = 'hangs'");
      await untilCommitsWait(postgres.url);
      const put = area.patch(id, { name: 'after' });
      await admin.sql(async (sql) => {
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
          await answers([
            ...FROM_MEMORY.map((path) => pod.get(path, key)),
            pod.get('/api/v3/devices', victim),
          ]),
          repeat('200', FROM_MEMORY.length + 1),
        );
        assert.equal(await nameOf(), 'before', 'what is not acknowledged is not seen');
        await sleep(BETWEEN_POLLS_MS);
      } while (performance.now() < untilMs);
      assert.deepEqual(await readiness(pod), { polls: '200 degraded', writes: 503, points: 503 });
      const { body } = await request(`${pod.api}/readyz`);
      assert.deepEqual(body.reasons, ['database_no_answer']);
      await set('reset synchronous_standby_names');
      assert.equal((await put).status, 200);
      assert.equal(await nameOf(), 'after');
      await waitFor(async () => (await readiness(pod)).writes === 200);
    });
  });
});
