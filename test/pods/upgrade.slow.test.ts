import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { openSql, type Sql } from '../../src/postgres/sql.ts';
import { type Balancer, startBalancer } from '../support/balancer.ts';
import { childEnv } from '../support/childEnv.ts';
import { imeiOf } from '../support/devices.ts';
import { bareRequest, INGEST_TOKEN } from '../support/pod.ts';
import { createDatabase } from '../support/postgres/postgres.ts';
import { findRedisServer, startRedis } from '../support/redis.ts';
import { installVersion, releaseBefore } from '../support/release.ts';
import { PROJECT, type ServiceProcess, startProcess } from '../support/service.ts';
import { IS_TORTURE } from '../support/torture.ts';
import { waitFor } from '../support/waitFor.ts';
import { drained } from '../support/webhooks/deliveryProof.ts';
import { type Receiver, startReceiver } from '../support/webhooks/receiver.ts';
import { deliveringEnv } from '../support/webhooks/webhookProcesses.ts';
import { endpointBody, webhookApi } from '../support/webhooks/webhooks.ts';

const run = promisify(execFile);
const OWNER = 'owner@example.com';
/** Each sends a batch of a point of each of its devices once a second, as an integrator does, and polls. */
const SENDERS = 10;
const DEVICES = 100;
const SECOND_MS = 1_000;
const POLLS_EVERY_MS = 100;
const IMEIS = Array.from({ length: SENDERS * DEVICES }, (_, n) => imeiOf(n));
/** Between two replacements of a pod. */
const SENT_BETWEEN = 10_000;
const STUCK_MS = 90_000;

const before = IS_TORTURE ? await releaseBefore() : null;

/** An account with its devices, made by the commands of that version; returns its key. */
async function setUp(folder: string, database: Readonly<Record<string, string>>): Promise<string> {
  const fleet = async (...args: string[]): Promise<Record<string, unknown>> => {
    const command = ['--import', './src/node24.mjs', 'src/cli/fleet.ts', ...args];
    const { stdout } = await run(process.execPath, command, { cwd: folder, env: childEnv(database) });
    return JSON.parse(stdout) as Record<string, unknown>;
  };
  const file = join(folder, 'devices.ndjson');
  await writeFile(file, IMEIS.map((imei) => JSON.stringify({ imei })).join('\n'));
  await fleet('account:create', '--email', OWNER, '--name', 'Owner');
  await fleet('device:import', '--email', OWNER, file);
  return String((await fleet('key:create', '--email', OWNER, '--scopes', 'all'))['key']);
}

/** Calls at a steady rate until it is stopped. A call that is not answered with 2xx has failed; it is not repeated. */
class Load {
  readonly acknowledged: string[] = [];
  readonly failures: string[] = [];
  readonly tookMs: number[] = [];
  readonly #startMs = performance.now();
  readonly #ends: Promise<unknown>;
  #isOver = false;

  constructor(site: { api: string; ingest: string }, key: string) {
    const startMs = Date.now();
    const poll = { headers: { 'X-API-Key': key } };
    const senders = Array.from({ length: SENDERS }, (_, n) => {
      const imeis = IMEIS.slice(n * DEVICES, (n + 1) * DEVICES);
      return [
        this.#repeat(
          SECOND_MS,
          async (tick) => {
            const points = imeis.map((imei) => pointOf(imei, tick, startMs));
            const headers = { 'X-Ingest-Token': INGEST_TOKEN };
            const isAnswered = await this.#call(`${site.ingest}/positions`, {
              method: 'POST',
              headers,
              body: JSON.stringify(points),
            });
            if (isAnswered)
              this.acknowledged.push(...points.map(({ imei, recorded_at }) => `${imei} ${recorded_at}`));
          },
          false,
        ),
        this.#repeat(
          POLLS_EVERY_MS,
          (tick) =>
            this.#call(
              `${site.api}/api/v3/devices/${tick % 2 === 0 ? imeis[tick % DEVICES] : 'nearest?lat=1&lng=1'}`,
              poll,
            ),
          true,
        ),
      ];
    });
    this.#ends = Promise.all(senders.flat());
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    await this.#ends;
  }

  /** Acknowledged points a second. */
  get rate(): number {
    return (this.acknowledged.length * SECOND_MS) / (performance.now() - this.#startMs);
  }

  /** Makes a call every so often. Polls of one caller follow each other; points are sent whether the last are answered or not. */
  async #repeat(everyMs: number, call: (tick: number) => Promise<unknown>, waits: boolean): Promise<void> {
    const calls: Promise<unknown>[] = [];
    const startMs = performance.now();
    for (let tick = 0; !this.#isOver; tick++) {
      calls.push(call(tick));
      if (waits) await calls.at(-1);
      await sleep(Math.max(0, startMs + (tick + 1) * everyMs - performance.now()));
    }
    await Promise.all(calls);
  }

  async #call(url: string, init: RequestInit): Promise<boolean> {
    const startMs = performance.now();
    try {
      const { status, text } = await bareRequest(url, init);
      this.tookMs.push(performance.now() - startMs);
      if (status < 300) return true;
      this.failures.push(`${url}: ${status} ${text}`);
    } catch (error) {
      this.failures.push(`${url}: ${(error as Error).cause ?? error}`);
    }
    return false;
  }
}

