import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import type { Sql } from '../../src/postgres/sql.ts';
import { patienceMs } from '../support/patience.ts';
import { type OwnPostgres, startOwnPostgres } from '../support/postgres/ownPostgres.ts';
import { findRedisServer, startRedis, type TestRedis } from '../support/redis.ts';
import { seededRandom } from '../support/seededRandom.ts';
import { type ServiceProcess, startProcess } from '../support/service.ts';
import { IS_TORTURE } from '../support/torture.ts';
import { waitFor } from '../support/waitFor.ts';
import { LEASE_SECONDS } from '../support/webhooks/deliveryDatabase.ts';
import { drained, proveAudit, proveDeliveries } from '../support/webhooks/deliveryProof.ts';
import type { Behaviour } from '../support/webhooks/receiver.ts';
import {
  deliveringEnv,
  endLeases,
  eventIdsOf,
  startAuditedOwner,
  startLast,
} from '../support/webhooks/webhookProcesses.ts';
import { EventSource, endpointBody, sendForSure } from '../support/webhooks/webhooks.ts';

const HARMS = IS_TORTURE ? 40 : 3;
const SEED = Number(process.env['FLEET_SEED'] ?? (IS_TORTURE ? Date.now() % 1_000_000 : 1));
const IMEIS = ['350000000000001', '350000000000002'];
const ENDPOINTS = [
  { path: '/patient', retry_policy: 'exponential', max_retries: 10, budget: 10 },
  { path: '/fixed', retry_policy: 'fixed', max_retries: 3, budget: 3 },
  { path: '/once', retry_policy: 'none', max_retries: 5, budget: 1 },
] as const;
const EVENTS_BETWEEN_HARMS = IS_TORTURE ? 15 : 8;
/** Longer than a lease, a sweep and a request that hangs together. */
const STUCK_MS = 90_000;

/**
 * What can be done to the service, drawn by number in the long form; in the short one, each of the first few, and a kill
 * of everything. Only in the long one a process sleeps past its lease: with
 * a lease cut short, what it had begun to send would rightly go out after it wakes.
 */
const HARM_NAMES = [
  'redis away',
  'cut',
  'kill postgres',
  'restart postgres',
  'kill',
  'restart redis',
  'flush',
  'kill',
  'sleep',
] as const;
/** Past the lease, and until others have found the endpoints. */
const SLEEP_MS = (LEASE_SECONDS + 3) * 1_000;
const REDIS_AWAY_MS = IS_TORTURE ? 60_000 : 1_000;

class Setup {
  readonly sql: Sql;
  readonly postgres: OwnPostgres;
  readonly redis: TestRedis | null;
  readonly #start: () => ServiceProcess;
  readonly #services: { process: ServiceProcess | null; ingest: string }[] = [];

  constructor(sql: Sql, postgres: OwnPostgres, redis: TestRedis | null, start: () => ServiceProcess) {
    this.sql = sql;
    this.postgres = postgres;
    this.redis = redis;
    this.#start = start;
  }

  /** Another one takes points that is not killed. */
  async growBy(last: Pick<ServiceProcess, 'listening'>): Promise<void> {
    this.#services.push({ process: null, ingest: (await last.listening).ingest });
  }

  async grow(): Promise<void> {
    const process = this.#start();
    const { ingest } = await process.listening;
    this.#services.push({ process, ingest });
  }

  /** Kills all of them at once. Nobody is left to write under their leases, so others need not wait for the end of these. */
  async killAll(): Promise<void> {
    const killed = this.#services.splice(0);
    for (const { process } of killed) process?.child.kill('SIGKILL');
    await Promise.all(killed.map(({ process }) => process?.ended));
    await endLeases(this.sql);
  }

  ingest(n: number): string {
    return this.#services[n % this.#services.length]?.ingest ?? '';
  }

  async harm(name: (typeof HARM_NAMES)[number], random: () => number): Promise<void> {
    await sleep(random() * 30);
    switch (name) {
      case 'kill': {
        const victim = this.#services.splice(Math.floor(random() * this.#services.length), 1)[0];
        victim?.process?.child.kill('SIGKILL');
        await victim?.process?.ended;
        await this.grow();
        return;
      }
      case 'cut':
        await this.sql`
          select pg_terminate_backend(pid) from pg_stat_activity
          where datname = current_database() and application_name like 'fleet %' and random() < 0.5`;
        return;
      case 'sleep': {
        const [victim] = this.#services;
        victim?.process?.child.kill('SIGSTOP');
        await sleep(SLEEP_MS);
        victim?.process?.child.kill('SIGCONT');
        return;
      }
      case 'restart postgres':
        await this.postgres.stop();
        await sleep(random() * 500);
        await this.postgres.start();
        return;
      case 'kill postgres':
        await this.postgres.kill();
        await this.postgres.start();
        return;
      case 'redis away':
        await this.redis?.stop();
        await sleep(REDIS_AWAY_MS);
        await this.redis?.restart();
        return;
      case 'flush': {
        if (this.redis === null) return;
        const client = new Redis(this.redis.url);
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

describe('the service is killed while it delivers', () => {
  test(`${HARMS} harms: every event is delivered or a dead letter, one at a time, under rising numbers (seed ${SEED})`, async (t: TestContext) => {
    const postgres = await startOwnPostgres(t);
    const { url } = postgres;
    const redis = findRedisServer() === null ? null : await startRedis(t);
    const random = seededRandom(SEED);
    const { sql, api, receiver } = await startAuditedOwner(t, url, IMEIS, redis?.url);
    receiver.behave(moods(random));
    for (const { path, budget: _, ...rule } of ENDPOINTS)
      await api.make(endpointBody(receiver.url + path, rule));
    const env = await deliveringEnv(t, url, 2, redis === null ? {} : { REDIS_URL: redis.url });
    const setup = new Setup(sql, postgres, redis, () => startProcess(t, env));
    for (let n = 0; n < 2; n++) await setup.grow();

    let isOver = false;
    const sent = [0, 0];
    let allowed = 0;
    const total = (): number => sent.reduce((sum, count) => sum + count, 0);
    const senders = IMEIS.map(async (imei, n) => {
      const source = new EventSource(imei, Date.now() - 86_400_000);
      for (let batch = 0; !isOver; batch++) {
        const points = [source.point(), source.point()];
        await sendForSure(() => setup.ingest(batch + n), points);
        sent[n] = (sent[n] ?? 0) + points.length;
        await sleep(20);
        // What one endpoint can be sent in the time between: the backlog must end some day.
        while (!isOver && total() >= allowed) await sleep(20);
      }
    });
    for (let harm = 0; harm < HARMS; harm++) {
      const wanted = total() + EVENTS_BETWEEN_HARMS;
      allowed = wanted + EVENTS_BETWEEN_HARMS;
      await waitFor(() => total() >= wanted);
      const name = HARM_NAMES[IS_TORTURE ? Math.floor(random() * HARM_NAMES.length) : harm];
      await setup.harm(name ?? 'kill', random);
    }
    if (!IS_TORTURE) {
      await setup.killAll();
      await setup.growBy(startLast(t, env));
    }
    isOver = true;
    await Promise.all(senders);
    await drained(sql, patienceMs(STUCK_MS));
    const ids = await eventIdsOf(sql);
    assert.equal(ids.length, total(), 'every point was one event');
    await proveDeliveries(sql, receiver, ENDPOINTS, ids);
    await proveAudit(sql);
  });
});
