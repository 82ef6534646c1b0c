import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { pino } from 'pino';
import { ReplicaReads } from '../../src/changelog/replicaReads.ts';
import { ReplicaWatch, SharedPlaces } from '../../src/changelog/replicaWatch.ts';
import { DeviceGone, pointPages } from '../../src/history/points.sql.ts';
import { DAY_MS } from '../../src/lib/time.ts';
import { openConnections } from '../../src/postgres/connections.ts';
import { PostgresHosts } from '../../src/postgres/hosts.ts';
import { ServerKnowledge } from '../../src/postgres/serverEntry.ts';
import { openSql, type Sql } from '../../src/postgres/sql.ts';
import { sqlState } from '../../src/postgres/sqlErrors.ts';
import { packPoints } from '../support/history/packPoints.ts';
import { NO_LIMITS, type Pod, request, startPod } from '../support/pod.ts';
import { type Admin, adminOf } from '../support/postgres/admin.ts';
import { type ReplicatedPostgres, startReplicatedPostgres } from '../support/postgres/replicatedPostgres.ts';
import { waitFor } from '../support/waitFor.ts';

const OWNER = 'owner@example.com';
const VAN = '350000000000001';
const GONE = '350000000000002';
const SILENT = '350000000000003';
/** The first of some closed days, and the end of the last. */
const FROM_MS = Math.floor(Date.now() / DAY_MS) * DAY_MS - 30 * DAY_MS;
/** A statement of an export reads a week. */
const DAYS = 27;
const TO_MS = FROM_MS + DAYS * DAY_MS;
const iso = (ms: number): string => new Date(ms).toISOString();
const WINDOW = `from=${iso(FROM_MS)}&to=${iso(TO_MS)}`;
const CIRCLE = { name: 'Depot', type: 'circle', center: { lat: 41.02, lng: 12.5 }, radius_m: 1_500 };
const POINTS = 6_000;
/** An advisory lock. */
const LOCK = 7;

const trackOf = (imei: string, count: number) =>
  Array.from({ length: count }, (_, n) => ({
    imei,
    recorded_at: FROM_MS + Math.floor((n * DAYS * DAY_MS) / count),
    latitude: 41 + (n % 500) * 1e-4,
    longitude: 12.5,
    speed_kmh: n % 700 < 500 ? 40 : 0,
  }));
/** It comes when its day is packed. */
const LATE = { imei: VAN, recorded_at: FROM_MS + 1_234, latitude: 41.02, longitude: 12.5, speed_kmh: 30 };

const READS: Readonly<Record<string, string>> = {
  'a page of closed days': `devices/${VAN}/history?${WINDOW}&limit=1000`,
  'an export': `devices/${VAN}/history/export?${WINDOW}`,
  'a fleet export': `history/export?${WINDOW}&format=csv`,
  'a summary': `devices/${VAN}/history/summary?${WINDOW}&by=day`,
  'a fleet summary': `history/summary?${WINDOW}&by=day`,
  presence: `presence?lat=41.02&lng=12.5&radius_m=900&${WINDOW}`,
};
const EXPORT = READS['an export'] as string;

interface Site {
  readonly postgres: ReplicatedPostgres;
  readonly admin: Admin;
  readonly key: string;
  readonly primary: Sql;
  /** A connection to the replica, for a moment. */
  onReplica(work: (sql: Sql) => Promise<unknown>): Promise<unknown>;
  /** What a pod with the replica has logged. */
  readonly lines: Record<string, unknown>[];
  open(replicaUrl: string | null): Promise<Pod>;
}

