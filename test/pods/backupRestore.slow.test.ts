import assert from 'node:assert/strict';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { DAY_MS, HOUR_MS } from '../../src/lib/time.ts';
import { openSql, type Sql } from '../../src/postgres/sql.ts';
import { guideBlock } from '../guide/guide.ts';
import { errorOf } from '../support/feeds/followers.ts';
import { ServicePods } from '../support/feeds/servicePods.ts';
import { storedPoints } from '../support/history/storedPoints.ts';
import { PointStream, type SentPoint, streamDuring } from '../support/ingest/pointStream.ts';
import { bareRequest } from '../support/pod.ts';
import { findFreePort } from '../support/ports.ts';
import { adminOf } from '../support/postgres/admin.ts';
import { drillScript, skipWithoutPrograms } from '../support/postgres/drillScript.ts';
import { findRedisServer, startRedis } from '../support/redis.ts';
import { IS_TORTURE } from '../support/torture.ts';
import { waitFor } from '../support/waitFor.ts';
import { drained } from '../support/webhooks/deliveryProof.ts';
import { startReceiver } from '../support/webhooks/receiver.ts';
import { deliveringEnv } from '../support/webhooks/webhookProcesses.ts';
import { endpointBody, webhookApi } from '../support/webhooks/webhooks.ts';

// Postgres is backed up by pgBackRest as the guide says, and lost with its disk; pods go on with what a restore brings back.

const OWNER = 'owner@example.com';
const IMEIS = Array.from({ length: 8 }, (_, n) => String(350_000_000_000_000 + n));
const SENDERS = 2;
const POINTS = 500;
/** Longer than the points of one sender take by their own times. */
const BETWEEN_MS = 6 * HOUR_MS;
/** One event in twenty: an endpoint is sent one at a time. */
const DELIVERED = 'tamper_alert';
const FEEDS = ['devices/changes', 'events/feed'] as const;
const TIME_OF_GUIDE = '2026-11-27 14:05:00+00';
const STUCK_MS = 120_000;
const PROGRAMS = [
  '/usr/bin/pgbackrest',
  '/usr/bin/setpriv',
  '/usr/bin/pgrep',
  '/usr/lib/postgresql/15/bin/postgres',
];

function skipReason(): string | false {
  if (!IS_TORTURE) return 'it runs with npm run torture -- backup';
  if (findRedisServer() === null) return 'there is no redis-server on this machine';
  return skipWithoutPrograms(PROGRAMS);
}

const keyOf = ({ imei, recorded_at }: SentPoint) => `${imei} ${recorded_at}`;
const secondsSince = (sinceMs: number) => `${((performance.now() - sinceMs) / 1_000).toFixed(1)} s`;

/** Two pods on the Postgres of the drill, with a key, an endpoint and its receiver. */
async function startDrill(t: TestContext) {
  const script = drillScript('backup.sh');
  const folder = mkdtempSync(join(tmpdir(), 'fleet-drill-'));
  t.after(() => script('down'));
  await script('up', folder, String(await findFreePort()));
  const url = await script('url');
  const redis = await startRedis(t);
  const others = { ROLES: 'api,ingest,delivery', REDIS_URL: redis.url };
  const env = await deliveringEnv(t, url, 1_000, others);
  const admin = adminOf(url, redis.url);
  await admin.run('migrate');
  await admin.account(OWNER);
  await admin.importDevices(
    OWNER,
    IMEIS.map((imei) => ({ imei })),
  );
  const { key } = await admin.key(OWNER);
  const pods = await ServicePods.start(t, env, 2);
  const receiver = await startReceiver(t);
  await webhookApi(pods.apis[0] as string, key).make(
    endpointBody(`${receiver.url}/hook`, { events: [DELIVERED] }),
  );
  const sql = openSql(url, { maxConnections: 1, name: 'test' });
  t.after(() => sql.end());
  const firstMs = Date.now() - 20 * DAY_MS;
  const sent = new Set<string>();
  const kept = new Set<string>();
  let times = 0;
  let turn = 0;
  return {
    script,
    pods,
    key,
    receiver,
    sql,
    /** Points that were sent so far, and those that must be stored. */
    sent,
    kept,
    /** Sends points through both pods, newer than all before; returns those that were acknowledged. */
    send: async (): Promise<string[]> => {
      const startMs = firstMs + times++ * BETWEEN_MS;
      const streams = Array.from({ length: SENDERS }, (_, n) => {
        const own = IMEIS.filter((_, index) => index % SENDERS === n);
        return new PointStream(own, times * SENDERS + n, startMs);
      });
      const anyPod = () => pods.ingests[turn++ % 2] as string;
      const { acknowledged, doubtful } = await streamDuring(streams, anyPod, (count) =>
        waitFor(() => count() >= POINTS),
      );
      for (const point of [...acknowledged, ...doubtful]) sent.add(keyOf(point));
      const keys = acknowledged.map(keyOf);
      for (const point of keys) kept.add(point);
      return keys;
    },
  };
}

type Drill = Awaited<ReturnType<typeof startDrill>>;

/** Cursors of readers that have read all there is. */
function cursorsOf({ pods, key }: Drill): Promise<string[]> {
  return Promise.all(
    FEEDS.map(async (path) => {
      let cursor = '';
      await waitFor(async () => {
        const query = `limit=1000${cursor === '' ? '' : `&cursor=${cursor}`}`;
        const { body } = await bareRequest(`${pods.apis[0]}/api/v3/${path}?${query}`, {
          headers: { 'X-API-Key': key },
        });
        const isFinished = cursor !== '' && body.data.length === 0;
        cursor = body.meta.cursor;
        return isFinished;
      });
      return cursor;
    }),
  );
}

