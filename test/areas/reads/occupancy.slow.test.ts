import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { openSql, type Sql } from '../../../src/postgres/sql.ts';
import { castEdits, MAILS, RoadEdits, type RoadStay } from '../../support/ingest/roadEdits.ts';
import { patienceMs } from '../../support/patience.ts';
import { type PodAddress, podAt, startPod } from '../../support/pod.ts';
import { adminOf } from '../../support/postgres/admin.ts';
import { createDatabase } from '../../support/postgres/postgres.ts';
import { skipWithoutRedis, startRedis } from '../../support/redis.ts';
import { seededRandom } from '../../support/seededRandom.ts';
import { type ServiceProcess, serviceEnv, startProcess } from '../../support/service.ts';
import { IS_TORTURE } from '../../support/torture.ts';

const KILLS = IS_TORTURE ? 200 : 1;
const SEED = Number(process.env['FLEET_SEED'] ?? (IS_TORTURE ? Date.now() % 1_000_000 : 1));
const PODS = 2;
const DEVICES_OF_EACH = 3;
const AREAS = 16;
const DEVICES = 4 * DEVICES_OF_EACH;
/** Pods may be busy with their start; what is promised is measured and asserted by the long form. */
const DEADLINE_MS = 15_000;
const PROMISED_MS = 1_000;

interface RunningPod {
  /** Null: it runs in the process of the test. */
  readonly service: ServiceProcess | null;
  readonly pod: PodAddress;
}

/** Pods, of which one is killed at a time. */
class KilledPods {
  readonly #t: TestContext;
  readonly #env: Readonly<Record<string, string>>;
  readonly #running: RunningPod[] = [];

  constructor(t: TestContext, env: Readonly<Record<string, string>>) {
    this.#t = t;
    this.#env = env;
  }

  get running(): readonly PodAddress[] {
    return this.#running.map(({ pod }) => pod);
  }