async function startSite(t: TestContext): Promise<Site> {
  const postgres = await startReplicatedPostgres(t);
  const admin = adminOf(postgres.primaryUrl);
  await admin.account(OWNER);
  const { key } = await admin.key(OWNER);
  for (const imei of [VAN, GONE, SILENT]) await admin.device(OWNER, imei);
  const primary = openSql(postgres.primaryUrl, { maxConnections: 2, name: 'test' });
  t.after(() => primary.end());
  const lines: Record<string, unknown>[] = [];
  const log = pino({ level: 'info' }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  return {
    ...{ postgres, admin, key, primary, lines },
    onReplica: async (work) => {
      const sql = openSql(postgres.replicaUrl, { maxConnections: 1, name: 'test' });
      try {
        return await work(sql);
      } finally {
        await sql.end();
      }
    },
    open: (replicaUrl) =>
      startPod(postgres.primaryUrl, {
        t,
        env: { ...NO_LIMITS, ...(replicaUrl === null ? {} : { DATABASE_REPLICA_URL: replicaUrl }) },
        ...(replicaUrl === null ? {} : { log }),
      }),
  };
}

/** Reads of accounts as those of a pod, with its reports to the primary. `served` is told who answers. */
async function openReads(
  t: TestContext,
  { postgres, primary }: Site,
  served: string[] = [],
): Promise<(accountId: number) => Sql> {
  const [reporting] = await primary<{ id: string }[]>`select id from pod order by seen_at desc limit 1`;
  const podId = reporting?.id ?? '';
  const replicaHosts = new PostgresHosts(postgres.replicaUrl, undefined, 'replica');
  const hosts = new PostgresHosts(postgres.primaryUrl);
  const connections = openConnections(hosts, new ServerKnowledge(), undefined, replicaHosts);
  const { replica } = connections;
  assert.ok(replica !== null);
  const places = new SharedPlaces(replica.places, podId);
  const watch = new ReplicaWatch({ replica, places, podId, log: pino({ level: 'silent' }) });
  t.after(async () => {
    await watch.stop();
    await connections.end();
  });
  watch.start();
  await waitFor(() => watch.state === 'serving');
  const ports = {
    primary: connections.reads,
    replica: replica.reads,
    watch,
    places,
    podId,
    count: (server: string) => void served.push(server),
  };
  return new ReplicaReads(ports).of;
}

async function isAsleep(sql: Sql): Promise<boolean> {
  const [found] = await sql<{ asleep: boolean }[]>`
    select exists (select from pg_stat_activity where wait_event = 'PgSleep') as asleep`;
  return found?.asleep === true;
}

async function metricOf(pod: Pod, name: string): Promise<number> {
  const { text } = await request(`${pod.ingest}/metrics`);
  const line = text.split('\n').find((each) => each.startsWith(`${name} `));
  assert.ok(line !== undefined, name);
  return Number(line.slice(name.length));
}
const readsBy = (pod: Pod, server: 'replica' | 'primary') =>
  metricOf(pod, `fleet_replica_reads_total{server="${server}"}`);
const readsOf = async (pod: Pod) => ({
  replica: await readsBy(pod, 'replica'),
  primary: await readsBy(pod, 'primary'),
});
const isIn = async (pod: Pod, state: string) =>
  (await metricOf(pod, `fleet_replica_state{state="${state}"}`)) === 1;
const reaches = (pod: Pod, state: string) => waitFor(() => isIn(pod, state));

async function textOf(pod: Pod, path: string, key: string): Promise<string> {
  const { status, text } = await pod.get(`/api/v3/${path}`, key);
  assert.equal(status, 200, text);
  return text;
}

/** An export as a route reads it: its first page is there, and the next statement under way. `rest`: how many points it has. */
async function begin(sql: Sql, primary: Sql, imei: string): Promise<{ rest(): Promise<number> }> {
  const [device] = await primary<{ id: number; world_id: number }[]>`
    select id, world_id from device where imei = ${imei}`;
  assert.ok(device !== undefined);
  const pages = pointPages(sql, [device.world_id], device.id, { fromMs: FROM_MS, toMs: TO_MS });
  let points = (await pages.next()).value?.count ?? 0;
  return {
    rest: async () => {
      for await (const { count } of pages) points += count;
      return points;
    },
  };
}

test('a replica answers what is heavy as the primary does', { timeout: 600_000 }, async (t) => {
  const site = await startSite(t);
  const { postgres, key, primary, lines } = site;
  const pod = await site.open(postgres.replicaUrl);
  const plain = await site.open(null);
  for (const imei of [VAN, GONE]) await pod.points(trackOf(imei, POINTS));
  await packPoints(primary);
  await pod.points([LATE]);
  const made = await request(`${pod.api}/api/v3/areas`, {
    method: 'POST',
    headers: { 'X-API-Key': key, 'Content-Type': 'application/json' },
    body: JSON.stringify(CIRCLE),
  });
  assert.equal(made.status, 201);
  const backtest = async (on: Pod): Promise<string> => {
    const reply = await request(`${on.api}/api/v3/areas/backtest`, {
      method: 'POST',
      headers: { 'X-API-Key': key, 'Content-Type': 'application/json' },
      body: JSON.stringify({ area_id: made.body.data.id, from: iso(FROM_MS), to: iso(TO_MS) }),
    });
    assert.equal(reply.status, 200, reply.text);
    return reply.text;
  };
  const reads = {
    ...Object.fromEntries(
      Object.entries(READS).map(([name, path]) => [name, (on: Pod) => textOf(on, path, key)]),
    ),
    'a backtest': backtest,
  };
  await waitFor(async () => (await backtest(pod)) === (await backtest(plain)));
  const isReadAgain = () =>
    waitFor(async () => {
      const before = await readsBy(pod, 'replica');
      assert.equal(await textOf(pod, EXPORT, key), await textOf(plain, EXPORT, key));
      return (await readsBy(pod, 'replica')) > before;
    });
  const areAnswered = async () => {
    for (const [name, read] of Object.entries(reads)) assert.equal(await read(pod), await read(plain), name);
  };
  await isReadAgain();

  await t.test('with the same bytes', async () => {
    for (const [name, read] of Object.entries(reads)) {
      const expected = await read(plain);
      assert.ok(expected.length > 300, name);
      // A machine with much to do may keep the replica from being level in time.
      await waitFor(async () => {
        const before = await readsOf(pod);
        assert.equal(await read(pod), expected, name);
        const after = await readsOf(pod);
        return after.replica > before.replica && after.primary === before.primary;
      });
    }
    const before = await readsBy(pod, 'replica');
    await textOf(pod, `devices/${VAN}/history`, key);
    assert.equal(await readsBy(pod, 'replica'), before, 'a page of the present day is read on the primary');
  });

  await t.test(
    'and shows nothing of a device that was deleted while it lags, and all that came late',
    async (t) => {
      const paths = [`history?${WINDOW}`, `history/export?${WINDOW}`].map(
        (rest) => `devices/${GONE}/${rest}`,
      );
      for (const path of paths) assert.match(await textOf(pod, path, key), /"recorded_at"/);
      const reads = await openReads(t, site);
      const running = await begin(reads(1), primary, GONE);
      await site.onReplica((sql) => sql`select pg_wal_replay_pause()`);
      await site.admin.run('device:delete', '--imei', GONE);
      await assert.rejects(running.rest(), DeviceGone, 'an export that runs ends, as without a replica');
      await site.admin.device(OWNER, GONE);
      for (const path of paths) assert.doesNotMatch(await textOf(pod, path, key), /"recorded_at"/, path);
      const late = { ...LATE, recorded_at: LATE.recorded_at + 1 };
      await pod.points([late]);
      const around = `from=${iso(FROM_MS)}&to=${iso(late.recorded_at)}`;
      for (const path of [`history?${around}`, `history/export?${around}`])
        assert.ok((await textOf(pod, `devices/${VAN}/${path}`, key)).includes(iso(late.recorded_at)), path);
      await areAnswered();
      await reaches(pod, 'behind');
      await waitFor(async () => (await metricOf(pod, 'fleet_replica_lag_seconds')) > 2);
      await site.onReplica((sql) => sql`select pg_wal_replay_resume()`);
      await isReadAgain();
    },
  );

  await t.test('and leaves others their turns, however much one account reads', async (t) => {
    const reads = await openReads(t, site);
    const own = openSql(postgres.primaryUrl, { maxConnections: 1, name: 'test' });
    t.after(() => own.end());
    await site.onReplica(async (held) => {
      const servers = [held, own];
      // Whoever wants it waits, on either server: on a busy machine the replica may not be level in time.
      for (const sql of servers) await sql`select pg_advisory_lock(${LOCK})`;
      const heavy = Promise.allSettled(
        Array.from({ length: 100 }, () => Promise.resolve(reads(1)`select pg_advisory_xact_lock(${LOCK})`)),
      );
      const stuck = async (sql: Sql) =>
        (await sql`select from pg_stat_activity where wait_event = 'advisory'`).length;
      await waitFor(async () => (await stuck(held)) >= 2, 'the account does not hold two connections');
      for (let n = 0; n < 20; n++) {
        const others = [2, 3, 4].map((account) => Promise.resolve(reads(account)`select 1`));
        for (const rows of await Promise.all(others)) assert.equal(rows.length, 1);
        for (const sql of servers) assert.ok((await stuck(sql)) <= 2);
      }
      for (const sql of servers) await sql`select pg_advisory_unlock(${LOCK})`;
      await heavy;
    });
  });

  await t.test('and does not ask the primary too for what takes longer than it may', async (t) => {
    const reads = await openReads(t, site);
    const long = () => reads(1)`select case when pg_is_in_recovery() then pg_sleep(60)::text end`;
    await waitFor(async () => {
      let isAnswered = false;
      const answered = Promise.resolve(long()).finally(() => {
        isAnswered = true;
      });
      let isHere = false;
      const looked = waitFor(async () => {
        isHere = (await site.onReplica(isAsleep)) as boolean;
        return isHere || isAnswered;
      });
      const [end] = await Promise.allSettled([answered, looked]);
      if (!isHere) return false; // the replica was not level in time
      assert.equal(end.status === 'rejected' && sqlState(end.reason), '57014');
      return true;
    }, 'the replica answers nothing');
  });

  await t.test('and an export goes on, whole, when the replica is killed in the middle of it', async (t) => {
    const served: string[] = [];
    const reads = await openReads(t, site, served);
    const running = await begin(reads(1), primary, VAN);
    await postgres.killReplica();
    assert.equal(await running.rest(), POINTS + 2, 'with those that came late');
    assert.deepEqual([served[0], served.at(-1)], ['replica', 'primary']);
    await reaches(pod, 'away');
    await areAnswered();
    await postgres.startReplica('max_standby_streaming_delay=0');
    await isReadAgain();
  });

  await t.test('and what is ended so that replay goes on is asked of the primary, once', async (t) => {
    const served: string[] = [];
    const sql = (await openReads(t, site, served))(1);
    const until = async (work: PromiseLike<unknown>) => {
      const done = Promise.resolve(work);
      await waitFor(() => site.onReplica(isAsleep) as Promise<boolean>);
      await primary.begin((tx) => tx.unsafe('lock table device in access exclusive mode'));
      return done;
    };
    const rows = await until(sql`
      select pg_is_in_recovery() as replica, count(*)::int as devices,
        (select case when pg_is_in_recovery() then pg_sleep(60)::text end) as slept from device`);
    assert.deepEqual([...(rows as object[])], [{ replica: false, devices: 3, slept: null }]);
    const query = {
      strings: [
        `select n, repeat('x', 1000), case when n = 5000 and pg_is_in_recovery() then pg_sleep(60)::text end
        from generate_series(1, 5000) n where exists (select from device)`,
      ],
      values: [],
    };
    const copied: Buffer[] = [];
    await until(sql.copy(query, (bytes) => void copied.push(bytes)));
    const expected: Buffer[] = [];
    await primary.copy(query, (bytes) => void expected.push(bytes));
    assert.ok(Buffer.concat(copied).equals(Buffer.concat(expected)), 'nothing comes twice');
    assert.deepEqual(served, ['primary', 'primary']);
    await assert.rejects(async () => sql`select 1 / (count(*) - 3) from device`, { code: '22012' });
    await assert.rejects(async () => sql`delete from device`, { code: '25006' });
    assert.equal((await sql`select`).length, 1);
    assert.deepEqual(served, ['primary', 'primary', 'replica']);
  });

  await t.test('and a server that is no replica is not used, nor is one of another cluster', async (t) => {
    const other = await startReplicatedPostgres(t, { isNew: true });
    for (const [url, state] of [
      [postgres.primaryUrl, 'no_replica'],
      [other.replicaUrl, 'other_cluster'],
    ] as const) {
      const wrong = await site.open(url);
      await reaches(wrong, state);
      assert.equal(await textOf(wrong, EXPORT, key), await textOf(plain, EXPORT, key));
      assert.equal(await readsBy(wrong, 'replica'), 0);
      assert.ok(lines.some((line) => line['state'] === state && line['level'] === 40));
      await wrong.stop();
    }
    assert.ok(!JSON.stringify(lines).includes(new URL(postgres.primaryUrl).password));
  });

  await t.test('and one that has gone on in a history of its own is not used either', async () => {
    await postgres.estrangeReplica();
    await reaches(pod, 'other_history');
    const before = await readsBy(pod, 'replica');
    await areAnswered();
    assert.equal(await readsBy(pod, 'replica'), before);
    assert.ok(lines.some((line) => line['state'] === 'other_history'));
  });
});
