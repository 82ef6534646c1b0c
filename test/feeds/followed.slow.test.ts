import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { DAY_MS } from '../../src/lib/time.ts';
import { openSql, type Sql } from '../../src/postgres/sql.ts';
import { isUnavailable } from '../../src/postgres/sqlErrors.ts';
import { identifier } from '../../src/postgres/sqlText.ts';
import { errorOf, type Follower, PageFollower, StreamFollower } from '../support/feeds/followers.ts';
import { LateWriter } from '../support/feeds/lateWriter.ts';
import { ServicePods } from '../support/feeds/servicePods.ts';
import { PointStream } from '../support/ingest/pointStream.ts';
import { adminOf } from '../support/postgres/admin.ts';
import { type OwnPostgres, startOwnPostgres } from '../support/postgres/ownPostgres.ts';
import { skipWithoutRedis, startRedis } from '../support/redis.ts';
import { seededRandom } from '../support/seededRandom.ts';
import { serviceEnv } from '../support/service.ts';
import { IS_TORTURE } from '../support/torture.ts';
import { waitFor } from '../support/waitFor.ts';

const SEED = Number(process.env['FLEET_SEED'] ?? (IS_TORTURE ? Date.now() % 1_000_000 : 1));
/** Before the restore; a tenth as many come after it. */
const HARMS = IS_TORTURE ? 200 : 2;
const PAUSE_MS = 20_000;
const [OWNER, MEMBER] = ['owner@example.com', 'member@example.com'];
const POINT_WRITERS = IS_TORTURE ? 4 : 2;
const LATE_WRITERS = IS_TORTURE ? 4 : 2;
const DEVICES_PER_WRITER = 4;
/** No writer gives so many. */
const NAMES_PER_ROUND = 1_000_000;
const imeiOf = (n: number): string => String(350_000_000_000_000 + n);
/** Of writer `n`: every other is shared. */
const sentOf = (n: number) => Array.from({ length: DEVICES_PER_WRITER }, (_, k) => imeiOf(100 * (n + 1) + k));
const ownOf = (n: number) => ({ moving: imeiOf(9_000 + n), fleeting: imeiOf(9_100 + n) });

interface Setup {
  readonly postgres: OwnPostgres;
  readonly databaseUrl: string;
  readonly redisUrl: string;
  readonly pods: ServicePods;
  readonly sql: Sql;
  /** Of the owner and of a member of the same organization, who sees what is shared. */
  readonly keys: readonly [string, string];
  readonly random: () => number;
}

async function startSetup(t: TestContext): Promise<Setup> {
  const [postgres, redis] = await Promise.all([startOwnPostgres(t), startRedis(t)]);
  const admin = adminOf(postgres.url, redis.url);
  await admin.account(OWNER, { organization: 'Haulage' });
  await admin.account(MEMBER, { organization: 'Haulage' });
  const devices = Array.from({ length: POINT_WRITERS }, (_, n) => sentOf(n)).flat();
  const moving = Array.from({ length: LATE_WRITERS }, (_, n) => ownOf(n).moving);
  await admin.importDevices(
    OWNER,
    [...devices, ...moving].map((imei, n) => ({ imei, organization: n % 2 === 0 })),
  );
  const keys = [(await admin.key(OWNER)).key, (await admin.key(MEMBER)).key] as const;
  await copyDatabase(postgres.url, nameOf(postgres.url), 'backup');
  const env = { ...serviceEnv(postgres.url), REDIS_URL: redis.url };
  const pods = await ServicePods.start(t, env, 2);
  const sql = openSql(postgres.url, { maxConnections: 2 + LATE_WRITERS, name: 'test' });
  t.after(() => sql.end());
  const random = seededRandom(SEED);
  return { postgres, databaseUrl: postgres.url, redisUrl: redis.url, pods, sql, keys, random };
}

