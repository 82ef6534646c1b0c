import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { LEASE_SECONDS } from '../../src/store/lanes.ts';
import { openSql, type Sql } from '../../src/store/sql.ts';
import { adminOf } from '../support/admin.ts';
import { startPod } from '../support/pod.ts';
import { createDatabase } from '../support/postgres.ts';
import { type Behaviour, type Receiver, startReceiver, trustedCertificate } from '../support/receiver.ts';
import { findRedisServer, startRedis, type TestRedis } from '../support/redis.ts';
import { seededRandom } from '../support/seededRandom.ts';
import { type ServiceProcess, serviceEnv, startProcess } from '../support/service.ts';
import { waitFor } from '../support/waitFor.ts';
import { EventSource, endpointBody, sendForSure, webhookApi, webhookEnv } from '../support/webhooks.ts';

const IS_TORTURE = process.env['FLEET_TORTURE'] === '1';
const HARMS = IS_TORTURE ? 40 : 4;
const SEED = Number(process.env['FLEET_SEED'] ?? (IS_TORTURE ? Date.now() % 1_000_000 : 1));
const OWNER = 'owner@example.com';
const IMEIS = ['350000000000001', '350000000000002'];
const ENDPOINTS = [
  { path: '/patient', retry_policy: 'exponential', max_retries: 10, budget: 10 },
  { path: '/fixed', retry_policy: 'fixed', max_retries: 3, budget: 3 },
  { path: '/once', retry_policy: 'none', max_retries: 5, budget: 1 },
] as const;
const EVENTS_BETWEEN_HARMS = 15;
/** Longer than a lease, a sweep and a request that hangs together. */
const STUCK_MS = 90_000;

/** What can be done to the service, drawn by number. */
const HARM_NAMES = IS_TORTURE
  ? (['kill', 'kill', 'kill', 'cut', 'flush', 'restart redis', 'sleep'] as const)
  : (['kill', 'kill', 'cut', 'kill'] as const);

class Stage {
  readonly sql: Sql;
  readonly redis: TestRedis | null;
  readonly #start: () => ServiceProcess;
  readonly #services: { process: ServiceProcess; ingest: string }[] = [];

  constructor(sql: Sql, redis: TestRedis | null, start: () => ServiceProcess) {
    this.sql = sql;
    this.redis = redis;
    this.#start = start;
  }

  async grow(): Promise<void> {
    const process = this.#start();
    const { ingest } = await process.listening;
    this.#services.push({ process, ingest });
  }

  ingest(n: number): string {
    return this.#services[n % this.#services.length]?.ingest ?? '';
  }

  async harm(name: (typeof HARM_NAMES)[number], random: () => number): Promise<void> {
    await sleep(random() * 30);
    switch (name) {
      case 'kill': {
        const victim = this.#services.splice(Math.floor(random() * this.#services.length), 1)[0];
        victim?.process.child.kill('SIGKILL');
        await victim?.process.ended;
        // Its leases end at once rather than in half a minute: nobody is left to write under them.
        if (this.#services.length === 0) {
          await this.sql`update webhook set leased_until = clock_timestamp() where leased_until is not null`;
        }
        await this.grow();
        return;
      }
      case 'cut':
        await this.sql`
          select pg_terminate_backend(pid) from pg_stat_activity
          where datname = current_database() and application_name = 'fleet service' and random() < 0.5`;
        return;
      case 'sleep': {
        const [victim] = this.#services;
        victim?.process.child.kill('SIGSTOP');
        await sleep((LEASE_SECONDS + 3) * 1_000);
        victim?.process.child.kill('SIGCONT');
        return;
      }
      case 'flush': {
        const client = new Redis(this.redis?.url ?? '');
        await client.flushall();
        client.disconnect();
        return;
      }
      case 'restart redis':
        await this.redis?.restart();
    }
  }
}

/** Most answers are fine, some are not. */
function moods(random: () => number): () => Behaviour {
  return () => {
    const draw = random();
    if (draw < 0.6) return 200;
    if (draw < 0.75) return { status: 200, after: sleep(20) };
    if (draw < 0.9) return 503;
    if (draw < 0.98 || !IS_TORTURE) return 'reset';
    if (draw < 0.998) return 'endless';
    return draw < 0.999 ? 'drip' : 'hang';
  };
}

