import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { DAY_MS } from '../../src/lib/time.ts';
import { openSql, type Sql } from '../../src/postgres/sql.ts';
import { PageFollower, StreamFollower } from '../support/feeds/followers.ts';
import { ServicePods } from '../support/feeds/servicePods.ts';
import { storedPoints } from '../support/history/storedPoints.ts';
import { PointStream, provenPoints, type SentPoint } from '../support/ingest/pointStream.ts';
import { bareRequest, INGEST_TOKEN } from '../support/pod.ts';
import { adminOf } from '../support/postgres/admin.ts';
import {
  NODE_FAULTS,
  type PatroniMode,
  type PatroniNodes,
  skipWithoutPatroni,
  startPatroni,
} from '../support/postgres/patroni.ts';
import { findRedisServer, startRedis } from '../support/redis.ts';
import { IS_TORTURE } from '../support/torture.ts';
import { waitFor } from '../support/waitFor.ts';
import { drained } from '../support/webhooks/deliveryProof.ts';
import { startReceiver } from '../support/webhooks/receiver.ts';
import { deliveringEnv } from '../support/webhooks/webhookProcesses.ts';
import { endpointBody, webhookApi } from '../support/webhooks/webhooks.ts';

const OWNER = 'owner@example.com';
const SENDERS = 4;
const DEVICES = 4;
const IMEIS = Array.from({ length: SENDERS * DEVICES }, (_, n) => String(350_000_000_000_000 + n));
/** Sends what measures how long no point is taken. */
const PROBE = '350000000009999';
const PAUSE_MS = 50;
const SENT_BETWEEN = 300;
/** One event in twenty: an endpoint is sent one at a time. */
const DELIVERED = 'tamper_alert';
const STUCK_MS = 120_000;

function skipReason(): string | false {
  if (!IS_TORTURE) return 'it runs with npm run torture -- failover';
  if (findRedisServer() === null) return 'there is no redis-server on this machine';
  return skipWithoutPatroni();
}

/** Two pods on three nodes, with who polls, follows and receives webhooks. */
async function startDrill(t: TestContext, mode: PatroniMode) {
  const nodes = await startPatroni(t, mode);
  const redis = await startRedis(t);
  const others = { ROLES: 'api,ingest,delivery', REDIS_URL: redis.url };
  const env = await deliveringEnv(t, nodes.url, 1_000, others);
  const admin = adminOf(nodes.url, redis.url);
  await admin.account(OWNER);
  await admin.importDevices(
    OWNER,
    [...IMEIS, PROBE].map((imei) => ({ imei })),
  );
  const { key } = await admin.key(OWNER);
  const pods = await ServicePods.start(t, env, 2);
  const receiver = await startReceiver(t);
  await webhookApi(pods.apis[0] as string, key).make(
    endpointBody(`${receiver.url}/hook`, { events: [DELIVERED] }),
  );
  const sql = openSql(nodes.url, { maxConnections: 1, name: 'test' });
  t.after(() => sql.end());
  let turn = 0;
  const anyPod = () => pods.apis[turn++ % 2] as string;
  const anyIngest = () => pods.ingests[turn++ % 2] as string;
  const followers = [
    new PageFollower('feed', key, anyPod, () => 'limit=40'),
    new PageFollower('long poll', key, anyPod, () => 'wait=3'),
    new StreamFollower('stream', key, anyPod, () => 2_000),
  ];
  const following = Promise.all(followers.map((follower) => follower.run()));
  t.after(() => {
    for (const follower of followers) follower.stop();
  });
  following.catch(() => undefined);
  await waitFor(() => followers.every(({ collected }) => collected.hasBegun(1)));
  return { nodes, pods, key, receiver, sql, anyIngest, followers, following };
}

type Drill = Awaited<ReturnType<typeof startDrill>>;

/** Senders of points, until `stop`. */
class Senders {
  readonly #streams: readonly PointStream[];
  readonly #running: Promise<unknown>;
  readonly probes: { acknowledged: SentPoint[]; doubtful: SentPoint[] } = { acknowledged: [], doubtful: [] };
  readonly #drill: Drill;