/** Everybody who writes; they begin at once. */
async function startWriters({ pods, sql, random }: Setup, roundNumber: number) {
  const worlds = await sql<{ account: number; organization: number }[]>`
    select a.world_id as account, o.world_id as organization
    from account a join organization o on o.id = a.organization_id where a.email = ${OWNER}`;
  const { account, organization } = worlds[0] ?? { account: 0, organization: 0 };
  const [late] = await sql<{ at: Date | null }[]>`select max(recorded_at) as at from device_state`;
  const startMs = late?.at?.getTime() ?? Date.now() - 20 * DAY_MS;
  const points = Array.from(
    { length: POINT_WRITERS },
    (_, n) => new PointStream(sentOf(n), Math.floor(random() * 1e9), startMs),
  );
  const lates = Array.from(
    { length: LATE_WRITERS },
    (_, n) =>
      new LateWriter(
        sql,
        [account, organization],
        ownOf(n),
        seededRandom(Math.floor(random() * 1e9)),
        NAMES_PER_ROUND * roundNumber,
      ),
  );
  const anyIngest = () => pods.ingests[Math.floor(random() * 2)] as string;
  const running = Promise.all([
    ...points.map((writer) => writer.run(anyIngest)),
    ...lates.map((writer) => writer.run()),
  ]);
  running.catch(() => undefined);
  return {
    running,
    sent: () => points.reduce((sum, { acknowledged }) => sum + acknowledged.length, 0),
    stop: async () => {
      for (const writer of [...points, ...lates]) writer.stop();
      await running;
    },
  };
}

/** By feed, by long poll and by stream, for both keys. */
function startFollowers({ pods, keys, random }: Setup) {
  const anyPod = () => pods.apis[Math.floor(random() * 2)] as string;
  const limit = () => `limit=${1 + Math.floor(random() * 40)}`;
  const followers: Follower[] = keys.flatMap((key, n) => [
    new PageFollower(`feed ${n}`, key, anyPod, limit),
    new PageFollower(`long poll ${n}`, key, anyPod, () => `wait=${Math.floor(random() * 4)}`),
    new StreamFollower(`stream ${n}`, key, anyPod, () => random() ** 2 * 3_000),
  ]);
  const running = Promise.all(followers.map((follower) => follower.run()));
  running.catch(() => undefined);
  const stop = async () => {
    for (const follower of followers) follower.stop();
    await running;
  };
  return { followers, running, stop };
}

/** What a key sees in the tables: the events behind `since`, and each device with its last state. */
async function tablesOf(sql: Sql, email: string, since: number) {
  const worlds = sql`
    select a.world_id from account a where a.email = ${email} union all
    select o.world_id from account a join organization o on o.id = a.organization_id where a.email = ${email}`;
  const events = await sql<{ id: number }[]>`
    select id from fleet_event where id > ${since} and world_id in (${worlds}) order by id`;
  const devices = await sql<
    { imei: string; name: string | null; recorded_at: Date | null; latitude: number }[]
  >`
    select d.imei, d.name, s.recorded_at, s.latitude, s.ignition from device d
    join device_state s on s.device_id = d.id where d.world_id in (${worlds}) order by d.imei`;
  return {
    events: events.map(({ id }) => id),
    devices: devices.map(({ imei, name, recorded_at, latitude }) =>
      [imei, name, recorded_at?.toISOString() ?? null, recorded_at === null ? null : latitude].join(' '),
    ),
  };
}

async function isAvailable(sql: Sql): Promise<boolean> {
  try {
    await sql`select 1`;
    return true;
  } catch (error) {
    if (!isUnavailable(error)) throw error;
    return false;
  }
}

function collectedBy({ collected: { events, devices } }: Follower) {
  return {
    events: [...events].sort((a, b) => a - b),
    devices: [...devices.values()]
      .map(({ imei, name, location }) =>
        [imei, name, location?.recorded_at ?? null, location?.latitude ?? null].join(' '),
      )
      .sort(),
  };
}