describe('the service is killed while it delivers', { timeout: IS_TORTURE ? 1_200_000 : 60_000 }, () => {
  test(`${HARMS} harms: every event is delivered or a dead letter, one at a time, under rising numbers (seed ${SEED})`, async (t: TestContext) => {
    const { url } = await createDatabase(t);
    const redis = IS_TORTURE && findRedisServer() !== null ? await startRedis(t) : null;
    const folder = await mkdtemp(join(tmpdir(), 'fleet-webhooks-'));
    t.after(() => rm(folder, { recursive: true }));
    const pemFile = join(folder, 'receiver.pem');
    await writeFile(pemFile, trustedCertificate().certificatePem);
    const admin = adminOf(url, redis?.url);
    await admin.account(OWNER);
    for (const imei of IMEIS) await admin.device(OWNER, imei);
    const random = seededRandom(SEED);
    const receiver = await startReceiver(t);
    receiver.behave(moods(random));
    const manager = await startPod(url, {
      t,
      env: webhookEnv(2, { ROLES: 'api', ...(redis && { REDIS_URL: redis.url }) }),
    });
    const api = webhookApi(manager.api, (await admin.key(OWNER)).key);
    for (const { path, budget: _, ...rule } of ENDPOINTS)
      await api.make(endpointBody(receiver.url + path, rule));

    const sql = openSql(url, { maxConnections: 2, name: 'test' });
    t.after(() => sql.end());
    const env = {
      ...serviceEnv(url),
      WEBHOOK_ALLOW_NETS: '127.0.0.0/8',
      WEBHOOK_MINUTE_MS: '2',
      NODE_EXTRA_CA_CERTS: pemFile,
      ROLES: 'ingest,delivery',
      ...(redis && { REDIS_URL: redis.url }),
    };
    const stage = new Stage(sql, redis, () => startProcess(t, env));
    for (let n = 0; n < (IS_TORTURE ? 2 : 1); n++) await stage.grow();

    let isOver = false;
    const sent = [0, 0];
    let allowed = 0;
    const total = (): number => sent.reduce((sum, count) => sum + count, 0);
    const senders = IMEIS.map(async (imei, n) => {
      const source = new EventSource(imei, Date.now() - 86_400_000);
      for (let batch = 0; !isOver; batch++) {
        const points = [source.point(), source.point()];
        await sendForSure(() => stage.ingest(batch + n), points);
        sent[n] = (sent[n] ?? 0) + points.length;
        await sleep(20);
        // What one lane can send in the time between: the backlog must end some day.
        while (!isOver && total() >= allowed) await sleep(20);
      }
    });
    for (let harm = 0; harm < HARMS; harm++) {
      const wanted = total() + EVENTS_BETWEEN_HARMS;
      allowed = wanted + EVENTS_BETWEEN_HARMS;
      await waitFor(() => total() >= wanted);
      const name = IS_TORTURE ? HARM_NAMES[Math.floor(random() * HARM_NAMES.length)] : HARM_NAMES[harm];
      await stage.harm(name ?? 'kill', random);
    }
    isOver = true;
    await Promise.all(senders);
    await drained(sql);
    await proveDeliveries(sql, receiver, total());
  });
});

/** Waits until nothing is open any more, for as long as it gets less. */
async function drained(sql: Sql): Promise<void> {
  let fewest = Number.POSITIVE_INFINITY;
  for (let sinceMs = Date.now(); fewest > 0; await sleep(50)) {
    const [row] = await sql<{ open: number }[]>`
      select count(*)::int as open from webhook_delivery where status not in ('delivered', 'exhausted')`;
    const open = row?.open ?? 0;
    if (open < fewest) sinceMs = Date.now();
    fewest = Math.min(fewest, open);
    assert.ok(Date.now() - sinceMs < STUCK_MS, `${open} deliveries are stuck`);
  }
}

interface StoredDelivery {
  readonly id: string;
  readonly url: string;
  readonly body: string;
  readonly status: string;
  readonly attempts: number;
  readonly spent: number;
  readonly last_status_code: number | null;
}

async function proveDeliveries(sql: Sql, receiver: Receiver, sent: number): Promise<void> {
  const events = await sql<{ id: number }[]>`select id from fleet_event order by id`;
  assert.equal(events.length, sent, 'every point was one event');
  for (const { path, budget } of ENDPOINTS) {
    const deliveries = await sql<StoredDelivery[]>`
      select d.*, w.url from webhook_delivery d join webhook w on w.id = d.webhook_id
      where w.url like ${`%${path}`} order by (d.body::jsonb->'data'->>'fleet_event_id')::bigint`;
    const eventIds = deliveries.map(({ body }) => JSON.parse(body).data.fleet_event_id);
    assert.deepEqual(
      eventIds,
      events.map(({ id }) => id),
      `${path} has one delivery of each event`,
    );
    assert.equal(receiver.maxInFlight(path), 1, `${path} is never asked twice at once`);
    const received = Map.groupBy(receiver.to(path), ({ headers }) => headers['x-service-delivery-id'] ?? '');
    for (const delivery of deliveries) {
      const requests = received.get(delivery.id) ?? [];
      const numbers = requests.map(({ headers }) => Number(headers['x-service-delivery-attempt']));
      assert.deepEqual(
        numbers,
        [...new Set(numbers)].sort((a, b) => a - b),
        'numbers rise',
      );
      assert.ok(numbers.every((number) => number >= 1 && number <= delivery.attempts));
      assert.ok(
        requests.every(({ body }) => body === delivery.body),
        'the bytes stay',
      );
      assert.equal(delivery.spent, delivery.attempts);
      if (delivery.status === 'delivered') {
        assert.equal(delivery.last_status_code, 200);
        assert.equal(numbers.at(-1), delivery.attempts, 'it was the last attempt that arrived');
      } else {
        assert.equal(delivery.attempts, budget, 'a dead letter has used up its budget');
      }
      assert.ok(delivery.attempts <= budget);
    }
  }
}