  constructor(t: TestContext, drill: Drill, startMs: number) {
    this.#drill = drill;
    this.#streams = Array.from(
      { length: SENDERS },
      (_, n) => new PointStream(IMEIS.slice(n * DEVICES, (n + 1) * DEVICES), n + 1, startMs),
    );
    this.#running = Promise.all(this.#streams.map((stream) => stream.run(drill.anyIngest)));
    this.#running.catch(() => undefined);
    t.after(() => this.stop());
  }

  get sent() {
    return {
      acknowledged: [...this.#streams.flatMap((stream) => stream.acknowledged), ...this.probes.acknowledged],
      doubtful: [...this.#streams.flatMap((stream) => stream.doubtful), ...this.probes.doubtful],
    };
  }

  /** Waits until so many points more were acknowledged. */
  async more(count: number): Promise<void> {
    const acknowledged = () => this.#streams.reduce((sum, stream) => sum + stream.acknowledged.length, 0);
    const wanted = acknowledged() + count;
    const until = waitFor(() => acknowledged() >= wanted);
    await Promise.race([Promise.all([this.#running, this.#drill.following]), until]);
    await until;
  }

  /** Waits until a point is taken that is sent from now on. */
  async probe(): Promise<void> {
    for (;;) {
      const point = { imei: PROBE, recorded_at: Date.now(), latitude: 1, longitude: 2, speed_kmh: 0 };
      const reply = await bareRequest(`${this.#drill.anyIngest()}/positions`, {
        method: 'POST',
        headers: { 'X-Ingest-Token': INGEST_TOKEN },
        body: JSON.stringify([point]),
        signal: AbortSignal.timeout(2_000),
      }).catch(() => null);
      this.probes[reply?.status === 200 ? 'acknowledged' : 'doubtful'].push(point);
      if (reply?.status === 200) return;
      await sleep(PAUSE_MS);
    }
  }

  async stop(): Promise<void> {
    for (const stream of this.#streams) stream.stop();
    await this.#running;
  }
}

/** Polls both pods, until `stop`, which returns the answers that were not 200. */
function startPolls({ pods, key }: Drill): { stop(): Promise<{ count: number; refused: string[] }> } {
  const refused: string[] = [];
  let count = 0;
  let isOver = false;
  const poll = async (path: string): Promise<void> => {
    for (let n = 0; !isOver; n++) {
      const reply = await bareRequest(`${pods.apis[n % 2]}/api/v3/${path}`, {
        headers: { 'X-API-Key': key },
      });
      count++;
      if (reply.status !== 200) refused.push(`${path}: ${reply.status} ${reply.text}`);
      await sleep(PAUSE_MS);
    }
  };
  const polling = Promise.all([poll(`devices/${IMEIS[0]}/location`), poll('devices/nearest?lat=1&lng=1')]);
  polling.catch(() => undefined);
  return {
    stop: async () => {
      isOver = true;
      await polling;
      return { count, refused };
    },
  };
}

async function eventsSince(sql: Sql, since: number, type: string | null = null): Promise<number[]> {
  const rows = await sql<{ id: number }[]>`
    select id from fleet_event where id > ${since} and (${type}::text is null or type = ${type}) order by id`;
  return rows.map(({ id }) => id);
}

/** Waits until each follower has each of these events, and then sees that it has each once. */
async function proveFollowed({ followers, following }: Drill, since: number, events: readonly number[]) {
  for (const { name, collected } of followers) {
    const taken = () => collected.events.filter((id) => id > since).sort((a, b) => a - b);
    await Promise.race([following, waitFor(() => new Set(taken()).size >= events.length)]);
    assert.deepEqual(taken(), events, `${name} has each event once`);
  }
}

/** An id of a webhook event is that of one event, whatever was lost in between. Returns the events that came. */
function proveIds({ receiver }: Drill): Set<number> {
  const bodies = new Map<string, string>();
  const events = new Set<number>();
  for (const { headers, body } of receiver.to('/hook')) {
    const id = headers['webhook-id'] as string;
    assert.equal(bodies.get(id) ?? body, body, `two events have the id ${id}`);
    bodies.set(id, body);
    events.add(JSON.parse(body).data.fleet_event_id);
  }
  assert.equal(bodies.size, events.size, 'an event has one id');
  return events;
}

describe('under Patroni', { skip: skipReason() }, () => {
  test('with a synchronous replica, nothing that was acknowledged is lost when the primary fails', async (t) => {
    const drill = await startDrill(t, 'synchronous');
    const { nodes, sql } = drill;
    const senders = new Senders(t, drill, Date.now() - 20 * DAY_MS);
    await senders.more(SENT_BETWEEN);
    const polls = startPolls(drill);
    for (const [fault, mend] of Object.entries(NODE_FAULTS)) {
      await nodes.complete();
      const node = (await nodes.primary()) as string;
      const atMs = performance.now();
      const sinceSeconds = () => ((performance.now() - atMs) / 1_000).toFixed(1);
      await nodes.call(fault, node);
      const promoted = promotion(nodes, node).then(sinceSeconds);
      await senders.probe();
      const taken = sinceSeconds();
      t.diagnostic(`${fault}: promoted after ${await promoted} s, points are taken after ${taken} s`);
      await senders.more(SENT_BETWEEN);
      await nodes.call(mend, node);
    }
    await nodes.complete();
    await senders.more(SENT_BETWEEN);
    await senders.stop();
    const { count, refused } = await polls.stop();
    assert.deepEqual(refused, [], 'polls are answered all the time');
    const { length } = await provenPoints(sql, senders.sent);
    await drained(sql, STUCK_MS);
    const events = await eventsSince(sql, 0);
    await proveFollowed(drill, 0, events);
    for (const { name, collected } of drill.followers)
      assert.ok(collected.hasBegun(1), `${name} never began anew`);
    const delivered = [...proveIds(drill)].sort((a, b) => a - b);
    assert.deepEqual(delivered, await eventsSince(sql, 0, DELIVERED), 'each is delivered');
    t.diagnostic(
      `${count} polls, ${length} points, ${events.length} events, ${delivered.length} of them delivered`,
    );
  });

  test('without one, what is lost is gone everywhere, and is told', async (t) => {
    const drill = await startDrill(t, 'asynchronous');
    const { nodes, sql, pods, key, followers } = drill;
    const senders = new Senders(t, drill, Date.now() - 20 * DAY_MS);
    await senders.more(SENT_BETWEEN);
    await nodes.complete();
    const node = (await nodes.primary()) as string;
    const replicas = ['1', '2', '3'].filter((other) => other !== node);
    for (const replica of replicas) await nodes.call('cut', replica);
    await senders.more(SENT_BETWEEN);
    const polls = startPolls(drill);
    await nodes.call('kill', node);
    for (const replica of replicas) await nodes.call('mend', replica);
    await promotion(nodes, node);
    await waitFor(() => followers.every(({ collected }) => collected.hasBegun(2)));
    await senders.stop();
    const { refused } = await polls.stop();
    assert.deepEqual(refused, [], 'polls are answered all the time');
    for (const lines of pods.logs) {
      const told = lines.map((line) => JSON.parse(line)).find(({ msg }) => msg.startsWith('another server;'));
      assert.ok(told?.lost_wal_bytes > 0, lines.join('\n'));
      t.diagnostic(`a pod has seen ${told.lost_wal_bytes} bytes of the log that are lost`);
    }
    await nodes.call('start', node);
    await nodes.complete();

    const { acknowledged, doubtful } = senders.sent;
    const sent = new Set(
      [...acknowledged, ...doubtful].map(({ imei, recorded_at }) => `${imei} ${recorded_at}`),
    );
    const stored = (await storedPoints(sql)).map(({ imei, recordedAtMs }) => `${imei} ${recordedAtMs}`);
    assert.equal(new Set(stored).size, stored.length, 'no point is stored twice');
    assert.deepEqual(
      stored.filter((point) => !sent.has(point)),
      [],
    );
    const kept = new Set(stored);
    const lost = acknowledged.filter(({ imei, recorded_at }) => !kept.has(`${imei} ${recorded_at}`));
    assert.ok(lost.length > 0, 'the drill loses something');
    t.diagnostic(`${lost.length} of ${acknowledged.length} acknowledged points are lost`);

    const since = (await eventsSince(sql, 0)).at(-1) ?? 0;
    const later = new Senders(t, drill, Date.now() - DAY_MS);
    await later.more(SENT_BETWEEN);
    await later.stop();
    await drained(sql, STUCK_MS);
    await proveFollowed(drill, since, await eventsSince(sql, since));
    proveIds(drill);
    const states = await sql<{ imei: string; latitude: number }[]>`
      select d.imei, s.latitude from device d join device_state s on s.device_id = d.id where s.recorded_at is not null`;
    for (const api of pods.apis) {
      for (const { imei, latitude } of states) {
        const { body } = await bareRequest(`${api}/api/v3/devices/${imei}/location`, {
          headers: { 'X-API-Key': key },
        });
        assert.equal((body as { data: { latitude: number } }).data.latitude, latitude, `${imei} on ${api}`);
      }
    }
  });
});

/** Waits until another node takes writes. */
function promotion(nodes: PatroniNodes, node: string): Promise<void> {
  return waitFor(async () => ![null, node].includes(await nodes.primary()));
}