/** Waits until everybody has everything, and a little longer for what would come twice. */
async function proveCollected({ sql }: Setup, followers: readonly Follower[], since: number): Promise<void> {
  // The last harm may have sent Postgres into recovery.
  await waitFor(() => isAvailable(sql));
  const tables = [await tablesOf(sql, OWNER, since), await tablesOf(sql, MEMBER, since)];
  const expectedOf = (n: number) => tables[Math.floor(n / 3)];
  const isDone = (follower: Follower, n: number) =>
    JSON.stringify(collectedBy(follower)) === JSON.stringify(expectedOf(n));
  const areDone = () => followers.every(isDone);
  // Those who began anew have tens of thousands of events to read: they may take as long as they get on.
  for (let before = -1; !areDone() && takenBy(followers) > before; ) {
    before = takenBy(followers);
    const untilMs = performance.now() + 20_000;
    while (!areDone() && performance.now() < untilMs) await sleep(200);
  }
  await sleep(300);
  for (const [n, follower] of followers.entries()) {
    const collected = collectedBy(follower);
    const expected = expectedOf(n);
    for (const part of ['devices', 'events'] as const) {
      const differing = differences(collected[part], expected?.[part] ?? []);
      assert.deepEqual(differing, NO_DIFFERENCES, `${part} of ${follower.name} (seed ${SEED})`);
    }
    assert.ok(isDone(follower, n), `${follower.name} has all in its order (seed ${SEED})`);
    assert.ok(follower.collected.taken > 0, `${follower.name} was sent something`);
  }
}

const takenBy = (followers: readonly Follower[]) =>
  followers.reduce((sum, { collected }) => sum + collected.taken, 0);

const NO_DIFFERENCES = { missing: [], unexpected: [] };

/** The first of them: a comparison of all would take gigabytes to print. */
function differences(found: readonly unknown[], expected: readonly unknown[]) {
  const [isFound, isExpected] = [new Set(found), new Set(expected)];
  return {
    missing: expected.filter((each) => !isFound.has(each)).slice(0, 20),
    unexpected: found.filter((each) => !isExpected.has(each)).slice(0, 20),
  };
}

async function lastEventOf(sql: Sql): Promise<number> {
  const [row] = await sql<{ id: number | null }[]>`select max(id) as id from fleet_event`;
  return row?.id ?? 0;
}

/** What happens to the service: each is over when it runs again. */
const HARMS_BY_NAME: Readonly<Record<string, (setup: Setup, n: number) => Promise<void>>> = {
  'a pod is killed': async ({ pods }, n) => {
    await pods.kill(n);
    // In the short form it stays away until the restore.
    if (IS_TORTURE) await pods.start(n);
  },
  'connections of Postgres are ended': async ({ sql, random }) => {
    await sql`
      select pg_terminate_backend(pid) from pg_stat_activity
      where backend_type = 'client backend' and pid <> pg_backend_pid() and hashint4(pid) % 3 = ${Math.floor(random() * 3)}`;
  },
  'a pod is updated': async ({ pods }, n) => {
    await pods.stop(n);
    await pods.start(n);
  },
  'the processes of Postgres are killed': ({ postgres }) => postgres.killSessions(),
  'Redis is emptied': async ({ redisUrl }) => {
    const redis = new Redis(redisUrl);
    await redis.flushall();
    redis.disconnect();
  },
};

/** Harms it again and again while points stream in. */
async function harmOften(setup: Setup, count: number, sent: () => number): Promise<void> {
  const names = Object.keys(HARMS_BY_NAME);
  await waitFor(() => sent() >= 20);
  for (let n = 0; n < count; n++) {
    const wanted = sent() + 10 + setup.random() * 40;
    await waitFor(() => sent() >= wanted);
    // Each once, then as it comes.
    const name = names[n < names.length ? n : Math.floor(setup.random() * names.length)] as string;
    const pod = IS_TORTURE ? Math.floor(setup.random() * 2) : 0;
    await despite(() => HARMS_BY_NAME[name]?.(setup, pod) ?? Promise.resolve());
  }
}

