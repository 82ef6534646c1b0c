import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { findFreePort } from '../support/ports.ts';
import { adminOf } from '../support/postgres/admin.ts';
import { createDatabase } from '../support/postgres/postgres.ts';
import { skipWithoutRedis, startRedis } from '../support/redis.ts';
import { type ServiceProcess, serviceEnv, startProcess } from '../support/service.ts';
import { waitFor } from '../support/waitFor.ts';
import { type Nginx, type NginxCall, skipWithoutNginx, startNginx } from './nginxServer.ts';

// Restarts of pods behind the nginx of the guide, one after the other, while clients go on.

const OWNER = 'owner@example.com';
const IMEI = '350000000000001';
const POLLERS = 6;
const POSTERS = 4;
const RESTARTS = 2;
/** Between the calls of one client: the processor belongs to the pods that start. */
const PAUSE_MS = 5;
/** Answers that must have come before and after each step. */
const CALLS_BETWEEN = 40;
/** A site that is down fails as fast as it is called: the first failures are enough. */
const FAILURES_KEPT = 10;
const AREA = { name: 'Gate', type: 'point', center: { lat: 41.9, lng: 12.5 } };

/** Clients that call again soon after they are answered, until they are told to end. */
class Load {
  readonly failures: string[] = [];
  readonly #nginx: Nginx;
  readonly #key: string;
  readonly #running: Promise<void>[] = [];
  #isOver = false;
  #answered = 0;

  constructor(t: TestContext, nginx: Nginx, key: string) {
    this.#nginx = nginx;
    this.#key = key;
    t.after(() => this.end());
  }

  /** Each `next` names the path and the call that comes next. */
  start(clients: number, next: (client: number, n: number) => [path: string, call: NginxCall]): void {
    for (let client = 0; client < clients; client++) this.#running.push(this.#client(client, next));
  }

  /** Returns when this many calls have been answered since. */
  async pass(calls: number): Promise<void> {
    const goal = this.#answered + calls;
    await waitFor(() => this.#answered >= goal);
  }

  async end(): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#running);
  }

  async #client(client: number, next: (client: number, n: number) => [string, NginxCall]): Promise<void> {
    for (let n = 0; !this.#isOver; n++) {
      const [path, call] = next(client, n);
      const outcome = await this.#nginx.call(path, { ...call, key: this.#key }).then(
        ({ status, text }) => (status < 300 ? null : `${status} ${text}`),
        (error: Error) => error.message,
      );
      this.#answered++;
      if (outcome !== null && this.failures.length < FAILURES_KEPT)
        this.failures.push(`${call.method ?? 'GET'} ${path}: ${outcome}`);
      await sleep(PAUSE_MS);
    }
  }
}

const POLLS = [
  `/api/v3/devices/nearest?lat=41.9&lng=12.5`,
  `/api/v2/devices/${IMEI}/location`,
  '/api/v3/devices',
  `/api/v3/devices/${IMEI}/history`,
  '/api/v3/areas',
];

async function startSetup(t: TestContext) {
  const { url } = await createDatabase(t);
  const redis = await startRedis(t);
  const admin = adminOf(url, redis.url);
  await admin.account(OWNER);
  await admin.device(OWNER, IMEI);
  const { key } = await admin.key(OWNER);
  const ports = [await findFreePort(), await findFreePort()] as const;
  const startPod = async (n: 0 | 1): Promise<ServiceProcess> => {
    const env = {
      ...serviceEnv(url),
      REDIS_URL: redis.url,
      TRUST_PROXY: '127.0.0.1',
      PORT: String(ports[n]),
    };
    const pod = startProcess(t, env);
    await pod.listening;
    return pod;
  };
  const pods = [await startPod(0), await startPod(1)];
  const { ingest } = await (pods[0] as ServiceProcess).listening;
  await fetch(`${ingest}/positions`, {
    method: 'POST',
    headers: { 'X-Ingest-Token': serviceEnv(url)['INGEST_TOKEN'] ?? '', 'Content-Type': 'application/json' },
    body: JSON.stringify({ imei: IMEI, recorded_at: Date.now(), latitude: 41.9, longitude: 12.5 }),
  });
  const nginx = await startNginx(t, { api: ports, ingest: Number(new URL(ingest).port) });
  return { nginx, key, pods, startPod };
}

describe('a pod restarted behind nginx', {
  skip: skipWithoutNginx() || skipWithoutRedis(),
}, () => {
  test('costs no GET and no PUT an answer, and its end no POST either', async (t) => {
    const { nginx, key, pods, startPod } = await startSetup(t);
    const load = new Load(t, nginx, key);
    load.start(POLLERS, (client, n) => [POLLS[(client + n) % POLLS.length] as string, {}]);
    load.start(1, (_, n) => [
      `/api/v3/areas/by-external-id/gate-${n % 5}`,
      { method: 'PUT', body: { ...AREA, radius_m: 50 + (n % 50) } },
    ]);
    for (let restart = 0; restart < RESTARTS; restart++) {
      const n = (restart % 2) as 0 | 1;
      // What is not idempotent goes to a pod that ends, too; only one that starts may refuse it (503).
      const posts = new Load(t, nginx, key);
      posts.start(POSTERS, () => ['/api/v3/areas', { method: 'POST', body: AREA }]);
      await posts.pass(CALLS_BETWEEN);
      (pods[n] as ServiceProcess).child.kill('SIGTERM');
      assert.deepEqual(await (pods[n] as ServiceProcess).ended, { code: 0, signal: null });
      await posts.pass(CALLS_BETWEEN);
      await posts.end();
      assert.deepEqual(posts.failures, []);
      pods[n] = await startPod(n);
      await load.pass(CALLS_BETWEEN);
    }
    await load.end();
    assert.deepEqual(load.failures, []);
  });
});