  /** In the short form only the first has a process of its own, to be killed. */
  async start(hasProcess = IS_TORTURE): Promise<void> {
    if (!hasProcess) {
      const pod = await startPod(this.#env['DATABASE_URL'] ?? '', { t: this.#t, env: this.#env });
      this.#running.push({ service: null, pod });
      return;
    }
    const service = startProcess(this.#t, this.#env);
    this.#running.push({ service, pod: podAt(await service.listening) });
  }

  async kill(n: number): Promise<void> {
    const [{ service }] = this.#running.splice(n, 1) as [RunningPod];
    assert.ok(service !== null);
    service.child.kill('SIGKILL');
    await service.ended;
  }
}

type View = ReturnType<RoadEdits['occupancy']>[number];

/** What a pod lists for a view. */
async function listed(pod: PodAddress, key: string, areaId: number): Promise<RoadStay[] | string> {
  const { status, body, text } = await pod.get(`/api/v3/areas/${areaId}/devices?limit=200`, key);
  if (status !== 200) return `${status} ${text}`;
  return body.data.map((item: { device: { imei: string }; since: string; entered_at: string | null }) => ({
    imei: item.device.imei,
    sinceMs: Date.parse(item.since),
    enteredMs: item.entered_at === null ? null : Date.parse(item.entered_at),
  }));
}

/** What the states of the devices in Postgres say for each view. */
async function stored(sql: Sql, views: readonly View[]): Promise<View[]> {
  const rows = await sql<{ imei: string; worldId: number; stays: string }[]>`
    select d.imei, d.world_id as "worldId", s.stays from device d join device_state s on s.device_id = d.id`;
  const accounts = await sql<{ email: string; worldIds: number[] }[]>`
    select a.email, array_remove(array[a.world_id, o.world_id], null) as "worldIds"
    from account a left join organization o on o.id = a.organization_id`;
  const worldsOf = new Map(accounts.map(({ email, worldIds }) => [email, worldIds]));
  return views.map(({ viewer, areaId }) => ({
    viewer,
    areaId,
    stays: rows
      .filter(({ worldId }) =>
        worldsOf
          .get(MAILS.get(viewer) ?? '')
          ?.map(Number)
          .includes(worldId),
      )
      .flatMap(({ imei, stays }) =>
        (JSON.parse(stays) as [number, number, number | null][])
          .filter(([id]) => id === areaId)
          .map(([, sinceMs, enteredMs]) => ({ imei, sinceMs, enteredMs })),
      )
      .sort((a, b) => a.sinceMs - b.sinceMs || (a.imei < b.imei ? -1 : 1)),
  }));
}

describe('the devices in areas while pods are killed, Redis is emptied and everything is edited', {
  skip: skipWithoutRedis(),
}, () => {
  test(`after each kill every pod lists the stays of Postgres and of a naive replay (seed ${SEED})`, async (t) => {
    const { url } = await createDatabase(t);
    const redis = await startRedis(t);
    const admin = adminOf(url, redis.url);
    const keys = await castEdits(admin, DEVICES_OF_EACH);
    const random = seededRandom(SEED);
    const pods = new KilledPods(t, { ...serviceEnv(url), REDIS_URL: redis.url });
    await pods.start(true);
    for (let n = 1; n < PODS; n++) await pods.start();
    const edits = new RoadEdits(() => pods.running, keys, admin, random, DEVICES_OF_EACH);
    const sql = openSql(url, { maxConnections: 1, name: 'test' });
    t.after(() => sql.end());
    const client = new Redis(redis.url);
    t.after(() => client.disconnect());

    let slowestMs = 0;
    let stays = 0;
    let pending = 0;
    /** Every pod lists what it must, sooner or later. */
    const prove = async (sinceMs: number): Promise<void> => {
      const expected = edits.occupancy();
      assert.deepEqual(await stored(sql, expected), expected, 'the stays in Postgres');
      for (const pod of pods.running) {
        let wrong: View[] = [...expected];
        for (;;) {
          const seen = await Promise.all(
            wrong.map(async ({ viewer, areaId }) => ({
              viewer,
              areaId,
              stays: await listed(pod, keys.get(viewer) ?? '', areaId),
            })),
          );
          const tookMs = performance.now() - sinceMs;
          const differing = seen.flatMap((view, n) => (isSame(view, wrong[n]) ? [] : [n]));
          if (differing.length === 0) {
            slowestMs = Math.max(slowestMs, tookMs);
            break;
          }
          if (tookMs > patienceMs(DEADLINE_MS)) assert.deepEqual(seen, wrong);
          wrong = differing.map((n) => wrong[n] as View);
        }
      }
      stays += expected.reduce((sum, view) => sum + view.stays.length, 0);
      for (const view of expected) pending += view.stays.filter(({ enteredMs }) => enteredMs === null).length;
    };

    for (let n = 0; n < AREAS; n++) await edits.create();
    for (let kill = 0; kill < KILLS; kill++) {
      for (let n = 0; n < 2 + random() * 4; n++) await edits.step();
      // The one kill of the short form has both.
      if (random() < 0.5 || !IS_TORTURE) await client.flushall();
      if (random() < 0.3 || !IS_TORTURE) await edits.move();
      await edits.send(DEVICES);
      await prove(performance.now());
      const delayMs = random() * 12;
      const victim = IS_TORTURE ? Math.floor(random() * PODS) : 0;
      await Promise.all([edits.send(DEVICES), sleep(delayMs).then(() => pods.kill(victim))]);
      await prove(performance.now());
      await pods.start();
      await prove(performance.now());
    }
    t.diagnostic(
      `${stays} stays listed, ${pending} of them pending; the slowest pod took ${slowestMs.toFixed()} ms`,
    );
    assert.ok(stays > KILLS * 20 && pending > KILLS, `only ${stays} stays, ${pending} pending`);
    if (IS_TORTURE) assert.ok(slowestMs < PROMISED_MS, `a pod took ${slowestMs} ms`);
  });
});

function isSame(a: { readonly stays: unknown }, b: View | undefined): boolean {
  return JSON.stringify(a.stays) === JSON.stringify(b?.stays);
}