/** Again where another harm was in the way. */
async function despite(work: () => Promise<unknown>): Promise<void> {
  for (;;) {
    try {
      await work();
      return;
    } catch (error) {
      if (!isUnavailable(error)) throw error;
      await sleep(20);
    }
  }
}

/** Runs `work` beside something that must not end before it. */
async function beside(running: readonly Promise<unknown>[], work: Promise<void>): Promise<void> {
  await Promise.race([Promise.all(running), work]);
  await work;
}

const nameOf = (databaseUrl: string) => new URL(databaseUrl).pathname.slice(1);

/** Puts a copy of a database in the place of another, as a restored backup is. */
async function copyDatabase(databaseUrl: string, from: string, to: string): Promise<void> {
  const url = new URL(databaseUrl);
  url.pathname = '/template1';
  const admin = openSql(url.href, { maxConnections: 1, name: 'test admin' });
  await admin`
    select pg_terminate_backend(pid) from pg_stat_activity where datname in (${from}, ${to})`;
  await admin`drop database if exists ${identifier(to)} with (force)`;
  await admin`create database ${identifier(to)} template ${identifier(from)}`;
  // Sequences are copied with how many of their numbers are in the log already, but their log is of the other database: after
  // a crash they would give these numbers again.
  await admin`checkpoint`;
  await admin.end();
}

describe('followers of feeds and streams', { skip: skipWithoutRedis() }, () => {
  test(`collect every event once and every last state, whatever happens to pods, Postgres and Redis (seed ${SEED})`, async (t) => {
    const setup = await startSetup(t);
    const { pods, sql, keys, databaseUrl } = setup;
    const { followers, running, stop } = startFollowers(setup);
    // A reader without a cursor begins with the events of now.
    await beside(
      [running],
      waitFor(() => followers.every(({ collected }) => collected.hasBegun(1))),
    );

    let roundNumber = 0;
    const round = async (harms: number, since: number, more?: (sent: () => number) => Promise<void>) => {
      const writers = await startWriters(setup, roundNumber++);
      const harm = async () => {
        await harmOften(setup, harms, writers.sent);
        await more?.(writers.sent);
      };
      await beside([running, writers.running], harm());
      await writers.stop();
      await beside([running], proveCollected(setup, followers, since));
    };
    const pause = async (sent: () => number) => {
      if (!IS_TORTURE) return;
      pods.pause(0);
      const before = sent();
      await sleep(PAUSE_MS);
      pods.resume(0);
      assert.ok(sent() > before, 'the other pod goes on meanwhile');
    };
    await round(HARMS, 0, pause);
    for (const { collected, name: who } of followers)
      assert.ok(collected.hasBegun(1), `${who} never began anew`);

    // The backup was made before all of this.
    const [api = ''] = pods.runningApis;
    const cursors = await Promise.all(
      ['devices/changes', 'events/feed'].map(async (path) => {
        const reply = await fetch(`${api}/api/v3/${path}`, { headers: { 'X-API-Key': keys[0] } });
        const { meta } = (await reply.json()) as { meta: { cursor: string } };
        return { path, cursor: meta.cursor };
      }),
    );
    await Promise.all([pods.kill(0), pods.kill(1)]);
    await despite(() => copyDatabase(databaseUrl, 'backup', nameOf(databaseUrl)));
    // In the short form one pod serves all from then on.
    await Promise.all((IS_TORTURE ? [0, 1] : [0]).map((n) => pods.start(n)));
    for (const { path, cursor } of cursors) {
      for (const pod of pods.runningApis) {
        assert.equal(await errorOf(pod, keys[0], `${path}?cursor=${cursor}`), '410 CURSOR_EXPIRED');
        assert.equal(await errorOf(pod, keys[0], `stream?cursor=${cursor}`), '410 CURSOR_EXPIRED');
      }
    }
    await beside(
      [running],
      waitFor(() => followers.every(({ collected }) => collected.hasBegun(2))),
    );
    await round(Math.floor(HARMS / 10), await lastEventOf(sql));
    await stop();
  });
});