/** Every fiftieth point of a device makes an event: an endpoint is sent one at a time. */
function pointOf(imei: string, tick: number, startMs: number) {
  const rfid = (Number(imei.slice(-2)) + tick) % 50 === 0 ? { rfid: `T${tick}` } : {};
  return {
    imei,
    recorded_at: startMs + tick * SECOND_MS,
    latitude: 1 + tick / 10_000,
    longitude: 1,
    speed_kmh: 40,
    ...rfid,
  };
}

async function proveStored(sql: Sql, { acknowledged }: Load): Promise<number> {
  const rows = await sql<{ point: string }[]>`
    select d.imei || ' ' || round(extract(epoch from p.recorded_at) * 1000) as point
    from position p join device d on d.id = p.device_id`;
  const stored = rows.map(({ point }) => point);
  assert.equal(new Set(stored).size, stored.length, 'none is stored twice');
  assert.deepEqual(stored.toSorted(), acknowledged.toSorted(), 'stored is what was acknowledged');
  return stored.length;
}

async function proveDelivered(sql: Sql, receiver: Receiver, path: string): Promise<number> {
  const events = await sql<{ id: number }[]>`select id from fleet_event order by id`;
  const received = receiver.to(path).map(({ headers, body }) => ({
    id: headers['webhook-id'],
    event: JSON.parse(body).data.fleet_event_id as number,
  }));
  assert.equal(new Set(events.map(({ id }) => id)).size, events.length);
  assert.equal(new Set(received.map(({ id }) => id)).size, received.length, 'none comes twice');
  const ids = received.map(({ event }) => event).sort((a, b) => a - b);
  assert.deepEqual(
    ids,
    events.map(({ id }) => id),
    'one of each event',
  );
  return ids.length;
}

test(`pods of ${before ?? 'the version before'} are replaced by this version one by one, and nobody notices`, {
  skip: skipReason(),
}, async (t) => {
  const folder = await installVersion((end) => t.after(end), before as string);
  const { url } = await createDatabase(t, { empty: true });
  const redis = await startRedis(t);
  const env = await deliveringEnv(t, url, 1_000, { ROLES: 'api,ingest,delivery', REDIS_URL: redis.url });
  const balancers = { api: await startBalancer(t), ingest: await startBalancer(t, true) };
  const site = { api: balancers.api.url, ingest: balancers.ingest.url };
  const start = async (project: string): Promise<ServiceProcess> => {
    const process = startProcess(t, env, project);
    const addresses = await process.listening;
    const readyBefore = balancers.api.ready;
    for (const name of ['api', 'ingest'] as const) balancers[name].add(addresses[name]);
    const areReady = ({ ready }: Balancer): boolean => ready > readyBefore;
    await waitFor(() => areReady(balancers.api) && areReady(balancers.ingest));
    return process;
  };
  const old = [await start(folder), await start(folder)];
  const key = await setUp(folder, { DATABASE_URL: url, REDIS_URL: redis.url });
  const receiver = await startReceiver(t);
  await webhookApi(site.api, key).make(endpointBody(`${receiver.url}/hook`));
  const sql = openSql(url, { maxConnections: 1, name: 'test' });
  t.after(() => sql.end());

  const load = new Load(site, key);
  const sendMore = async (): Promise<void> => {
    const wanted = load.acknowledged.length + SENT_BETWEEN;
    await waitFor(() => load.acknowledged.length >= wanted || load.failures.length > 0);
  };
  await sendMore();
  for (const process of old) {
    process.child.kill('SIGTERM');
    assert.equal((await process.ended).code, 0, process.lines.join('\n'));
    await start(PROJECT);
    await sendMore();
  }
  await load.stop();
  const rate = Math.round(load.rate);
  assert.deepEqual(load.failures, []);
  await drained(sql, STUCK_MS);
  const points = await proveStored(sql, load);
  const delivered = await proveDelivered(sql, receiver, '/hook');
  const slowest = load.tookMs.sort((a, b) => a - b);
  t.diagnostic(
    `${load.tookMs.length} calls, p99 ${Math.round(slowest[Math.floor(slowest.length * 0.99)] ?? 0)} ms, ` +
      `the slowest ${Math.round(slowest.at(-1) ?? 0)} ms; ${points} points, ${rate} a second; ${delivered} webhooks`,
  );
});

function skipReason(): string | false {
  if (!IS_TORTURE) return 'it runs with npm run torture -- upgrade';
  if (findRedisServer() === null) return 'there is no redis-server on this machine';
  return before === null && 'there is no release before this one; FLEET_UPGRADE_FROM may name a git ref';
}