/** Ids of events and of their webhook events. */
async function idsOf(sql: Sql): Promise<string[]> {
  const rows = await sql<{ id: string }[]>`
    select id::text as id from fleet_event union all select distinct event_id from webhook_delivery`;
  return rows.map(({ id }) => id);
}

/** The points that are stored: each once, and somebody has sent it. */
async function storedOf({ sql, sent }: Drill): Promise<Set<string>> {
  const stored = (await storedPoints(sql)).map(({ imei, recordedAtMs }) => `${imei} ${recordedAtMs}`);
  assert.equal(new Set(stored).size, stored.length, 'no point is stored twice');
  assert.deepEqual(
    stored.filter((point) => !sent.has(point)),
    [],
  );
  return new Set(stored);
}

/** An id of a webhook event is that of one event, whatever was lost in between. */
function proveHooks({ receiver }: Drill): number {
  const bodies = new Map<string, string>();
  for (const { headers, body } of receiver.to('/hook')) {
    const id = headers['webhook-id'] as string;
    assert.equal(bodies.get(id) ?? body, body, `two events have the id ${id}`);
    bodies.set(id, body);
  }
  const events = new Set([...bodies.values()].map((body) => JSON.parse(body).data.fleet_event_id));
  assert.equal(events.size, bodies.size, 'an event has one id');
  return bodies.size;
}

/** Loses Postgres after more points, and restores the end of what was archived, or the moment before these points. */
async function loseAndRestore(t: TestContext, drill: Drill, to: 'the latest' | 'a time'): Promise<void> {
  const { script, sql, pods, key, kept } = drill;
  await drill.send();
  const keptCursors = await cursorsOf(drill);
  if (to === 'the latest') await script('archive');
  const time = await script('now');
  const doomed = await drill.send();
  await drained(sql, STUCK_MS);
  const lostCursors = await cursorsOf(drill);
  const before = await idsOf(sql);
  // A time is found only where the log goes on after it.
  if (to === 'a time') await script('archive');
  const known = pods.logs.map(({ length }) => length);
  await script('destroy');

  const startMs = performance.now();
  const command =
    to === 'the latest'
      ? guideBlock('pgbackrest.restore')
      : guideBlock('pgbackrest.restoreTime', { [TIME_OF_GUIDE]: time });
  await script('run', command);
  const copied = secondsSince(startMs);
  await script('start');
  const restored = secondsSince(startMs);
  const stored = await storedOf(drill);
  const restoredIds = new Set(await idsOf(sql));
  const lost = [...kept].filter((point) => !stored.has(point));
  assert.deepEqual(
    lost.filter((point) => !doomed.includes(point)),
    [],
    'what was acknowledged before is there',
  );
  if (to === 'a time') assert.equal(lost.length, doomed.length, 'nothing is there that came after the time');
  assert.ok(lost.length > 0, 'the drill loses something');
  for (const point of lost) kept.delete(point);

  await drill.send();
  const taken = secondsSince(startMs);
  await drained(sql, STUCK_MS);
  const now = await storedOf(drill);
  assert.deepEqual(
    [...kept].filter((point) => !now.has(point)),
    [],
    'what was acknowledged is stored',
  );
  const gone = before.filter((id) => !restoredIds.has(id));
  const after = new Set(await idsOf(sql));
  assert.ok(gone.length > 0 && after.size > restoredIds.size);
  assert.deepEqual(
    gone.filter((id) => after.has(id)),
    [],
    'no id of a lost event is given again',
  );
  const hooks = proveHooks(drill);
  for (const [n, api] of pods.apis.entries()) {
    for (const [feed, path] of FEEDS.entries()) {
      assert.equal(
        await errorOf(api, key, `${path}?cursor=${keptCursors[feed]}`),
        null,
        `${path} of pod ${n}`,
      );
      assert.match(String(await errorOf(api, key, `${path}?cursor=${lostCursors[feed]}`)), /^410 /);
    }
    const line = (pods.logs[n] ?? [])
      .slice(known[n])
      .map((text) => JSON.parse(text))
      .find(({ msg }) => msg.startsWith('another server;'));
    assert.ok(line?.lost_wal_bytes > 0, 'the log says how much is lost');
  }
  t.diagnostic(
    `${to}: ${lost.length} of ${doomed.length} points are lost that were acknowledged after it, and ${gone.length} ids of ` +
      `events and webhook events; files are back after ${copied}, Postgres takes writes after ${restored}, ` +
      `${POINTS} more points are stored after ${taken}; ${hooks} webhook events so far, each under one id`,
  );
}

test('Postgres is lost with its disk and restored, and pods go on with what there is', {
  skip: skipReason(),
}, async (t) => {
  const drill = await startDrill(t);
  const { script } = drill;
  await script('run', guideBlock('pgbackrest.setup'));
  const startMs = performance.now();
  const [during] = await Promise.all([drill.send(), script('run', guideBlock('pgbackrest.backup'))]);
  t.diagnostic(`a full backup took ${secondsSince(startMs)}, beside ${during.length} points`);
  await loseAndRestore(t, drill, 'the latest');
  await loseAndRestore(t, drill, 'a time');
  await script('run', guideBlock('pgbackrest.backup'));
});
